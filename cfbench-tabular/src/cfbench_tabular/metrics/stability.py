"""Stability: does the explainer give the same answer again?

stability = 1 if a second call, with the same model and factual and another random stream, gives the same
counterfactual to ``decimals`` decimals; else 0. Paper 003, table 3 and fig. 5, whose formula asks whether the
differences *sum* to zero, so that changes that cancel out count as none; here every column must agree.

With the same stream every explainer repeats itself exactly (the conformance kit sees to it), so what is asked
is how much of an answer is chance. A study asks for the second call with ``protocol.again``; it takes as long
as the first.

Higher is better. No answer twice, or the second call was not made: missing. An answer once and none the other
time: 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.table import FloatArray, complete


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[int, Range(minimum=0), Help("to which both answers are rounded")] = 4


class Stability:
    columns = (
        Column(
            "stability", "higher", (0.0, 1.0), "Is it the same answer when asked again, with another seed?"
        ),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        if answers.again is None:
            return {"stability": np.full(len(answers.valid), np.nan)}
        decimals = self.config.decimals
        same = (np.round(answers.counterfactuals, decimals) == np.round(answers.again, decimals)).all(axis=1)
        asked = complete(answers.counterfactuals) | complete(answers.again)
        return {"stability": np.where(asked, same, np.nan)}
