"""MADD: the distance of the counterfactual scaled by the spread of each column.

    MADD(x, c) = mean over numeric positions |c_p - x_p| / MAD_p  +  mean over categorical positions [c_p != x_p]

with MAD_p the median absolute deviation from the median (Wachter et al. 2017; CF-tabular, table 3, which calls it
a mean). It is that of the training rows; ``over: table`` takes all rows, as CF-tabular does.

A column of which more than half the rows are equal has the MAD 0. CF-tabular adds 1e-8 to every MAD, so that a
change of such a column weighs 10^8 times any other (``zero_mad: paper``). The default replaces a MAD of 0 by the
mean absolute deviation from the median, then by the range of the whole table, then by 1 (one standard deviation).

Lower is better, from 0. Missing where the counterfactual is not valid. CF-tabular scales by the MAD before it
removes failed factuals, so that these affect the values of all others; here each factual is scored by itself.
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
    id="tabular/metric/madd",
    summary="Manhattan distance scaled by each column's median absolute deviation",
    target=f"{__name__}:MADD",
    config=f"{__name__}:Config",
    papers=(
        "cftabular2021",
        "wachter2017counterfactual",
    ),
)


PAPER = 1e-8
"""The constant that CF-tabular adds to every MAD."""


@dataclass(frozen=True, kw_only=True)
class Config:
    zero_mad: Annotated[
        Literal["fallback", "paper"],
        Help("columns with a MAD of 0: scaled by mean deviation or range, or by 1e-8 as in CF-tabular"),
    ] = "fallback"
    over: Annotated[
        Literal["training", "table"], Help("rows that the spread is computed from; CF-tabular: table")
    ] = "training"


COLUMNS = (
    Column("MADD", "lower", None, "How far is the counterfactual, scaled by the spread of each column?"),
)


class MADD:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        numeric = observed.encoding.numeric
        distance = np.zeros(len(observed.factuals))
        if numeric.any():
            apart = np.abs(observed.counterfactuals - observed.factuals)[:, numeric]
            distance += (apart / self.spread(observed)).mean(axis=1)
        if not numeric.all():
            distance += (observed.counterfactuals != observed.factuals)[:, ~numeric].mean(axis=1)
        return {"MADD": where_valid(observed, distance)}

    def spread(self, observed: Observed) -> FloatArray:
        """(numeric positions,) the divisors of the changes."""
        numeric = observed.encoding.numeric
        rows = (observed.background if self.config.over == "training" else observed.table)[:, numeric]
        deviations = np.abs(rows - np.median(rows, axis=0))
        mad = np.median(deviations, axis=0)
        if self.config.zero_mad == "paper":
            return np.asarray(mad + PAPER)
        low, high = observed.encoding.bounds
        spread = np.ones_like(mad)
        for narrower in ((high - low)[numeric], deviations.mean(axis=0), mad):
            spread = np.where(narrower > 1e-12, narrower, spread)
        return spread
