"""Realism: could the counterfactual be a row of the table?

Paper 003, section 2.5 and table 3:

- RUC (univariate): each categorical place is exactly 0 or 1, and each number lies within the range observed
  in the whole table. The range is that of all rows, not of the training rows, so that every factual is
  realistic itself; it is widened by ``slack`` standard deviations for the rounding of arithmetic.
- RMC (multivariate): each one-hot category has exactly one active level, and the data set's own rules between
  columns hold (an area is a product, within what the file rounds); both ways: neither none nor two levels,
  neither more nor less.
- realistic: valid, RUC and RMC; of every factual, so that its mean is the realistic coverage.

RUC and RMC are missing where the answer is not valid.

``rules: study`` repeats the study's checks, which had one side each: of a category one place must be other than
0, whatever its value, so that 0.4 of a level and no other passes; a product (PBC's and BCW's area) is only
checked against being too small, and a ratio against being too large. That is told from the values stored with
its counterfactuals; its RUC has no slack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

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
    rules: Annotated[
        Literal["both-sides", "study"], Help("how RMC checks: both ways, or one-sided as the study did")
    ] = "both-sides"


class Realism:
    columns = (
        Column("RUC", "higher", (0.0, 1.0), "Is each value one that its column can have?"),
        Column(
            "RMC", "higher", (0.0, 1.0), "Does each category have exactly one level, and do the rules hold?"
        ),
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
        check = multivariate if self.config.rules == "both-sides" else multivariate_as_the_study
        rmc = check(answers.encoding, answers.counterfactuals)
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
    """(B,) whether every one-hot group of the vectors (B, d) is exactly one 1, and 0 elsewhere; and all rules."""
    good = encoding.rules_hold(vectors)
    for group in encoding.groups:
        part = vectors[:, group]
        good &= ((part == 1.0).sum(axis=1) == 1) & ((part != 0.0).sum(axis=1) == 1)
    return good


def multivariate_as_the_study(encoding: Encoding, vectors: FloatArray) -> BoolArray:
    """(B,) the same with one side of each check: one place not 0; products not too small, ratios not too large."""
    good = complete(vectors)
    for group in encoding.groups:
        good &= (vectors[:, group] != 0.0).sum(axis=1) == 1
    values = {
        column.name: encoding.decode_number(place, vectors[:, block.start])
        for place, (column, block) in enumerate(zip(encoding.columns, encoding.blocks, strict=True))
        if column.kind == "numeric"
    }
    for rule in encoding.rules:
        wanted = rule.wanted(values)
        over = values[rule.column] - wanted
        tolerance = rule.absolute + rule.relative * np.abs(wanted)
        good &= over >= -tolerance if rule.relation == "product" else over <= tolerance
    return good
