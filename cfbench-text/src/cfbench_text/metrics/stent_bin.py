"""StEnt-bin-P, -R, -F1 (Statement factuality, section IV-B2): StEnt with f = 1 if entailment is the most probable label.

A tie counts as entailment, as E = max(E, C, N) in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.base import ENTAILMENT
from cfbench_text.metrics.base import ObservedTexts, best, ratio_columns, with_f1
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/stent-bin",
    summary="How many statements does the other side entail?",
    target=f"{__name__}:StEntBin",
    needs={"judge": {"verdict": {"entailment"}}},
    papers=("statementfactuality",),
)


def entailed(matrix: FloatArray) -> FloatArray:
    return np.asarray(matrix[..., ENTAILMENT] >= matrix.max(axis=-1), dtype=np.float64)


class StEntBin:
    def __init__(self, config: None = None) -> None: ...

    def columns(self, point: Point) -> Sequence[Column]:
        return ratio_columns(
            "StEnt-bin",
            "How many statements of the text are entailed by a statement of the reference?",
            "How many statements of the reference are entailed by a statement of the text?",
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        verdicts = observed.verdicts
        predicted, evidence = best(verdicts.of_predicted, entailed), best(verdicts.of_evidence, entailed)
        return with_f1("StEnt-bin", predicted, evidence, observed.empty)
