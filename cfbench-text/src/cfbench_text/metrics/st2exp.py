"""St2Exp-P, -R, -F1 (Statement factuality, equations 6 to 8): does the other side's text support each statement?

    P = 1/n sum_k f(s'_k, e)    R = 1/m sum_l f(s_l, e')    F1 = 2 P R / (P + R)

f is 1 if the judge's support of the statement by the document exceeds ``threshold``; without a threshold f is the
support itself. In the paper the judge is an LLM; here it is the judge that the column names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts, ratio_columns, with_f1
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/st2exp",
    summary="Does the other side's text support each statement?",
    target=f"{__name__}:St2Exp",
    config=f"{__name__}:Config",
    needs={"judge": {"verdict": {"support"}}},
    papers=("statementfactuality",),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    threshold: Annotated[
        float | None, Range(minimum=0, below=1), Help("supported above it; none: the judge's own number")
    ] = 0.5


class St2Exp:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> Sequence[Column]:
        return ratio_columns(
            "St2Exp",
            "How many statements of the text does the reference support?",
            "How many statements of the reference does the text support?",
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        verdicts = observed.verdicts
        predicted, evidence = map(self._values, verdicts.supported), map(self._values, verdicts.covered)
        return with_f1("St2Exp", list(predicted), list(evidence), observed.empty)

    def _values(self, support: FloatArray) -> FloatArray:
        if self.config.threshold is None:
            return support
        return np.where(np.isnan(support), np.nan, support > self.config.threshold)
