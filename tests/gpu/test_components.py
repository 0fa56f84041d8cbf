"""Every recommender and explainer of the suite of recommenders computes on a GPU what it computes on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cfbench_core.registry import installed
from cfbench_core.specs import ComponentSpec, resolve
from cfbench_core.testing import NotApplicable, Subject
from cfbench_recsys.testing.on_gpu import explains_on_a_gpu_as_on_the_cpu, scores_on_a_gpu_as_on_the_cpu

QUICK: dict[str, dict[str, Any]] = {
    "accent": {"effect": "influence"},
    "c2explainer": {"steps": 20},
    "cf2": {"steps": 20},
    "cf-gnnexplainer": {"steps": 20, "restarts": 2},
    "clear": {"steps": 2, "batch": 6, "k": 2},
    "lime-rs": {"samples": 20},
    "lxr": {"epochs": 2},
    "pyg": {"epochs": 3, "learning_rate": 0.3},
    "shap": {"samples": 20},
    "unr-explainer": {"simulations": 5},
    "diffrec": {"hidden": 16, "epochs": 2},
    "gformer": {"epochs": 2},
    "lightgcn": {"dimensions": 16, "epochs": 2},
    "mf": {"dimensions": 16, "epochs": 2},
    "ncf": {"epochs": 2},
    "simgcl": {"dimensions": 16, "epochs": 2},
    "vae": {"hidden": 16, "epochs": 2},
}
"""Options of components whose defaults take long."""


def specs(kind: str) -> dict[str, ComponentSpec]:
    return {one.spec.name: one.spec for one in installed().components(kind, "recsys")}


def subject(kind: str, name: str) -> Subject:
    spec = specs(kind)[name]
    return Subject(spec, resolve(spec.config)(**QUICK.get(name, {})) if spec.config else None)


@contextmanager
def applicable() -> Iterator[None]:
    """A check that does not apply is skipped, with its reason."""
    try:
        yield
    except NotApplicable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", specs("recommender"))
def test_recommenders_score_as_on_the_cpu(name: str) -> None:
    with applicable():
        scores_on_a_gpu_as_on_the_cpu(subject("recommender", name))


@pytest.mark.parametrize("name", specs("explainer"))
def test_explainers_answer_as_on_the_cpu(name: str) -> None:
    with applicable():
        explains_on_a_gpu_as_on_the_cpu(subject("explainer", name))
