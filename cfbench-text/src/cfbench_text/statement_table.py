"""Every statement of texts and reviews with its verdict: the table ``statements.parquet`` of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cfbench_text.judges.base import CONTRADICTION, ENTAILMENT
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.metrics.hallucination import contradicted
from cfbench_text.metrics.stent_bin import entailed
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

Judged = Mapping[str, Verdicts]
"""The verdicts of each judge, by its label."""


def statement_rows(units: Sequence[str], answers: ObservedTexts, judged: Judged) -> pd.DataFrame:
    """Every statement of both sides with its verdict, once for each judge.

    Columns: unit, judge, side ("text" or "reference"), statement, topic, sentiment, verdict ("entailed",
    "contradicted" or "unsupported" by the other side), other (the statement of the other side that entails, or
    contradicts, it most; null where none does).

    Verdicts of a judge of pairs of statements are derived as in the metrics ``stent-bin`` and ``hallucination``. If the
    judge only decides whether a document supports a statement, they are derived as in ``st2exp``: "entailed" above
    0.5, otherwise "unsupported", or "undecided" without a verdict, and there is no other.
    """
    lines = []
    for label, found in judged.items():
        sides = (
            ("text", answers.predicted, answers.evidence, found.of_predicted, found.supported),
            ("reference", answers.evidence, answers.predicted, found.of_evidence, found.covered),
        )
        for side, mine, others, matrices, support in sides:
            if matrices:
                outcomes = [_compared(*row) for row in zip(matrices, others, strict=True)]
            else:
                outcomes = [[(_supported(number), None) for number in row] for row in support]
            for unit, triplets, verdicts_of_unit in zip(units, mine, outcomes, strict=True):
                for t, (verdict, other) in zip(triplets, verdicts_of_unit, strict=True):
                    lines.append((unit, label, side, t.statement, t.topic, t.sentiment, verdict, other))
    names = ["unit", "judge", "side", "statement", "topic", "sentiment", "verdict", "other"]
    return pd.DataFrame(lines, columns=names).astype("string")


SUPPORTED = 0.5
"""The threshold of support, equal to the default of ``st2exp``."""


def _supported(number: float) -> str:
    return "undecided" if np.isnan(number) else "entailed" if number > SUPPORTED else "unsupported"


def _compared(matrix: FloatArray, others: Sequence[Triplet]) -> list[tuple[str, str | None]]:
    """The verdict on each statement, and the decisive statement of the other side; from (statements, others, 3)."""
    right, denied = entailed(matrix) > 0, contradicted(matrix) > 0
    found: list[tuple[str, str | None]] = []
    for place in range(len(matrix)):
        for verdict, where, kind in (
            ("entailed", right[place], ENTAILMENT),
            ("contradicted", denied[place], CONTRADICTION),
        ):
            if where.any():
                most = int(np.where(where, matrix[place, :, kind], -1.0).argmax())
                found.append((verdict, others[most].statement))
                break
        else:
            found.append(("unsupported", None))
    return found
