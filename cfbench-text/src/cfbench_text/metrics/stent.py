"""StEnt-P, -R, -F1 (Statement factuality, equations 9 to 11): the entailment of each statement by the other side.

    P = 1/n sum_k max_l E(premise s_l, hypothesis s'_k)    R = 1/m sum_l max_k E(premise s'_k, hypothesis s_l)

P is SummaC-ZS with statements instead of sentences. The direction is that of the paper's text: the evaluated statement
is the hypothesis. (The paper's code passes the arguments to SummaC in the opposite order.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.base import ENTAILMENT
from cfbench_text.metrics.base import ObservedTexts, best, ratio_columns, with_f1
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/stent",
    summary="How surely does the other side entail each statement?",
    target=f"{__name__}:StEnt",
    needs={"judge": {"verdict": {"entailment"}}},
    papers=("statementfactuality",),
)


def entailment(matrix: FloatArray) -> FloatArray:
    return matrix[..., ENTAILMENT]


class StEnt:
    def __init__(self, config: None = None) -> None: ...

    def columns(self, point: Point) -> Sequence[Column]:
        return ratio_columns(
            "StEnt",
            "How surely does a statement of the reference entail each statement of the text?",
            "How surely does a statement of the text entail each statement of the reference?",
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        verdicts = observed.verdicts
        predicted, evidence = best(verdicts.of_predicted, entailment), best(verdicts.of_evidence, entailment)
        return with_f1("StEnt", predicted, evidence, observed.empty)
