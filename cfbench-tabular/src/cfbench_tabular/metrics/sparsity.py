"""Sparsity: the share of columns that the counterfactual leaves unchanged.

- sparsity: of encoded columns, (1/d) sum_p [round(c_p, 4) = round(x_p, 4)] (CF-tabular, table 3, which rounds to four
  decimals). A changed category counts as two of its positions.
- raw sparsity: of the columns of the table, (1/M) sum_m [all positions of column m are unchanged]. A changed category
  is one change, however many levels it has.

Higher is better, between 0 and 1. Missing where the counterfactual is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.base import Observed, where_valid
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/sparsity",
    summary="Share of unchanged encoded columns",
    target=f"{__name__}:Sparsity",
    config=f"{__name__}:Config",
    papers=("cftabular2021",),
    details={"factuals suffice": True},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[int, Range(minimum=0), Help("to which both rows are rounded")] = 4


COLUMNS = (
    Column("sparsity", "higher", (0.0, 1.0), "Which share of the encoded columns is unchanged?"),
    Column("raw sparsity", "higher", (0.0, 1.0), "Which share of the table's columns is unchanged?"),
)


class Sparsity:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        decimals = self.config.decimals
        same = np.round(observed.counterfactuals, decimals) == np.round(observed.factuals, decimals)
        starts = [block.start for block in observed.encoding.blocks]
        columns = np.logical_and.reduceat(same, starts, axis=1)
        return {
            "sparsity": where_valid(observed, same.mean(axis=1)),
            "raw sparsity": where_valid(observed, columns.mean(axis=1)),
        }
