"""Plausibility: does the counterfactual lie where the data are?

- LOF: the local outlier factor (Breunig et al. 2000) of the counterfactual among the distinct training rows: about 1
  inside the data, larger outside.
      N(a) = all rows that are at most as far from a as its k-th nearest row: k, or more where distances are equal
      reach(a, b) = max(distance from b to its k-th nearest row, |a - b|)
      lrd(a) = 1 / mean over b in N(a) of reach(a, b);   LOF(c) = mean over b in N(c) of lrd(b) / lrd(c)
  Distances that differ by rounding errors only count as equal. Duplicate rows are removed, because their distance of 0
  would make the density infinite.
- class distance: the mean distance to the ``nearest`` closest training rows that the model puts into the class of the
  counterfactual, in standard deviations.

Lower is better for both, from 0. Missing where the counterfactual is not valid; the class distance also where no
training row is in the class. If there are fewer rows than neighbours, all of them are used.
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
from cfbench_tabular.metrics.neighbours import distances, distances_between, sampled, up_to, wanted_classes
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/metric/plausibility",
    summary="Local outlier factor and distance to training rows of the predicted class",
    target=f"{__name__}:Plausibility",
    config=f"{__name__}:Config",
    papers=("breunig2000lof",),
    version="2",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    neighbours: Annotated[int, Range(minimum=1), Help("k of the local outlier factor")] = 20
    nearest: Annotated[
        int, Range(minimum=1), Help("number of rows of the class that the distance is averaged over")
    ] = 5
    rows: Annotated[
        int, Range(minimum=10), Help("maximum number of training rows; a fixed sample of larger tables")
    ] = 2000


COLUMNS = (
    Column("LOF", "lower", None, "How much sparser are the data around it than around its neighbours?"),
    Column("class distance", "lower", None, "How far are the nearest training rows of its class?"),
)


class Plausibility:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        factor, distance = np.full((2, len(observed.valid)), np.nan)
        valid = observed.valid
        if valid.any():
            rows = observed.background[sampled(len(observed.background), self.config.rows)]
            rows = np.unique(rows, axis=0)
            factor[valid] = local_outlier_factor(
                observed.counterfactuals[valid], rows, self.config.neighbours
            )
        for _, here, members in wanted_classes(observed, self.config.rows):
            if len(members):
                apart = distances(observed.counterfactuals[here], observed.background[members])
                distance[here] = np.sort(apart, axis=1)[:, : self.config.nearest].mean(axis=1)
        return {"LOF": factor, "class distance": distance}


def local_outlier_factor(vectors: FloatArray, rows: FloatArray, k: int) -> FloatArray:
    """(B,) of vectors (B, d) among distinct rows (n, d); NaN where there are fewer than two rows."""
    if len(rows) < 2:
        return np.full(len(vectors), np.nan)
    k = min(k, len(rows) - 1)
    between = distances_between(rows)
    reach = _to_the_kth(between, k)
    of, near = _pairs(between, reach, rows)
    density = 1.0 / _means(of, np.maximum(reach[near], between[of, near]))
    across = distances(vectors, rows)
    of, near = _pairs(across, _to_the_kth(across, k), rows)
    own = 1.0 / _means(of, np.maximum(reach[near], across[of, near]))
    return np.asarray(_means(of, density[near]) / own)


def _to_the_kth(apart: FloatArray, k: int) -> FloatArray:
    """(n,) the k-th smallest of each row of distances (n, m)."""
    return np.asarray(np.partition(apart, k - 1, axis=1)[:, k - 1])


def _pairs(apart: FloatArray, limits: FloatArray, rows: FloatArray) -> tuple[IntArray, IntArray]:
    """(p,) and (p,): the pairs of a place and a row whose distance (n, m) is within the limit (n,) of the place."""
    within = np.flatnonzero(apart <= up_to(limits, rows)[:, None])
    of, near = np.divmod(within, apart.shape[1])  # twice as fast as np.nonzero
    return of, near


def _means(of: IntArray, values: FloatArray) -> FloatArray:
    """(n,) the mean of the values (p,) of each place; ``of`` (p,) names the place of a value."""
    return np.asarray(np.bincount(of, values) / np.bincount(of))
