"""What a metric observes, and what metrics of statements share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cfbench_core.plan import Column
from cfbench_text.domains import Domain
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

Empty = Literal["zero", "skip"]


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of a judge on B rows. A row has n statements of the text and m of the reference.

    Attributes:
        of_predicted: for each row (n, m, 3): entailment, contradiction, neutral for the premise s_l of the reference
            and the hypothesis s'_k of the text. Empty if no metric needs it.
        of_evidence: for each row (m, n, 3), the other way round.
        supported: for each row (n,) in [0, 1]: how certain it is that the reference supports each statement of the text.
        covered: for each row (m,), the converse. NaN in both: the judge is undecided.
    """

    of_predicted: Sequence[FloatArray] = ()
    of_evidence: Sequence[FloatArray] = ()
    supported: Sequence[FloatArray] = ()
    covered: Sequence[FloatArray] = ()


@dataclass(frozen=True)
class ObservedTexts:
    """B explained rows, as a metric observes them. Rows without a text are not included; an empty text is a text.

    Attributes:
        texts: the generated texts. predicted: their statements.
        references: the reference texts. evidence: the statements of the user's own review.
        domain: the topics.
        empty: how empty sets of statements are scored, see :func:`precision_recall`.
        verdicts: those of one judge, for a metric that needs a judge.
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


def ratio_columns(name: str, of_precision: str, of_recall: str, f1: bool = True) -> tuple[Column, ...]:
    """Columns NAME-P, NAME-R and NAME-F1 in [0, 1]."""
    found = (
        Column(f"{name}-P", "higher", (0.0, 1.0), of_precision),
        Column(f"{name}-R", "higher", (0.0, 1.0), of_recall),
    )
    question = (
        "The harmonic mean of P and R of each explanation; its mean over explanations is not the corpus F1"
    )
    return (*found, Column(f"{name}-F1", "higher", (0.0, 1.0), question)) if f1 else found


def precision_recall(
    of_predicted: Sequence[FloatArray], of_evidence: Sequence[FloatArray], empty: Empty
) -> tuple[FloatArray, FloatArray]:
    """(B,) precision and recall: the mean score of the statements of the text, and of those of the reference.

    A side without statements has no mean and is NaN. With "zero" the other side, which nothing can support, scores 0;
    with "skip" (as in the code of Statement factuality) both sides of the row are NaN.
    """

    def means(values: Sequence[FloatArray], others: Sequence[FloatArray]) -> FloatArray:
        without = 0.0 if empty == "zero" else np.nan
        return np.array(
            [
                np.nan if not len(mine) else _mean(mine) if len(other) else without
                for mine, other in zip(values, others, strict=True)
            ]
        )

    return means(of_predicted, of_evidence), means(of_evidence, of_predicted)


def _mean(values: FloatArray) -> float:
    """Of the statements with a verdict; NaN without any."""
    known = values[~np.isnan(values)]
    return float(np.mean(known)) if len(known) else np.nan


def f1(precision: FloatArray, recall: FloatArray, empty: Empty) -> FloatArray:
    """(B,) harmonic mean, 0 if both are 0. NaN is the value of a side without statements (or questions): with "zero" a
    single one counts as 0, otherwise the mean is NaN."""
    if empty == "zero":
        missing = np.isnan(precision) & np.isnan(recall)
        precision = np.where(np.isnan(precision) & ~missing, 0.0, precision)
        recall = np.where(np.isnan(recall) & ~missing, 0.0, recall)
    total = precision + recall
    return np.where(total == 0, 0.0, 2 * precision * recall / np.where(total == 0, 1.0, total))


def best(matrices: Sequence[FloatArray], score: Callable[[FloatArray], FloatArray]) -> list[FloatArray]:
    """For each row and each of its hypotheses the largest score over all premises; 0 without premises.

    score: (h, p, 3) -> (h, p). :func:`precision_recall` handles rows without premises.
    """
    return [score(matrix).max(axis=1) if matrix.size else np.zeros(matrix.shape[0]) for matrix in matrices]


def with_f1(
    name: str, of_predicted: Sequence[FloatArray], of_evidence: Sequence[FloatArray], empty: Empty
) -> dict[str, FloatArray]:
    """The three columns of :func:`ratio_columns`. F1 is NaN if all verdicts on the statements of a side are undecided."""
    precision, recall = precision_recall(of_predicted, of_evidence, empty)
    undecided = _undecided(of_predicted) | _undecided(of_evidence)
    harmonic = np.where(undecided, np.nan, f1(precision, recall, empty))
    return {f"{name}-P": precision, f"{name}-R": recall, f"{name}-F1": harmonic}


def _undecided(values: Sequence[FloatArray]) -> NDArray[np.bool_]:
    """(B,) whether there are statements, and none with a verdict."""
    return np.array([len(one) > 0 and bool(np.isnan(one).all()) for one in values], dtype=np.bool_)
