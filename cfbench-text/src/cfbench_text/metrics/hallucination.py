"""Hallucination and omission (ours): shares of statements that are wrong, and of those that are missing.

- ``hallucinated``: of the statements of the text, those that no statement of the reference entails (entailment is
  not the likeliest of three); 1 - StEnt-bin-P.
- ``contradicted``: of the statements of the text, those that no statement of the reference entails and some
  contradicts. The others that are hallucinated are unsupported: the user said nothing of the kind.
- ``omitted``: of the statements of the reference, those that no statement of the text entails; 1 - StEnt-bin-R.

A text without statements hallucinates nothing that could be counted (NaN) and omits everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.base import CONTRADICTION
from cfbench_text.metrics.base import ObservedTexts, best, precision_recall
from cfbench_text.metrics.stent_bin import entailed
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/hallucination",
    summary="Shares of statements that are wrong, denied, or missing",
    target=f"{__name__}:Hallucination",
    needs={"judge": {"verdict": {"entailment"}}},
)


def contradicted(matrix: FloatArray) -> FloatArray:
    """Where contradiction is likelier than both others."""
    others = np.delete(matrix, CONTRADICTION, axis=-1).max(axis=-1)
    return np.asarray(matrix[..., CONTRADICTION] > others, dtype=np.float64)


class Hallucination:
    def __init__(self, config: None = None) -> None: ...

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column(
                "hallucinated", "lower", (0.0, 1.0), "Share of the text's statements that the user never made"
            ),
            Column(
                "contradicted", "lower", (0.0, 1.0), "Share of the text's statements that the user denies"
            ),
            Column("omitted", "lower", (0.0, 1.0), "Share of the user's statements that the text leaves out"),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        verdicts, empty = observed.verdicts, observed.empty
        right, told = best(verdicts.of_predicted, entailed), best(verdicts.of_evidence, entailed)
        denied = [
            against * (1 - supported)
            for against, supported in zip(best(verdicts.of_predicted, contradicted), right, strict=True)
        ]
        precision, recall = precision_recall(right, told, empty)
        against, _ = precision_recall(denied, told, empty)
        return {"hallucinated": 1 - precision, "contradicted": against, "omitted": 1 - recall}
