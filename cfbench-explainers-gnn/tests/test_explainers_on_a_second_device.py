"""Every explainer that is registered here explains a model on a second device as one on the CPU, to the bit."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_core.registry import installed
from cfbench_core.testing import NotApplicable
from cfbench_recsys.testing.on_gpu import explains_on_a_gpu_as_on_the_cpu, scores_on_a_gpu_as_on_the_cpu
from cfbench_recsys.testing.simulated_gpu import simulated_gpu


def registered(kind: str) -> dict[str, Any]:
    found = installed().components(kind, "recsys")
    return {one.spec.name: one.spec for one in found if one.distribution == "cfbench-explainers-gnn"}


QUICK: dict[str, dict[str, Any]] = {
    "c2explainer": {"steps": 4},
    "cf2": {"steps": 4},
    "cf-gnnexplainer": {"steps": 4, "restarts": 2},
    "clear": {"steps": 2, "batch": 6, "k": 2},
    "pyg": {"epochs": 3, "learning_rate": 0.3},
    "unr-explainer": {"simulations": 5},
}
"""Options of explainers whose defaults take long."""


@pytest.mark.parametrize("name", registered("explainer"))
def test_answers_are_those_of_the_cpu(name: str) -> None:
    with simulated_gpu(registered("explainer")[name], **QUICK.get(name, {})) as subject:
        explains_on_a_gpu_as_on_the_cpu(subject)


@pytest.mark.parametrize("name", registered("recommender"))
def test_modules_of_pyg_compute_on_the_cpu(name: str) -> None:
    with (
        simulated_gpu(registered("recommender")[name]) as subject,
        pytest.raises(NotApplicable, match="no option device"),
    ):
        scores_on_a_gpu_as_on_the_cpu(subject)
