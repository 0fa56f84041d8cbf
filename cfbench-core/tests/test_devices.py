"""Devices in keys, GPUs found without torch, and places for workers on them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cfbench_core.devices import availability, gpus
from cfbench_core.devices.availability import check_device
from cfbench_core.devices.choice import device_of, resolved_device, with_device
from cfbench_core.devices.gpus import Gpu, Places, allowed_gpus
from cfbench_core.errors import UserError
from cfbench_core.executors.dask import DaskConfig
from cfbench_core.expansion import Expansion
from cfbench_core.stages import Stage

ANSWER = "cfbench_core.lifecycle.stages:fit_model"
GIB = 2**30
FIRST, SECOND = Gpu("GPU-aa11", 24 * GIB), Gpu("GPU-bb22", 80 * GIB)


def model(device: str, **options: Any) -> dict[str, Any]:
    """The parameters of a stage that fits a model."""
    return {"model": {"component": "recsys/recommender/mf", "options": {"device": device, **options}}}


def stage(parameters: dict[str, Any], inputs: Any = None, deterministic: bool = True) -> Stage:
    models = {role: one.parameters["model"] for role, one in (inputs or {}).items()}
    device = device_of(parameters, models, deterministic)
    return Stage("model", "mf", ANSWER, parameters, inputs or {}, device=device)


def test_auto_is_resolved_in_the_options_of_components_only() -> None:
    given = {
        "model": {"options": {"device": "auto", "encoder": {"options": {"device": "auto"}}, "k": (1, 2)}},
        "metrics": [{"metric": {"options": {"device": "cpu"}}}],
        "columns": {"device": "auto"},  # of a table, say
    }
    assert with_device(given, "cuda") == {
        "model": {"options": {"device": "cuda", "encoder": {"options": {"device": "cuda"}}, "k": (1, 2)}},
        "metrics": [{"metric": {"options": {"device": "cpu"}}}],
        "columns": {"device": "auto"},
    }
    without = {"threads": 1, "model": {"options": {"k": [1]}}}
    assert with_device(without, "cuda") is without


def test_results_of_a_cpu_and_of_cuda_have_different_keys_at_every_stage_that_reads_the_model() -> None:
    on_cpu, on_cuda, fast = (
        stage(model("cpu")),
        stage(model("cuda")),
        stage(model("cuda"), deterministic=False),
    )
    assert on_cpu.device == "cpu"
    assert on_cuda.device == "cuda, no TF32, deterministic"
    assert fast.device == "cuda, no TF32"
    assert len({on_cpu.key, on_cuda.key, fast.key}) == 3
    explained = [stage({"explainer": {}}, {"model": one}) for one in (on_cpu, on_cuda)]
    assert [one.device for one in explained] == [on_cpu.device, on_cuda.device]
    assert explained[0].key != explained[1].key


def test_the_ordinal_of_a_gpu_is_not_part_of_a_key() -> None:
    assert stage(model("cuda:0")).key == stage(model("cuda:1")).key == stage(model("cuda")).key
    assert stage(model("cuda:1")).parameters["model"]["options"]["device"] == "cuda:1"


def test_a_device_that_is_not_in_the_options_changes_no_key() -> None:
    assert stage({"columns": {"device": "cuda"}}).device == "cpu"


def test_tasks_on_the_cpu_and_on_a_gpu_are_of_different_pools() -> None:
    found = {}
    for one in (stage(model("cpu")), stage(model("cuda"))):
        ((_, (task,)),) = Expansion([one], 50).next_stages()
        found[task.device] = task.pool
    assert found == {"cpu": "", "cuda, no TF32, deterministic": " on cuda, no TF32, deterministic"}


@dataclass(frozen=True)
class Chosen:
    options: Any = None


@dataclass(frozen=True)
class Config:
    device: str = "auto"
    executor: Chosen = Chosen()


@pytest.mark.parametrize(("found", "expected"), [((), "cpu"), ((FIRST,), "cuda")])
def test_auto_is_what_this_machine_has(
    found: tuple[Gpu, ...], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfbench_core.devices.choice.visible_gpus", lambda: found)
    assert resolved_device(Config()) == expected
    assert resolved_device(Config(device="cpu")) == "cpu"
    assert resolved_device(Config(device="cuda")) == "cuda"


def test_on_dask_auto_is_what_the_configuration_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cfbench_core.devices.choice.visible_gpus", lambda: (FIRST,))
    assert resolved_device(Config(executor=Chosen(DaskConfig()))) == "cpu"
    declared = DaskConfig(resources={"cuda": {"GPU": 1}, "model": {"BIG": 2}})
    assert resolved_device(Config(executor=Chosen(declared))) == "cuda"
    assert resolved_device(Config(device="cpu", executor=Chosen(declared))) == "cpu"
    ((_, (task,)),) = Expansion([stage(model("cuda"))], 50).next_stages()
    assert declared.resources_of(task) == {"GPU": 1, "BIG": 2}
    assert declared.resources_of(replace(task, device="cpu")) == {"BIG": 2}


# Is the device there?


class NoGpu:
    """A torch that finds no GPU."""

    __version__ = "2.9.0+cu128"

    class cuda:  # noqa: N801 (torch calls it so)
        is_available = staticmethod(lambda: False)


def machine(monkeypatch: pytest.MonkeyPatch, listed: tuple[Gpu, ...], built: bool = True) -> None:
    """Simulates the GPUs that the driver lists; torch finds none but these, and is built for CUDA or not."""
    monkeypatch.setattr(availability, "visible_gpus", lambda: listed)
    monkeypatch.setattr(availability, "torch_has_cuda", lambda: built)
    monkeypatch.setitem(sys.modules, "torch", NoGpu)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)


def test_cuda_without_a_gpu_is_one_line_that_names_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = [replace(stage(model("cuda")), label=f"m{n}") for n in range(5)]
    explained = [replace(stage({"explainer": {}}, {"model": one}), label="reads it") for one in fitted]
    machine(monkeypatch, ())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(UserError) as raised:
        check_device(None, [*fitted, *explained, stage(model("cpu"))])
    assert raised.value.lines == (
        "device: cuda is not available here: torch finds no GPU that CUDA_VISIBLE_DEVICES=7 allows; "
        "needed for m0, m1, m2 and 2 more; use 'auto' or 'cpu'",
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    machine(monkeypatch, (), built=False)
    with pytest.raises(UserError, match=r"torch 2\.9\.0\+cu128 is not built for CUDA; needed for m4; use"):
        check_device(None, fitted[4:])
    with pytest.raises(UserError, match="needed for reads it; use"):  # its model is cached
        check_device(None, explained)


def test_what_the_machine_has_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cuda = [stage(model("cuda"))]
    machine(monkeypatch, (FIRST,))
    check_device(None, on_cuda)
    machine(monkeypatch, ())
    check_device(None, [stage(model("cpu"))])
    monkeypatch.setattr(NoGpu.cuda, "is_available", lambda: True)  # a GPU that nvidia-smi does not list
    check_device(None, on_cuda)


@pytest.mark.parametrize(
    ("options", "here"),
    [
        (DaskConfig(), True),
        (DaskConfig(cluster="local", workers=2), True),
        (DaskConfig(address="tcp://10.0.0.1:8786"), False),
        (DaskConfig(cluster="dask_jobqueue.SLURMCluster", workers=2), False),
    ],
)
def test_machines_of_a_cluster_may_have_the_gpu_that_this_one_lacks(
    options: DaskConfig, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, ())
    if here:
        with pytest.raises(UserError, match="cuda is not available here"):
            check_device(options, [stage(model("cuda"))])
    else:
        check_device(options, [stage(model("cuda"))])


# GPUs


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (None, [FIRST, SECOND]),
        ("", []),
        ("-1", []),
        ("1,0", [Gpu("1", 24 * GIB), Gpu("0", 24 * GIB)]),
        ("GPU-bb", [SECOND]),
        ("0,7,1", [Gpu("0", 24 * GIB)]),  # as CUDA does: what follows a wrong entry is hidden as well
        ("MIG-3f", [Gpu("MIG-3f", 0)]),
        ("1,1", [Gpu("1", 24 * GIB)]),
    ],
)
def test_the_variable_of_cuda_chooses_gpus(variable: str | None, expected: list[Gpu]) -> None:
    assert list(allowed_gpus([FIRST, SECOND], variable)) == expected


def test_without_a_gpu_no_variable_makes_one() -> None:
    assert allowed_gpus([], "0") == allowed_gpus([], "MIG-1") == allowed_gpus([], None) == ()


def test_gpus_are_those_that_the_driver_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "assert sys.argv[1:] == ['--query-gpu=uuid,memory.total', '--format=csv,noheader,nounits']\n"
        "print('GPU-aa11, 24576')\nprint('GPU-bb22, 81920')\nprint('GPU-cc33, [N/A]')\n"
    )
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    monkeypatch.setattr(gpus, "torch_has_cuda", lambda: True)
    gpus.visible_gpus.cache_clear()
    try:
        assert gpus.visible_gpus() == (FIRST, SECOND, Gpu("GPU-cc33", 0))
        gpus.visible_gpus.cache_clear()
        command.write_text(f"#!{sys.executable}\nraise SystemExit('no devices were found')\n")
        assert gpus.visible_gpus() == ()
        gpus.visible_gpus.cache_clear()
        monkeypatch.setattr(gpus, "torch_has_cuda", lambda: False)
        command.write_text(f"#!{sys.executable}\nprint('GPU-aa11, 24576')\n")
        assert gpus.visible_gpus() == ()
    finally:
        gpus.visible_gpus.cache_clear()


def test_a_torch_for_cuda_is_recognized_by_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "torch"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    code = "from cfbench_core.devices.gpus import torch_has_cuda; print(torch_has_cuda())"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}

    def answer() -> str:
        return subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert answer() == "False\n"
    (package / "lib" / "libtorch_cuda.so").touch()
    assert answer() == "True\n"


# Places


@pytest.mark.parametrize(
    ("workers", "gigabytes", "expected"),
    [
        (1, 8, ["GPU-aa11", "GPU-bb22"]),
        (2, 8, ["GPU-aa11", "GPU-bb22"]),
        (4, 8, ["GPU-aa11", "GPU-bb22", "GPU-aa11", "GPU-bb22"]),
        (
            16,
            8,
            ["GPU-aa11", "GPU-bb22"] * 3 + ["GPU-bb22"] * 5,
        ),  # 25.8 GB hold 3, 85.9 GB hold 10; at most 8
        (8, 100, ["GPU-aa11", "GPU-bb22"]),  # one each, though it may be too small
    ],
)
def test_places_are_given_out_in_turn(workers: int, gigabytes: float, expected: list[str]) -> None:
    places = Places([FIRST, SECOND], workers, gigabytes)
    assert places
    found = []
    while places.free:
        found.append(places.take())
    assert [place.gpu.name for place in found] == expected
    for gpu in {place.gpu for place in found}:
        own = [place.share for place in found if place.gpu == gpu]
        assert sum(own) == pytest.approx(1)
    places.give_back(found[0])
    assert places.free == 1
    assert places.take().gpu == found[0].gpu


def test_workers_of_one_machine_begin_with_different_gpus() -> None:
    firsts = [Places([FIRST, SECOND], 1, 8, number).take().gpu for number in range(3)]
    assert firsts == [FIRST, SECOND, FIRST]


def test_without_gpus_there_are_no_places() -> None:
    assert not Places([], 4, 8)
    assert Places([], 4, 8).free == 0
