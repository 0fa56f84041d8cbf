"""MD: distances that know how columns go together (Mahalanobis 1936).

- MD: of the counterfactual from its factual, sqrt((c - x)' S^-1 (c - x)): how unlike the usual scatter of the
  data is the change?
- MD to data: of the counterfactual from the mean m of the data, sqrt((c - m)' S^-1 (c - m)): how far out is it?
  (Paper 003's table 3 prints this one; its code computes the first.)

S is the covariance of the training rows; ``over: table`` takes all rows, as the study does. One-hot places of a
category sum to 1, so S is singular wherever there is one; then S^-1 is the pseudo-inverse, which leaves out
directions in which the data do not vary (eigenvalues below 10^-10 of the largest). What an answer does along
these (two levels at once) costs nothing here: that is what RMC is for.

The study passed S where S^-1 belongs, which makes the directions in which the data vary most the most
expensive; ``matrix: covariance`` repeats that. With a cut at 10^-15 (NumPy's default) the pseudo-inverse of
five of its categorical sets is made of rounding errors; hence the larger cut.

Lower is better, from 0. Missing where the answer is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help
from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers, where_valid
from cfbench_tabular.table import FloatArray

CUT = 1e-10
"""Share of the largest eigenvalue below which a direction counts as one without variance."""


@dataclass(frozen=True, kw_only=True)
class Config:
    matrix: Annotated[
        Literal["inverse", "covariance"], Help("inverse of the covariance, or what the study passed for it")
    ] = "inverse"
    over: Annotated[Literal["training", "table"], Help("the rows whose scatter counts; the study: table")] = (
        "training"
    )


class Mahalanobis:
    columns = (
        Column("MD", "lower", None, "How unlike the scatter of the data is the change?"),
        Column("MD to data", "lower", None, "How far out of the data is the counterfactual?"),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        rows = answers.background if self.config.over == "training" else answers.table
        matrix: FloatArray = np.atleast_2d(np.cov(rows, rowvar=False)).astype(np.float64)
        if self.config.matrix == "inverse":
            matrix = np.asarray(np.linalg.pinv(matrix, rcond=CUT, hermitian=True), dtype=np.float64)
        change = answers.counterfactuals - answers.factuals
        place = answers.counterfactuals - rows.mean(axis=0)
        return {
            "MD": where_valid(answers, _lengths(change, matrix)),
            "MD to data": where_valid(answers, _lengths(place, matrix)),
        }


def _lengths(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """(B,) sqrt(v' M v); rounding may make the square of no length negative."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("bi,bi->b", vectors @ matrix, vectors), 0.0)))
