"""StCoh-P, -R (Statement factuality, section IV-B2): StEnt with f = E - C, so that contradiction scores below neutral.

    P = 1/n sum_k max_l [E - C](premise s_l, hypothesis s'_k), in [-1, 1]; R is the converse

There is no F1, because a harmonic mean of negative numbers is not meaningful.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.base import CONTRADICTION, ENTAILMENT
from cfbench_text.metrics.base import ObservedTexts, best, precision_recall
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/stcoh",
    summary="Entailment minus contradiction of each statement",
    target=f"{__name__}:StCoh",
    needs={"judge": {"verdict": {"entailment"}}},
    papers=("statementfactuality",),
)


def coherence(matrix: FloatArray) -> FloatArray:
    return matrix[..., ENTAILMENT] - matrix[..., CONTRADICTION]


class StCoh:
    def __init__(self, config: None = None) -> None: ...

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column(
                "StCoh-P",
                "higher",
                (-1.0, 1.0),
                "Does the reference entail the text rather than contradict it?",
            ),
            Column(
                "StCoh-R",
                "higher",
                (-1.0, 1.0),
                "Does the text entail the reference rather than contradict it?",
            ),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        verdicts = observed.verdicts
        predicted, evidence = best(verdicts.of_predicted, coherence), best(verdicts.of_evidence, coherence)
        precision, recall = precision_recall(predicted, evidence, observed.empty)
        return {"StCoh-P": precision, "StCoh-R": recall}
