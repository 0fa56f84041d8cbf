"""Hallucination and omission (defined by cfbench): shares of statements that are wrong, and that are missing.

- ``hallucinated``: the share of the text's statements that no statement of the reference entails (entailment is not the
  most probable of three); 1 - StEnt-bin-P.
- ``contradicted``: the share of the text's statements that no statement of the reference entails and some statement
  contradicts. The other hallucinated statements are unsupported: the review does not mention them.
- ``omitted``: the share of the reference's statements that no statement of the text entails; 1 - StEnt-bin-R.

For a text without statements ``hallucinated`` and ``contradicted`` are undefined (NaN) and ``omitted`` is 1.
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
        right, covered = best(verdicts.of_predicted, entailed), best(verdicts.of_evidence, entailed)
        denied = [
            against * (1 - supported)
            for against, supported in zip(best(verdicts.of_predicted, contradicted), right, strict=True)
        ]
        precision, recall = precision_recall(right, covered, empty)
        against, _ = precision_recall(denied, covered, empty)
        return {"hallucinated": 1 - precision, "contradicted": against, "omitted": 1 - recall}
