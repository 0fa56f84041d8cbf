"""Applies metrics to generated texts; each judge is queried once for all metrics that need it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_text.corpus import Corpus
from cfbench_text.entailment_batches import verdicts
from cfbench_text.judges.base import CONTRADICTION, ENTAILMENT
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.metrics.hallucination import contradicted
from cfbench_text.metrics.stent_bin import entailed
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

if TYPE_CHECKING:
    import pandas as pd

Judged = Mapping[str, Verdicts]
"""The verdicts of each judge, by its label."""


def score_all(
    answers: ObservedTexts, measures: Sequence[Mapping[str, Any]], corpus: Corpus
) -> tuple[dict[str, FloatArray], Judged, dict[str, Mapping[str, str]]]:
    """(B,) values by column, the judges' verdicts, and the signatures of metrics and judges.

    measures: as :meth:`cfbench_text.grid.Measure.parameters` gives them.
    """
    judged, signatures = _query_judges(answers, measures, corpus)
    scores: dict[str, FloatArray] = {}
    for measure in measures:
        metric, label = create(measure["metric"]), measure["label"]
        given = answers if label is None else replace(answers, verdicts=judged[label])
        found = metric.compute(given)
        names = [column.name for column in metric.columns({})]
        if list(found) != names or any(np.shape(found[name]) != (len(answers),) for name in names):
            raise UserError(
                f"{measure['metric']['component']}: must return a number for each text under the names {names}"
            )
        suffix = "" if label is None else f" ({label})"
        scores |= {f"{name}{suffix}": np.asarray(values, dtype=np.float64) for name, values in found.items()}
        if hasattr(metric, "signature"):
            signatures[measure["metric"]["component"]] = dict(metric.signature())
    return scores, judged, signatures


@functools.lru_cache(maxsize=8)
def _prepared(judge: str, corpus: Corpus) -> Any:
    """A judge, from its parameters as JSON, prepared with the training statements; cached for the next chunk."""
    made = create(json.loads(judge))
    made.prepare(corpus.training_statements)
    return made


def _query_judges(
    answers: ObservedTexts, measures: Sequence[Mapping[str, Any]], corpus: Corpus
) -> tuple[dict[str, Verdicts], dict[str, Mapping[str, str]]]:
    wanted: dict[str, set[str]] = {}
    judges: dict[str, Any] = {}
    for measure in measures:
        if measure["label"] is not None:
            wanted.setdefault(measure["label"], set()).update(measure["verdicts"])
            judges[measure["label"]] = measure["judge"]
    judged: dict[str, Verdicts] = {}
    signatures: dict[str, Mapping[str, str]] = {}
    for label, needed in wanted.items():
        judge = _prepared(json.dumps(judges[label], sort_keys=True), corpus)
        sides = (answers.predicted, answers.evidence, answers.texts, answers.references)
        judged[label] = verdicts(judge, needed, *sides)
        signatures[label] = dict(judge.signature())
    return judged, signatures


def statement_rows(units: Sequence[str], answers: ObservedTexts, judged: Judged) -> pd.DataFrame:
    """Every statement of both sides with its verdict, once for each judge.

    Columns: unit, judge, side ("text" or "reference"), statement, topic, sentiment, verdict ("entailed",
    "contradicted" or "unsupported" by the other side), other (the statement of the other side that entails, or
    contradicts, it most; null where none does).

    Verdicts of a judge of pairs of statements are derived as in the metrics ``stent-bin`` and ``hallucination``. If the
    judge only decides whether a document supports a statement, they are derived as in ``st2exp``: "entailed" above
    0.5, otherwise "unsupported", and there is no other.
    """
    import pandas as pd

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
                outcomes = [
                    [("entailed" if s > SUPPORTED else "unsupported", None) for s in row] for row in support
                ]
            for unit, triplets, verdicts_of_unit in zip(units, mine, outcomes, strict=True):
                for t, (verdict, other) in zip(triplets, verdicts_of_unit, strict=True):
                    lines.append((unit, label, side, t.statement, t.topic, t.sentiment, verdict, other))
    names = ["unit", "judge", "side", "statement", "topic", "sentiment", "verdict", "other"]
    return pd.DataFrame(lines, columns=names).astype("string")


SUPPORTED = 0.5
"""The threshold of support, equal to the default of ``st2exp``."""


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
