"""A study on CUDA where no GPU is: ``plan`` remarks on it, ``run`` is refused in one line unless all of it is cached."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cfbench_core import api
from cfbench_core.devices import availability
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


def test_every_recommender_with_a_device_is_refused_by_name(tmp_path: Path) -> None:
    names = recommenders_with_device()
    assert {"lightgcn", "mf", "ncf", "vae"} <= set(names)
    for name in names:
        with pytest.raises(UserError, match=rf"device: cuda is not available here.*needed for {name} on"):
            api.run({**STUDY, "recommenders": [{"name": name, "device": "cuda"}]}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("command", "code"), [(("plan",), 0), (("run", "--dry-run"), 0), (("run", "--output", "out"), 2)]
)
def test_the_command_says_so_in_one_line_and_writes_nothing(
    command: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(json.dumps({**STUDY, "recommenders": ["ease", {"name": "ncf", "device": "cuda"}]}))
    done = subprocess.run(
        [sys.executable, "-m", "cfbench_core", command[0], str(study), *command[1:]],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == code
    (line,) = done.stderr.splitlines()
    assert line.removeprefix("note: ").startswith("device: cuda is not available here: ")
    assert line.startswith("note: ") == (code == 0) == ("ncf" in done.stdout)
    assert "needed for ncf on synthetic; " in line
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]


ANYWHERE = """
from dataclasses import dataclass
from cfbench_core.devices.choice import Device

@dataclass(frozen=True, kw_only=True)
class Config:
    device: Device = "auto"

class Anywhere:
    '''Computes on the CPU whatever its device.'''
    def __init__(self, config: Config) -> None: ...
    def fit(self, split, generator, report):
        self.weight = (split.train.T @ split.train).toarray().astype(float)
        return {}
    def state(self):
        return {"weight": self.weight}
    def load_state(self, state, interactions):
        self.weight = state["weight"]
    def score_profiles(self, profiles):
        return profiles @ self.weight
"""


def test_a_run_on_cuda_that_is_wholly_cached_needs_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed on a machine that is said to have a GPU, then run again where none is."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "anywhere.py").write_text(ANYWHERE)
    study = {
        **STUDY,
        "data": [{"name": "synthetic", "users": 60, "items": 40, "interactions": 500}],
        "recommenders": [{"import": "anywhere:Anywhere", "device": "cuda"}],
        "protocol": {"users": 4},
        "chunk": 2,
        "executor": "inline",
    }
    with monkeypatch.context() as gpu:
        gpu.setattr(availability, "cuda_obstacle", lambda: "")
        first = api.run(study, out=tmp_path / "first")
    assert first.exit_code == 0
    again = api.run(study, out=tmp_path / "again")
    assert again.exit_code == 0
    for table in ("scores.parquet", "explanations.parquet"):
        assert (tmp_path / "again" / table).read_bytes() == (tmp_path / "first" / table).read_bytes()
    for changes in ({"set": ["protocol.users=6"]}, {"fresh": True}):  # one chunk more, and everything
        with pytest.raises(UserError, match=r"cuda is not available here.*needed for .*on synthetic"):
            api.run(study, out=tmp_path / "refused", **changes)
        assert not (tmp_path / "refused").exists()


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
