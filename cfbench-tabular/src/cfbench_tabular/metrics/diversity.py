"""Diversity of the counterfactuals of one factual (Mothilal et al. 2020, section 3.1).

- #distinct: the number of distinct valid counterfactuals (after rounding to ``decimals`` decimals).
- diversity: the mean Euclidean distance between two of them, in standard deviations.
- column diversity: the mean share of the table's columns in which two of them differ ("count diversity").

For studies with several counterfactuals per factual (``protocol.counterfactuals_per_instance``). Higher is better;
column diversity is between 0 and 1. The diversities are missing where there are fewer than two distinct valid
counterfactuals; #distinct is then 0 or 1.
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
from cfbench_tabular.metrics.neighbours import distances
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/diversity",
    summary="Number of distinct counterfactuals per factual and their distances",
    target=f"{__name__}:Diversity",
    config=f"{__name__}:Config",
    papers=("mothilal2020dice",),
    details={"protocol": "counterfactuals_per_instance"},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[
        int, Range(minimum=0), Help("to which counterfactuals are rounded before they are compared")
    ] = 4


COLUMNS = (
    Column("#distinct", "higher", None, "How many distinct valid counterfactuals are there?"),
    Column("diversity", "higher", None, "How far apart are two valid counterfactuals of the same factual?"),
    Column("column diversity", "higher", (0.0, 1.0), "In which share of the columns do two of them differ?"),
)


class Diversity:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        number, apart, columns = np.full((3, len(observed.valid)), np.nan)
        starts = [block.start for block in observed.encoding.blocks]
        for unit, (found, valid) in enumerate(
            zip(observed.alternatives, observed.alternatives_valid, strict=True)
        ):
            # + 0.0 turns -0.0 into 0.0, so that the two compare equal
            distinct = np.unique(np.round(found[valid], self.config.decimals) + 0.0, axis=0)
            number[unit] = len(distinct)
            if len(distinct) < 2:
                continue
            first, second = np.triu_indices(len(distinct), k=1)
            apart[unit] = distances(distinct, distinct)[first, second].mean()
            changed = np.logical_or.reduceat(distinct[first] != distinct[second], starts, axis=1)
            columns[unit] = changed.mean()
        return {"#distinct": number, "diversity": apart, "column diversity": columns}
