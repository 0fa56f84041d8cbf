"""Connectedness: does a path of training rows lead from the counterfactual to a true member of its class?

Laugel et al. 2019 call a counterfactual justified if a training row that truly has its class, and that the model
predicts so, can be reached from it in steps of at most epsilon without leaving the class; otherwise it may be an
artifact of the classifier. Their steps go over generated points; here they go over training rows that the model
puts into the class.

    connected(c) = 1 if some row r with |c - r| <= epsilon lies in a component (rows of the class, joined where at
                   most epsilon apart) that contains a row whose true class is that of c; else 0

If epsilon is not set, it is the ``quantile`` of the distances from each row of the class to its nearest neighbour
in the class. A distance that exceeds epsilon by rounding errors only counts as at most epsilon.

Higher is better. Missing where the counterfactual is not valid, where fewer than two training rows are in the class, or
where their true classes are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.neighbours import distances, distances_between, up_to, wanted_classes
from cfbench_tabular.table import BoolArray, FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/connectedness",
    summary="Is the counterfactual connected to a true member of its class?",
    target=f"{__name__}:Connectedness",
    config=f"{__name__}:Config",
    papers=("laugel2019dangers",),
    version="2",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    epsilon: Annotated[
        float | None,
        Range(above=0),
        Help("maximum step length in standard deviations; none: from the quantile"),
    ] = None
    quantile: Annotated[
        float, Range(above=0, maximum=1), Help("of the distances between neighbours of the class")
    ] = 0.95
    rows: Annotated[
        int, Range(minimum=2), Help("maximum number of training rows; a fixed sample of larger tables")
    ] = 2000


COLUMNS = (
    Column(
        "connected",
        "higher",
        (0.0, 1.0),
        "Does a path of training rows lead to a true member of its class?",
    ),
)


class Connectedness:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        connected = np.full(len(observed.valid), np.nan)
        for label, here, numbers in wanted_classes(observed, self.config.rows):
            if len(numbers) < 2 or not len(observed.background_labels):
                continue
            rows = observed.background[numbers]
            apart = distances_between(rows)
            epsilon = self.config.epsilon
            if epsilon is None:
                epsilon = float(np.quantile(apart.min(axis=1), self.config.quantile))
            step = up_to(epsilon, rows)
            good = _reaches(apart <= step, observed.background_labels[numbers] == label)
            within = distances(observed.counterfactuals[here], rows) <= step
            connected[here] = (within & good).any(axis=1)
        return {"connected": connected}


def _reaches(joined: BoolArray, true: BoolArray) -> BoolArray:
    """(n,) which nodes of a graph (n, n) share a component with a node in ``true`` (n,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(csr_array(joined), directed=False)
    return np.asarray(np.isin(component, component[true]))
