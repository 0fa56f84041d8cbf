"""Base class of the judges that derive their verdicts from the similarity of two statements.

Statements on different topics are neutral. For statements on one topic the similarity s in [0, 1] is the probability
of entailment if their sentiments are equal, and the probability of contradiction if they are opposite; the remaining
probability is neutral. A pair with one neutral sentiment is neutral. A document supports a statement as much as its
best statement does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cfbench_text.documents import Document
from cfbench_text.judges.base import CONTRADICTION, ENTAILMENT, NEUTRAL, support_of_the_best
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

OPPOSITES = {("positive", "negative"), ("negative", "positive")}


class SimilarityJudge(ABC):
    @abstractmethod
    def similarities(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """(N,) in [0, 1], of pairs of statements."""

    def entailment(self, pairs: Sequence[tuple[Triplet, Triplet]]) -> FloatArray:
        found = np.zeros((len(pairs), 3))
        related = [(row, place) for row, pair in enumerate(pairs) if (place := _column(*pair)) is not None]
        if related:
            rows, columns = zip(*related, strict=True)
            compared = [(pairs[row][0].statement, pairs[row][1].statement) for row in rows]
            found[list(rows), list(columns)] = self.similarities(compared)
        found[:, NEUTRAL] = 1 - found[:, ENTAILMENT] - found[:, CONTRADICTION]
        return found

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        return support_of_the_best(self, pairs)

    @abstractmethod
    def prepare(self, statements: Collection[str]) -> None: ...

    @abstractmethod
    def signature(self) -> Mapping[str, str]: ...


def _column(premise: Triplet, hypothesis: Triplet) -> int | None:
    """The column of the verdict that the similarity is the probability of; None for a neutral pair."""
    if premise.topic != hypothesis.topic:
        return None
    if premise.sentiment == hypothesis.sentiment:
        return ENTAILMENT
    return CONTRADICTION if (premise.sentiment, hypothesis.sentiment) in OPPOSITES else None
