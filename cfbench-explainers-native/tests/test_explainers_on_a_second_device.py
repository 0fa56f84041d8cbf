"""Every explainer that is registered here explains a model on a second device as one on the CPU, to the bit."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_core.testing import NotApplicable
from cfbench_explainers_native.plugin import cfbench_explainers
from cfbench_recsys.testing.on_gpu import explains_on_a_gpu_as_on_the_cpu
from cfbench_recsys.testing.simulated_gpu import simulated_gpu

SPECS = {spec.name: spec for spec in cfbench_explainers()}
LINEAR_ONLY = {"exact-contribution", "smallest"}
"""They explain linear recommenders only, and those compute on the CPU. A new explainer is checked, or is listed here."""

QUICK: dict[str, dict[str, Any]] = {
    "accent": {"effect": "influence"},
    "lime-rs": {"samples": 20},
    "lxr": {"epochs": 1},
    "shap": {"samples": 20},
}
"""Options of explainers whose defaults take long."""


@pytest.mark.parametrize("name", SPECS)
def test_answers_are_those_of_the_cpu(name: str) -> None:
    with simulated_gpu(SPECS[name], **QUICK.get(name, {})) as subject:
        if name in LINEAR_ONLY:
            with pytest.raises(NotApplicable, match="no recommender that computes on a device"):
                explains_on_a_gpu_as_on_the_cpu(subject)
        else:
            explains_on_a_gpu_as_on_the_cpu(subject)
