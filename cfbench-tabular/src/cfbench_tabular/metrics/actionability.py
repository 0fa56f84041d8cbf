"""Actionability: could somebody go from the factual to the counterfactual?

actionable = 1 if every immutable column is as in the factual, every column that only goes up or down went that
way, and every number is within the range of its column (or as far out as the factual's own); else 0. Immutable
columns and directions are the data set's or the user's (``Column.immutable``, ``Column.direction``). Ustun et
al. 2019; paper 003 leaves it out ("most tabular datasets provide just a static picture").

A table that says nothing about its columns constrains their ranges alone. The slack is for the rounding of
arithmetic, as in RUC. Higher is better. Missing where the answer is not valid.
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
    slack: Annotated[
        float, Range(minimum=0), Help("standard deviations that a number may be out of what is allowed")
    ] = 1e-11


class Actionability:
    columns = (
        Column(
            "actionable",
            "higher",
            (0.0, 1.0),
            "Does it leave alone what cannot change, and go where columns may go?",
        ),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        low, high = answers.encoding.allowed(answers.factuals)
        slack = self.config.slack
        kept = (answers.counterfactuals >= low - slack) & (answers.counterfactuals <= high + slack)
        return {"actionable": where_valid(answers, np.asarray(kept.all(axis=1)))}
