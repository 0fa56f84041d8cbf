"""What judges have in common that only compare how alike two statements are.

Of two statements on different topics neither says anything about the other. On one topic their similarity s, from
0 to 1, is the probability of entailment if their sentiment is the same, that of contradiction if it is the opposite;
with one neutral neither. The rest is "neutral". A document supports a statement as much as its best statement does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cfbench_text.judges.base import CONTRADICTION, ENTAILMENT, NEUTRAL, Document, support_of_the_best
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

OPPOSITES = {("positive", "negative"), ("negative", "positive")}


class Alike(ABC):
    @abstractmethod
    def similarities(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """(N,) in [0, 1], of pairs of statements."""

    def entailment(self, pairs: Sequence[tuple[Triplet, Triplet]]) -> FloatArray:
        found = np.zeros((len(pairs), 3))
        told = [(row, place) for row, pair in enumerate(pairs) if (place := _column(*pair)) is not None]
        if told:
            rows, columns = zip(*told, strict=True)
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
    """What their similarity tells: entailment, contradiction, or nothing."""
    if premise.topic != hypothesis.topic:
        return None
    if premise.sentiment == hypothesis.sentiment:
        return ENTAILMENT
    return CONTRADICTION if (premise.sentiment, hypothesis.sentiment) in OPPOSITES else None
