"""Plausibility: is the counterfactual where rows are?

- LOF: the local outlier factor (Breunig et al. 2000) of the counterfactual among the distinct training rows: how
  much thinner is its neighbourhood than those of its neighbours? About 1 inside the data, larger outside.
      reach(a, b) = max(distance from b to its k-th neighbour, |a - b|)
      lrd(a) = 1 / mean over its k neighbours b of reach(a, b);   LOF(c) = mean over its neighbours lrd(b) / lrd(c)
  Distinct, because equal rows have no distance from each other, and categorical tables are full of them: their
  density would be infinite.
- class distance: the mean distance to the ``nearest`` closest training rows that the model puts into the class
  of the counterfactual: does it look like a member of its class? (In standard deviations, as L2.)

Lower is better for both; LOF from 0, around 1; the distance from 0. Missing where the answer is not valid, the
distance also where no training row is in the class. Fewer rows than neighbours: all of them count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.metrics.neighbours import distances, distances_between, sampled, wanted_classes
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    neighbours: Annotated[int, Range(minimum=1), Help("k of the local outlier factor")] = 20
    nearest: Annotated[int, Range(minimum=1), Help("rows of the class that the distance is a mean of")] = 5
    rows: Annotated[int, Range(minimum=10), Help("training rows looked at, at most; a fixed sample")] = 2000


class Plausibility:
    columns = (
        Column("LOF", "lower", None, "How much thinner are the data around it than around its neighbours?"),
        Column("class distance", "lower", None, "How far are the nearest training rows of its class?"),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        factor, distance = np.full((2, len(answers.valid)), np.nan)
        valid = answers.valid
        if valid.any():
            rows = answers.background[sampled(len(answers.background), self.config.rows)]
            rows = np.unique(rows, axis=0)
            factor[valid] = local_outlier_factor(answers.counterfactuals[valid], rows, self.config.neighbours)
        for _, here, members in wanted_classes(answers, self.config.rows):
            if len(members):
                apart = distances(answers.counterfactuals[here], answers.background[members])
                distance[here] = np.sort(apart, axis=1)[:, : self.config.nearest].mean(axis=1)
        return {"LOF": factor, "class distance": distance}


def local_outlier_factor(vectors: FloatArray, rows: FloatArray, k: int) -> FloatArray:
    """(B,) of vectors (B, d) among distinct rows (n, d); NaN where there are fewer than two rows."""
    if len(rows) < 2:
        return np.full(len(vectors), np.nan)
    k = min(k, len(rows) - 1)
    between = distances_between(rows)
    near, reach = _nearest(between, k)
    density = 1.0 / np.maximum(reach[near], np.take_along_axis(between, near, axis=1)).mean(axis=1)
    across = distances(vectors, rows)
    near, _ = _nearest(across, k)
    own = 1.0 / np.maximum(reach[near], np.take_along_axis(across, near, axis=1)).mean(axis=1)
    return np.asarray(density[near].mean(axis=1) / own)


def _nearest(apart: FloatArray, k: int) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], FloatArray]:
    """(n, k) the k nearest, in no order; (n,) the distance to the k-th."""
    near = np.argpartition(apart, k - 1, axis=1)[:, :k]
    return near, np.take_along_axis(apart, near, axis=1).max(axis=1)
