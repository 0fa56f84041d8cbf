"""Sparsity: the share of what stays as it is.

- sparsity: of encoded columns, (1/d) sum_p [round(c_p, 4) = round(x_p, 4)]. Paper 003, table 3; rounding to
  four decimals is the study's own. A category that changes counts as two of its places.
- raw sparsity: of the table's own columns, (1/M) sum_m [all places of column m stay], which is what people
  count: a category that changes is one change, however many levels it has.

Higher is better, between 0 and 1. Missing where the answer is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers, where_valid
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[int, Range(minimum=0), Help("to which both rows are rounded")] = 4


class Sparsity:
    columns = (
        Column("sparsity", "higher", (0.0, 1.0), "Which share of the encoded columns stays as it is?"),
        Column("raw sparsity", "higher", (0.0, 1.0), "Which share of the table's columns stays as it is?"),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        decimals = self.config.decimals
        same = np.round(answers.counterfactuals, decimals) == np.round(answers.factuals, decimals)
        starts = [block.start for block in answers.encoding.blocks]
        columns = np.logical_and.reduceat(same, starts, axis=1)
        return {
            "sparsity": where_valid(answers, same.mean(axis=1)),
            "raw sparsity": where_valid(answers, columns.mean(axis=1)),
        }
