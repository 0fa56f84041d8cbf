"""ROUGE-1, ROUGE-2, ROUGE-L (Lin 2004), F1 of each explanation: lower-cased letters and digits, no stemming.

Equal to ``rouge-score`` (ROUGE-L of the whole text as one sequence), which the tests compare with. It is implemented
here because that package requires NLTK. It does not measure factuality.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/rouge",
    summary="Words shared with the reference",
    target=f"{__name__}:ROUGE",
    papers=("lin2004rouge",),
)


_TOKEN = re.compile(r"[a-z0-9]+")


class ROUGE:
    def __init__(self, config: None = None) -> None: ...

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column("ROUGE-1", "higher", (0.0, 1.0), "Are the words those of the reference? F1"),
            Column("ROUGE-2", "higher", (0.0, 1.0), "Are the pairs of words those of the reference? F1"),
            Column("ROUGE-L", "higher", (0.0, 1.0), "Are the words in the order of the reference? F1"),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        rows = [
            rouge(text, reference) if reference else (np.nan,) * 3
            for text, reference in zip(observed.texts, observed.references, strict=True)
        ]
        values = np.asarray(rows, dtype=np.float64).reshape(len(rows), 3)
        return {column.name: values[:, place] for place, column in enumerate(self.columns({}))}


def rouge(text: str, reference: str) -> tuple[float, float, float]:
    """F1 of single words, of pairs, and of the longest common subsequence."""
    words, others = _TOKEN.findall(text.lower()), _TOKEN.findall(reference.lower())
    pairs, other_pairs = list(pairwise(words)), list(pairwise(others))
    return (
        _f1((Counter(words) & Counter(others)).total(), len(words), len(others)),
        _f1((Counter(pairs) & Counter(other_pairs)).total(), len(pairs), len(other_pairs)),
        _f1(longest_common(words, others), len(words), len(others)),
    )


def _f1(common: int, mine: int, others: int) -> float:
    return 2 * common / (mine + others) if common else 0.0


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence: bits of one integer stand for places (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(one)) - 1
    row = every
    for word in other:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & every
    return len(one) - row.bit_count()
