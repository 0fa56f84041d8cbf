"""MD: distances that account for correlations between columns (Mahalanobis 1936).

- MD: the distance of the counterfactual from its factual, sqrt((c - x)' S^-1 (c - x)).
- MD to data: its distance from the mean m of the data, sqrt((c - m)' S^-1 (c - m)). CF-tabular, table 3, prints
  this formula; its code computes the first.

S is the covariance of the training rows; ``over: table`` takes all rows, as CF-tabular does. The one-hot positions
of a category sum to 1, so S is singular wherever there is one; then S^-1 is the pseudo-inverse, which ignores
directions without variance (eigenvalues below 10^-10 of the largest). A change along these directions, such as two
levels at once, costs nothing here; RMC detects it.

CF-tabular passes S where S^-1 belongs, which makes the directions of the largest variance the most expensive;
``matrix: covariance`` reproduces this. With NumPy's default threshold of 10^-15 the pseudo-inverse of five of its
categorical data sets consists of rounding errors; hence the larger threshold.

Lower is better, from 0. Missing where the counterfactual is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.base import Observed, where_valid
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/mahalanobis",
    summary="Distances that account for correlations between columns",
    target=f"{__name__}:Mahalanobis",
    config=f"{__name__}:Config",
    papers=(
        "cftabular2021",
        "mahalanobis1936generalized",
    ),
)


CUT = 1e-10
"""Share of the largest eigenvalue below which a direction counts as having no variance."""


@dataclass(frozen=True, kw_only=True)
class Config:
    matrix: Annotated[
        Literal["inverse", "covariance"],
        Help("inverse of the covariance, or the covariance itself as in CF-tabular"),
    ] = "inverse"
    over: Annotated[
        Literal["training", "table"], Help("rows that the covariance is computed from; CF-tabular: table")
    ] = "training"


COLUMNS = (
    Column("MD", "lower", None, "How large is the change relative to the covariance of the data?"),
    Column("MD to data", "lower", None, "How far is the counterfactual from the mean of the data?"),
)


class Mahalanobis:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        rows = observed.background if self.config.over == "training" else observed.table
        matrix: FloatArray = np.atleast_2d(np.cov(rows, rowvar=False)).astype(np.float64)
        if self.config.matrix == "inverse":
            matrix = np.asarray(np.linalg.pinv(matrix, rcond=CUT, hermitian=True), dtype=np.float64)
        change = observed.counterfactuals - observed.factuals
        place = observed.counterfactuals - rows.mean(axis=0)
        return {
            "MD": where_valid(observed, _lengths(change, matrix)),
            "MD to data": where_valid(observed, _lengths(place, matrix)),
        }


def _lengths(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """(B,) sqrt(v' M v), with squares that are negative by rounding set to 0."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("bi,bi->b", vectors @ matrix, vectors), 0.0)))
