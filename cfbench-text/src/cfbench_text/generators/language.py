"""Text as numbers for the generators that learn their vocabulary: words, and back again without loss.

A word includes the preceding space, so punctuation is separated ("great", "," , " and") and a text is restored exactly,
including "3.5", "U.S." and quotation marks, except that runs of whitespace become one space. The vocabulary holds the
most frequent words of the training texts; ties are broken by first occurrence. All other words are encoded as UNKNOWN,
which is never generated. A text longer than the maximum length is truncated and ends with END.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

PAD, BEGIN, END, UNKNOWN = 0, 1, 2, 3
SPECIAL = 4
"""How many numbers come before the first word."""

WORD = re.compile(r" ?(?:\d+(?:[.,:/]\d+)+|\w+(?:['’]\w+)*|[^\w\s])")


def words_of(text: str) -> list[str]:
    """The words and punctuation marks, each with the space before it; the first always has one."""
    plain = " ".join(text.split())
    return WORD.findall(f" {plain}") if plain else []


def joined(words: Iterable[str]) -> str:
    """The inverse of :func:`words_of`."""
    return "".join(words).removeprefix(" ")


@dataclass(frozen=True)
class Vocabulary:
    """The words that can be written; the number of ``words[k]`` is ``SPECIAL + k``."""

    words: tuple[str, ...]

    @staticmethod
    def of(texts: Iterable[str], most: int) -> Vocabulary:
        """The ``most`` most frequent words of the texts."""
        counted: Counter[str] = Counter()
        for text in texts:
            counted.update(words_of(text))
        return Vocabulary(tuple(word for word, _ in counted.most_common(most)))

    def __len__(self) -> int:
        """The number of different numbers, those that are no words included."""
        return SPECIAL + len(self.words)

    @functools.cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {word: SPECIAL + place for place, word in enumerate(self.words)}

    def encode(self, text: str, most: int) -> list[int]:
        """Numbers of the first ``most`` words, then END; nothing for a text without words."""
        words = words_of(text)[:most]
        return [*(self._numbers.get(word, UNKNOWN) for word in words), END] if words else []

    def decode(self, numbers: Sequence[int]) -> str:
        """The text up to END."""
        end = numbers.index(END) if END in numbers else len(numbers)
        return joined(self.words[number - SPECIAL] for number in numbers[:end])
