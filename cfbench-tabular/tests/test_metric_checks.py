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
    COLUMNS = (Column("distance", "lower"),)

    def __init__(self, config=None):
        pass

    def columns(self, point):
        return self.COLUMNS

    def compute(self, observed):
        apart = np.abs(observed.counterfactuals - observed.factuals).sum(axis=1)
        return {"distance": np.where(observed.valid, apart, np.nan)}


class DependsOnTheBatch(Good):
    """As the published MADD of CF-tabular, which scales by all factuals of a batch."""

    def compute(self, observed):
        values = super().compute(observed)["distance"]
        return {"distance": values / np.nanmax(values, initial=1.0)}


class OutOfRange(Good):
    COLUMNS = (Column("distance", "lower", (0.0, 0.5)),)


class Misnamed(Good):
    COLUMNS = (Column("L1", "lower"),)


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
        (DependsOnTheBatch, {"does-not-depend-on-the-batch"}),
        (OutOfRange, {"stays-in-its-range"}),
        (Misnamed, {"returns-its-declared-columns"}),
    ],
)
def test_each_fault_is_caught_by_its_check(metric, caught):
    assert failures(metric) >= caught
    assert bool(failures(metric)) == bool(caught)
