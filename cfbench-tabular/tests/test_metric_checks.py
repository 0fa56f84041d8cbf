"""The conformance kit finds metrics that do what metrics must not."""

from __future__ import annotations

import numpy as np
import pytest

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import Misbehaviour, Subject
from cfbench_tabular.testing import checks

CHECKS = {check.name: check for check in checks["metric"]}


class Good:
    columns = (Column("distance", "lower"),)

    def __init__(self, config=None):
        pass

    def score(self, answers):
        apart = np.abs(answers.counterfactuals - answers.factuals).sum(axis=1)
        return {"distance": np.where(answers.valid, apart, np.nan)}


class OfItsNeighbours(Good):
    """As the study's MADD: what others answered shifts everyone's value."""

    def score(self, answers):
        values = super().score(answers)["distance"]
        return {"distance": values / np.nanmax(values, initial=1.0)}


class OutOfRange(Good):
    columns = (Column("distance", "lower", (0.0, 0.5)),)


class Misnamed(Good):
    columns = (Column("L1", "lower"),)


def failures(metric):
    spec = ComponentSpec(
        id="tabular/metric/theirs", summary="for a test", target=f"{__name__}:{metric.__name__}"
    )
    found = set()
    for name, check in CHECKS.items():
        try:
            check.run(Subject(spec))
        except Misbehaviour:
            found.add(name)
    return found


@pytest.mark.parametrize(
    ("metric", "caught"),
    [
        (Good, set()),
        (OfItsNeighbours, {"scores-one-as-among-many"}),
        (OutOfRange, {"stays-in-its-range"}),
        (Misnamed, {"names-its-columns"}),
    ],
)
def test_each_fault_is_caught_by_its_check(metric, caught):
    assert failures(metric) >= caught
    assert bool(failures(metric)) == bool(caught)
