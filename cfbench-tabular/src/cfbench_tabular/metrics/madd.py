"""MADD: how far the counterfactual is in units of each column's own spread.

    MADD(x, c) = mean over numeric places |c_p - x_p| / MAD_p  +  mean over categorical places [c_p != x_p]

with MAD_p the median absolute deviation from the median (Wachter et al. 2017; paper 003, table 3, which calls
it a mean). It is that of the training rows; ``over: table`` takes all rows, as the study does.

A column of which more than half the rows are equal has the MAD 0. The study adds 1e-8 to every MAD, so that a
change of such a column weighs 10^8 times any other (``zero_mad: paper`` repeats that). Here its spread is the
mean absolute deviation from the median instead; where that is 0 too (the column is constant there) the range
of the whole table; and 1, one standard deviation, where even that is 0.

Lower is better, from 0. Missing where the answer is not valid. The study scaled by the MAD before it dropped
failed factuals, so that these shifted everyone else's; here each answer is scored by itself.
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

PAPER = 1e-8
"""What the study adds to every MAD."""


@dataclass(frozen=True, kw_only=True)
class Config:
    zero_mad: Annotated[
        Literal["fallback", "paper"],
        Help("columns without MAD: by their mean deviation or range, or the study's 1e-8"),
    ] = "fallback"
    over: Annotated[Literal["training", "table"], Help("the rows whose spread counts; the study: table")] = (
        "training"
    )


class MADD:
    columns = (
        Column(
            "MADD", "lower", None, "How far, in units of each column's own spread, is the counterfactual?"
        ),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        numeric = answers.encoding.numeric
        distance = np.zeros(len(answers.factuals))
        if numeric.any():
            apart = np.abs(answers.counterfactuals - answers.factuals)[:, numeric]
            distance += (apart / self.spread(answers)).mean(axis=1)
        if not numeric.all():
            distance += (answers.counterfactuals != answers.factuals)[:, ~numeric].mean(axis=1)
        return {"MADD": where_valid(answers, distance)}

    def spread(self, answers: Answers) -> FloatArray:
        """(numeric places,) what a change of each is divided by."""
        numeric = answers.encoding.numeric
        rows = (answers.background if self.config.over == "training" else answers.table)[:, numeric]
        deviations = np.abs(rows - np.median(rows, axis=0))
        mad = np.median(deviations, axis=0)
        if self.config.zero_mad == "paper":
            return np.asarray(mad + PAPER)
        low, high = answers.encoding.bounds
        spread = np.ones_like(mad)
        for narrower in ((high - low)[numeric], deviations.mean(axis=0), mad):
            spread = np.where(narrower > 1e-12, narrower, spread)
        return spread
