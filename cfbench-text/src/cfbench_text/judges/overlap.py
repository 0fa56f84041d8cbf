"""``overlap``: a judge that compares words and uses no model.

It does not judge meaning. Its similarity (see ``similarity_judge.py``) is the cosine of tf-idf vectors: lower-cased
words without stop words, raw term frequency, idf = ln((1 + n) / (1 + df)) + 1 over the statements of the training
reviews. Equal statements have similarity 1.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.similarity_judge import SimilarityJudge
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/judge/overlap",
    summary="Topic, sentiment and tf-idf of words: compares words, not meaning",
    target=f"{__name__}:Overlap",
    provides={"verdict": {"entailment", "support"}},
)


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have he her his i if in into is it
    it's its just my of on or our she so than that the their them then there these they this those to too was we
    were what when which who will with would you your user
    """.split()  # noqa: SIM905 (as people write lists of words)
)


class Overlap(SimilarityJudge):
    near_identical = 0.6

    def __init__(self, config: None = None) -> None:
        self._idf: Mapping[str, float] = {}
        self._unseen = 1.0
        self._vector = functools.lru_cache(maxsize=10_000)(self._new_vector)

    def prepare(self, statements: Collection[str]) -> None:
        counts = Counter(word for statement in statements for word in set(words(statement)))
        n = len(statements)
        self._idf = {word: math.log((1 + n) / (1 + count)) + 1 for word, count in counts.items()}
        self._unseen = math.log(1 + n) + 1
        self._vector.cache_clear()

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        return np.array([self.similarity(one, other) for one, other in pairs], dtype=np.float64)

    def signature(self) -> Mapping[str, str]:
        return {"judge": "overlap (words, not meaning)"}

    def similarity(self, one: str, other: str) -> float:
        """Cosine of two statements; 1 for equal ones, even of stop words alone."""
        if one == other:
            return 1.0
        first, second = self._vector(one), self._vector(other)
        if len(second) < len(first):
            first, second = second, first
        return min(1.0, math.fsum(weight * second.get(word, 0.0) for word, weight in first.items()))

    def _new_vector(self, statement: str) -> Mapping[str, float]:
        weights = {w: tf * self._idf.get(w, self._unseen) for w, tf in Counter(words(statement)).items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()}


def words(statement: str) -> list[str]:
    """Its words in lower case, without stop words."""
    return [word for word in _WORD.findall(statement.lower()) if word not in STOP_WORDS]
