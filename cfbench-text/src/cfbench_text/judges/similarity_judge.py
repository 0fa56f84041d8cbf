"""Base class of the judges that derive their verdicts from the similarity of two statements.

For statements on one topic the similarity s in [0, 1] is the probability of entailment if their sentiments are equal, and
the probability of contradiction if they are opposite; the remaining probability is neutral. Statements on different
topics, and pairs of which one is neutral, are unrelated, unless s is at least :attr:`SimilarityJudge.near_identical`: topics
and sentiments are labels of an extractor, which may give one fact two of them ("the headband is comfortable", "this has
a very comfortable headband"). A document supports a statement as much as its best statement does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np

from cfbench_text.documents import Document
from cfbench_text.judges.base import CONTRADICTION, ENTAILMENT, NEUTRAL, support_of_the_best
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

OPPOSITES = {("positive", "negative"), ("negative", "positive")}


class SimilarityJudge(ABC):
    near_identical: ClassVar[float]
    """From this similarity on, neither another topic nor a neutral sentiment makes two statements unrelated."""

    @abstractmethod
    def similarities(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """(N,) in [0, 1], of pairs of statements."""

    def entailment(self, pairs: Sequence[tuple[Triplet, Triplet]]) -> FloatArray:
        found = np.zeros((len(pairs), 3))
        if pairs:
            alike = self.similarities([(one.statement, other.statement) for one, other in pairs])
            counts = np.array([_labels_agree(*pair) for pair in pairs]) | (alike >= self.near_identical)
            columns = [_column(*pair) for pair in pairs]
            found[np.arange(len(pairs)), columns] = np.where(counts, alike, 0.0)
        found[:, NEUTRAL] = 1 - found[:, ENTAILMENT] - found[:, CONTRADICTION]
        return found

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        return support_of_the_best(self, pairs)

    @abstractmethod
    def prepare(self, statements: Collection[str]) -> None: ...

    @abstractmethod
    def signature(self) -> Mapping[str, str]: ...


def _labels_agree(premise: Triplet, hypothesis: Triplet) -> bool:
    """Whether they are on one topic, and both or neither of them neutral."""
    neutral = [one.sentiment == "neutral" for one in (premise, hypothesis)]
    return premise.topic == hypothesis.topic and neutral[0] == neutral[1]


def _column(premise: Triplet, hypothesis: Triplet) -> int:
    """The verdict that the similarity is the probability of."""
    return CONTRADICTION if (premise.sentiment, hypothesis.sentiment) in OPPOSITES else ENTAILMENT
