"""The conformance kit of metrics: all installed ones pass, and what is wrong with one is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cfbench_core.plan import Column
from cfbench_core.registry import installed
from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import check_component, checks_for, verify


@pytest.mark.parametrize("metric", [c.spec.id for c in installed().components("metric", "recsys")])
def test_every_metric_passes(metric: str) -> None:
    report = check_component(metric)

    assert report.passed, str(report)


class Good:
    """The number of edits, halved."""

    def __init__(self, config: None) -> None: ...

    def columns(self, point: Any) -> tuple[Column, ...]:
        return (Column("half", "lower", (0, 100)),)

    def compute(self, observed: Any) -> dict[str, Any]:
        return {"half": observed.edges / 2}


class AnotherColumn(Good):
    """Computes what it does not declare."""

    def compute(self, observed: Any) -> dict[str, Any]:
        return {"whole": observed.edges / 1}


class OutOfRange(Good):
    """Negative."""

    def compute(self, observed: Any) -> dict[str, Any]:
        return {"half": -1.0 - observed.edges}


class Random(Good):
    """Draws."""

    def compute(self, observed: Any) -> dict[str, Any]:
        return {"half": np.random.random(len(observed.targets))}


class Cumulative(Good):
    """Adds up the units."""

    def compute(self, observed: Any) -> dict[str, Any]:
        return {"half": np.cumsum(observed.edges).astype(float)}


class WithoutCompute:
    """Incomplete."""

    def __init__(self, config: None) -> None: ...

    def columns(self, point: Any) -> tuple[Column, ...]:
        return ()


def spec(implementation: type) -> ComponentSpec:
    return ComponentSpec(
        id="recsys/metric/tested",
        summary="A metric of the tests",
        target=f"{__name__}:{implementation.__name__}",
        needs={"explainer": {"format": {"explicit"}}},
    )


@pytest.mark.parametrize(
    ("implementation", "check", "reason"),
    [
        (AnotherColumn, "fills-the-columns-that-it-declares", "declares ['half'], but computes ['whole']"),
        (OutOfRange, "stays-in-its-range", "outside of (0, 100)"),
        (Random, "gives-the-same-values-again", "half has other values in a second call"),
        (Cumulative, "does-not-mix-units", "the half of a unit depends on the other units"),
        (WithoutCompute, "fulfils-its-contract", "a metric needs compute(observed), which is missing"),
    ],
)
def test_what_is_wrong_with_a_metric_is_named(implementation: type, check: str, reason: str) -> None:
    failures = {failure.check: failure.reason for failure in check_component(spec(implementation)).failures}

    assert reason in failures[check]


def test_a_good_metric_passes_all_checks() -> None:
    for check in checks_for(spec(Good)):
        if not check.name.startswith(("configuration-is-", "presets-")):
            verify(check, spec(Good))
