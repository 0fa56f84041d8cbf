"""What a metric is given, and what the suite asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from cfbench_core.plan import Column
from cfbench_text.domains import Domain
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

Empty = Literal["zero", "skip"]


@dataclass(frozen=True)
class Verdicts:
    """What a judge says of B rows; n statements of the text and m of the reference, which differ by row.

    Attributes:
        of_predicted: for each row (n, m, 3): entailment, contradiction, neutral for the premise s_l of the reference
            and the hypothesis s'_k of the text. Empty list if the judge was not asked.
        of_evidence: for each row (m, n, 3), the other way round.
        supported: for each row (n,), how sure it is that the reference supports each statement of the text.
        covered: for each row (m,), the converse.
    """

    of_predicted: Sequence[FloatArray] = ()
    of_evidence: Sequence[FloatArray] = ()
    supported: Sequence[FloatArray] = ()
    covered: Sequence[FloatArray] = ()


@dataclass(frozen=True)
class Answers:
    """B explained rows. Rows for which nobody wrote anything are not among them; an empty text is one.

    Attributes:
        texts: what was written. predicted: its statements.
        references: the true paragraphs. evidence: the statements of the user's own review.
        domain: the topics.
        empty: what is made of empty sets of statements, see :func:`precision_recall`.
        verdicts: of one judge, for a metric that needs one.
    """

    texts: Sequence[str]
    references: Sequence[str]
    predicted: Sequence[tuple[Triplet, ...]]
    evidence: Sequence[tuple[Triplet, ...]]
    domain: Domain
    empty: Empty = "zero"
    verdicts: Verdicts = field(default_factory=Verdicts)

    def __len__(self) -> int:
        return len(self.texts)


class Metric(Protocol):
    """A component of kind "metric": ``Name(config)``, then ``score``. ``columns`` is the class' own.

    One that needs a judge says so by ``needs={"judge": {"verdict": {"entailment"}}}`` (or "support"): it is
    asked once for every judge of the configuration that can answer, and the judge's name is added to its
    columns. A metric that is a property of all texts together is an analysis (``analysis/corpus.py``).
    """

    columns: Sequence[Column]

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        """(B,) values for each name of ``columns``; NaN where the value is missing."""

    def signature(self) -> Mapping[str, str]:
        """What determines its values beside the options: model, versions, direction; may be left out."""


def ratio_columns(name: str, of_precision: str, of_recall: str, f1: bool = True) -> tuple[Column, ...]:
    """Columns NAME-P, NAME-R and NAME-F1 in [0, 1]."""
    found = (
        Column(f"{name}-P", "higher", (0.0, 1.0), of_precision),
        Column(f"{name}-R", "higher", (0.0, 1.0), of_recall),
    )
    question = "Their harmonic mean, of each explanation; the mean over explanations is not the corpus F1"
    return (*found, Column(f"{name}-F1", "higher", (0.0, 1.0), question)) if f1 else found


def precision_recall(
    of_predicted: Sequence[FloatArray], of_evidence: Sequence[FloatArray], empty: Empty
) -> tuple[FloatArray, FloatArray]:
    """(B,) the mean of what each statement of the text, and each of the reference, is worth.

    Without statements there is no mean: NaN, counted apart. With "zero" the other side then has nothing to be
    supported by, 0; with "skip" (as in the code of paper 004) the row says nothing, NaN on both sides.
    """

    def means(values: Sequence[FloatArray], others: Sequence[FloatArray]) -> FloatArray:
        without = 0.0 if empty == "zero" else np.nan
        return np.array(
            [
                np.nan if not len(mine) else float(np.mean(mine)) if len(other) else without
                for mine, other in zip(values, others, strict=True)
            ]
        )

    return means(of_predicted, of_evidence), means(of_evidence, of_predicted)


def f1(precision: FloatArray, recall: FloatArray, empty: Empty) -> FloatArray:
    """(B,) harmonic mean, 0 where both are; with "zero" a missing one of the two counts as 0, else NaN."""
    if empty == "zero":
        missing = np.isnan(precision) & np.isnan(recall)
        precision = np.where(np.isnan(precision) & ~missing, 0.0, precision)
        recall = np.where(np.isnan(recall) & ~missing, 0.0, recall)
    total = precision + recall
    return np.where(total == 0, 0.0, 2 * precision * recall / np.where(total == 0, 1.0, total))


def best(matrices: Sequence[FloatArray], score: Callable[[FloatArray], FloatArray]) -> list[FloatArray]:
    """For each row and each of its hypotheses the largest score over all premises; 0 without premises.

    score: (h, p, 3) -> (h, p). A row without premises is dealt with by :func:`precision_recall`.
    """
    return [score(matrix).max(axis=1) if matrix.size else np.zeros(matrix.shape[0]) for matrix in matrices]


def with_f1(
    name: str, of_predicted: Sequence[FloatArray], of_evidence: Sequence[FloatArray], empty: Empty
) -> dict[str, FloatArray]:
    """The three columns of :func:`ratio_columns`."""
    precision, recall = precision_recall(of_predicted, of_evidence, empty)
    return {f"{name}-P": precision, f"{name}-R": recall, f"{name}-F1": f1(precision, recall, empty)}
