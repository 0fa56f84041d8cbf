"""Every recommender and every explainer of recommenders that is registered computes on a second device as on the CPU.

The second device is simulated (``cfbench_recsys/testing/second_device.py``): it refuses what a GPU refuses. The checks are
those that the conformance kit does where there is a GPU, and here numbers must be the same.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_core.testing import NotApplicable, Subject
from cfbench_recsys.testing import on_gpu
from cfbench_recsys.testing.second_device import DEVICE, second_device_as_cuda

RECOMMENDERS = {one.spec.name: one.spec for one in installed().components("recommender", "recsys")}
EXPLAINERS = {one.spec.name: one.spec for one in installed().components("explainer", "recsys")}
NO_DEVICE = {"als", "ease", "item-knn", "popularity"}
"""Recommenders that compute on the CPU: they have no option ``device``."""

LINEAR_ONLY = {"exact-contribution"}
"""Explainers of linear recommenders only, and those compute on the CPU."""

QUICK: dict[str, dict[str, Any]] = {
    "accent": {"effect": "influence"},
    "c2explainer": {"steps": 4},
    "cf2": {"steps": 4},
    "cf-gnnexplainer": {"steps": 4, "restarts": 2},
    "clear": {"steps": 2, "batch": 6, "k": 2},
    "diffrec": {"hidden": 4, "epochs": 1},
    "gformer": {"epochs": 1},
    "lightgcn": {"dimensions": 4, "epochs": 1},
    "lime-rs": {"samples": 20},
    "lxr": {"epochs": 1},
    "mf": {"dimensions": 4, "epochs": 1},
    "ncf": {"epochs": 1},
    "pyg": {"epochs": 3, "learning_rate": 0.3},
    "shap": {"samples": 20},
    "simgcl": {"dimensions": 4, "epochs": 1},
    "unr-explainer": {"simulations": 5},
    "vae": {"epochs": 1},
}
"""Options of explainers and recommenders whose defaults take long; a new component is checked with its defaults."""


def subject(spec: Any) -> Subject:
    importlib.import_module(spec.target.partition(":")[0])  # what it imports by name is found there
    options = resolve(spec.config)(**QUICK.get(spec.name, {})) if spec.config else None
    return Subject(spec, options)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(on_gpu, "gpu_is_there", lambda: True)
    monkeypatch.setattr(on_gpu, "SAME_EDITS", 1.0)
    monkeypatch.setattr(on_gpu, "SCORES", 0.0)
    monkeypatch.setattr(on_gpu, "TOLERANCE", 0.0)
    for name in on_gpu.MODELS:
        subject(RECOMMENDERS[name])
    with second_device_as_cuda():
        yield


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_a_recommender_scores_as_on_the_cpu(name: str, gpu: None) -> None:
    if name in NO_DEVICE:
        with pytest.raises(NotApplicable, match="no option device"):
            on_gpu.scores_on_a_gpu_as_on_the_cpu(subject(RECOMMENDERS[name]))
    else:
        on_gpu.scores_on_a_gpu_as_on_the_cpu(subject(RECOMMENDERS[name]))


@pytest.mark.parametrize("name", EXPLAINERS)
def test_an_explainer_answers_as_on_the_cpu(name: str, gpu: None) -> None:
    if name in LINEAR_ONLY:
        with pytest.raises(NotApplicable, match="no recommender that computes on a device"):
            on_gpu.explains_on_a_gpu_as_on_the_cpu(subject(EXPLAINERS[name]))
    else:
        on_gpu.explains_on_a_gpu_as_on_the_cpu(subject(EXPLAINERS[name]))


def test_models_are_on_the_second_device(gpu: None) -> None:
    for case in on_gpu._cases(subject(EXPLAINERS["leave-one-out"]), "cuda"):
        assert case.context.model.device == DEVICE
