"""Realism: could the counterfactual be a row of the table?

Paper 003, section 2.5 and table 3:

- RUC (univariate): each categorical place is exactly 0 or 1, and each number lies within the range observed
  in the whole table. The range is that of all rows, not of the training rows, so that every factual is
  realistic itself; it is widened by ``slack`` standard deviations for the rounding of arithmetic.
- RMC (multivariate): each one-hot category has exactly one active level (two-sided: neither none nor two).
- realistic: valid, RUC and RMC; of every factual, so that its mean is the realistic coverage.

RUC and RMC are missing where the answer is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Answers, where_valid
from cfbench_tabular.table import BoolArray, FloatArray, complete


@dataclass(frozen=True, kw_only=True)
class Config:
    slack: Annotated[
        float,
        Range(minimum=0),
        Help("standard deviations that a number may be out of its range; the study: 0"),
    ] = 1e-11


class Realism:
    columns = (
        Column("RUC", "higher", (0.0, 1.0), "Is each value one that its column can have?"),
        Column("RMC", "higher", (0.0, 1.0), "Does each category have exactly one level?"),
        Column(
            "realistic",
            "higher",
            (0.0, 1.0),
            "Is the counterfactual valid and could it be a row of the table?",
        ),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        ruc = univariate(answers.encoding, answers.counterfactuals, self.config.slack)
        rmc = multivariate(answers.encoding, answers.counterfactuals)
        realistic = answers.valid & ruc & rmc
        return {
            "RUC": where_valid(answers, ruc),
            "RMC": where_valid(answers, rmc),
            "realistic": realistic.astype(np.float64),
        }


def univariate(encoding: Encoding, vectors: FloatArray, slack: float) -> BoolArray:
    """(B,) whether every place of the vectors (B, d) has a value that its column can have."""
    low, high = encoding.bounds
    in_range = (vectors >= low - slack) & (vectors <= high + slack)
    zero_or_one = (vectors == 0.0) | (vectors == 1.0)
    return np.asarray(np.where(encoding.numeric, in_range, zero_or_one).all(axis=1))


def multivariate(encoding: Encoding, vectors: FloatArray) -> BoolArray:
    """(B,) whether every one-hot group of the vectors (B, d) is exactly one 1, and 0 elsewhere."""
    good = complete(vectors)
    for group in encoding.groups:
        part = vectors[:, group]
        good &= ((part == 1.0).sum(axis=1) == 1) & ((part != 0.0).sum(axis=1) == 1)
    return good
