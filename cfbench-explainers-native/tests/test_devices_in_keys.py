"""Results of a CPU and of CUDA never stand for each other: no stage that knows the model shares its key."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_core import api
from cfbench_core.devices.gpus import Gpu
from cfbench_core.stages import Stage

STUDY: dict[str, Any] = {
    "suite": "recsys",
    "data": ["synthetic"],
    "recommenders": ["lightgcn", "ease"],
    "explainers": ["leave-one-out", "lime-rs"],
}


@pytest.fixture(autouse=True)
def _machine_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is computed here, so any study on CUDA may be planned."""
    monkeypatch.setattr("cfbench_core.devices.availability.visible_gpus", lambda: (Gpu("GPU-aa11", 2**34),))


def stages(**changes: Any) -> dict[tuple[str, str], Stage]:
    """The stages of the study by kind and label."""
    plan = api.plan({**STUDY, **changes})
    return {(stage.kind, stage.label): stage for stage in plan.stages()}


def test_what_depends_on_a_model_on_cuda_has_other_keys() -> None:
    on_cpu, on_cuda = stages(device="cpu"), stages(device="cuda")
    assert on_cpu.keys() == on_cuda.keys()
    differing = {name for name, stage in on_cpu.items() if on_cuda[name].key != stage.key}
    assert {label for kind, label in differing if "ease" in label} == set()
    kinds = {kind for kind, label in differing if "lightgcn" in label}
    assert kinds == {"model", "units", "explanations", "scores"}
    assert {stage.device for stage in on_cpu.values()} == {"cpu"}
    assert {on_cuda[name].device for name in differing} == {"cuda, no TF32, deterministic"}
    assert {stage.device for name, stage in on_cuda.items() if name not in differing} == {"cpu"}


def test_the_deterministic_mode_is_part_of_keys_on_cuda_only() -> None:
    cpu, other_cpu = stages(device="cpu"), stages(device="cpu", deterministic=False)
    assert {name: stage.key for name, stage in cpu.items()} == {
        name: stage.key for name, stage in other_cpu.items()
    }
    cuda, other_cuda = stages(device="cuda"), stages(device="cuda", deterministic=False)
    assert any(cuda[name].key != other_cuda[name].key for name in cuda)


@pytest.mark.parametrize(("gpus", "expected"), [((), "cpu"), ((Gpu("GPU-aa11", 2**34),), "cuda")])
def test_auto_is_resolved_before_keys_are_made(
    gpus: tuple[Gpu, ...], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfbench_core.devices.choice.visible_gpus", lambda: gpus)
    named, automatic = stages(device=expected), stages()
    assert {name: stage.key for name, stage in named.items()} == {
        name: stage.key for name, stage in automatic.items()
    }
    (model,) = (
        stage for (kind, label), stage in automatic.items() if kind == "model" and "lightgcn" in label
    )
    assert model.parameters["model"]["options"]["device"] == expected
    assert api.prepare(STUDY).document["device"] == expected


def test_a_component_may_differ_from_the_experiment() -> None:
    mixed = stages(device="cuda", recommenders=[{"name": "lightgcn", "device": "cpu"}, "ncf"])
    devices = {
        label: stage.device.partition(",")[0] for (kind, label), stage in mixed.items() if kind == "model"
    }
    assert {label.partition(" ")[0]: device for label, device in devices.items()} == {
        "lightgcn": "cpu",
        "ncf": "cuda",
    }
