"""A study on CUDA where no GPU is: refused in one line by ``plan`` and ``run``, for each component with an option device."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cfbench_core import api
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_core.run_directory import Run
from cfbench_core.specs import resolve
from cfbench_core.view.live import live_unit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")

STUDY = {"suite": "recsys", "data": ["synthetic"], "explainers": ["random"]}


def recommenders_with_device() -> list[str]:
    """Names of the registered recommenders whose options have ``device``."""
    found = [component.spec for component in installed().components("recommender", "recsys")]
    options = {spec.name: dataclasses.fields(resolve(spec.config)) for spec in found if spec.config}
    return [name for name, fields in options.items() if "device" in {field.name for field in fields}]


def test_every_recommender_with_a_device_is_refused_by_name() -> None:
    names = recommenders_with_device()
    assert {"lightgcn", "mf", "ncf", "vae"} <= set(names)
    for name in names:
        with pytest.raises(UserError, match=rf"device: cuda is not available here.*needed for {name} on"):
            api.plan({**STUDY, "recommenders": [{"name": name, "device": "cuda"}]})


@pytest.mark.parametrize("command", ["plan", "run"])
def test_the_command_ends_with_one_line_and_writes_nothing(command: str, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(json.dumps({**STUDY, "recommenders": ["ease", {"name": "ncf", "device": "cuda"}]}))
    out = ["--output", str(tmp_path / "out")] if command == "run" else []
    done = subprocess.run(
        [sys.executable, "-m", "cfbench_core", command, str(study), *out],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{study}:1: device: cuda is not available here: ")
    assert "needed for ncf on synthetic" in line
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]


def test_of_a_run_with_models_on_cuda_those_on_the_cpu_can_be_queried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is made on the CPU; its configuration then gets what a machine with a GPU would have computed too."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    data = [{"name": "synthetic", "users": 60, "items": 40, "interactions": 500}]
    study = {**STUDY, "data": data, "recommenders": ["ease"], "protocol": {"users": 2}}
    run = api.run(study, out=tmp_path / "run", workers=1)
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    config["recommenders"].append({"name": "ncf", "device": "cuda"})
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(config))
    cell = run.cells("ok")[0]
    unit = str(run.scores["unit"].iloc[0])
    assert live_unit(Run(tmp_path / "run"), cell.id, unit).model is not None
