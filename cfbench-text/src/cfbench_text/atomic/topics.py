"""The topic of a short statement: by its keywords, of which those in the predicate count more than the subject."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from cfbench_text.atomic.lexicon import CUES, PRODUCTS, STRONG

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_DETERMINED = re.compile(
    r"^(?:this|these|the|those|that|it|they)(?:\s+\w+){0,2}?\s+(?=(?:is|are|was|were|has|have|works?|worked|holds?|fits?|"
    r"sounds?|looks?|feels?|plays?|keeps?|stays?|sits?|does|do|makes?|gives?|lasts?|stopped|seems?)\b)",
    re.IGNORECASE,
)
"""The subject, in front of a verb."""


_ADVERB = re.compile(r"\bpretty(?=\s+\w)")
_ENOUGH = 0.7
"""Weight of keywords from which on a statement has a topic."""


class Topics:
    """Keywords of a domain, with those of ``CUES`` for topics of the same short name."""

    def __init__(self, domain: Domain) -> None:
        self._keywords: dict[str, str] = {}
        self._other = ""
        for topic in reversed(domain.topics.values()):
            for word in topic.keywords:
                self._keywords[word] = topic.name
            if topic.takes_all:
                self._other = topic.name
        for name, words in CUES.items():
            if name in domain.topics:
                self._keywords.update(dict.fromkeys(words, name))
        self._longest = max((len(_WORD.findall(word)) for word in self._keywords), default=1)
        self.of = functools.lru_cache(maxsize=65_536)(self._of)

    def _of(self, statement: str) -> str:
        """The topic with the largest weight of keywords, of several the last to appear; "" without keywords."""
        lowered = _ADVERB.sub("", statement.lower())
        subject = _DETERMINED.match(lowered)
        end = subject.end() if subject else 0
        words = [(one.group(), one.start()) for one in _WORD.finditer(lowered)]
        weights: dict[str, float] = {}
        place = 0
        while place < len(words):
            taken = 1
            for size in range(min(self._longest, len(words) - place), 0, -1):
                keyword = " ".join(word for word, _ in words[place : place + size])
                topic = self._keywords.get(keyword)
                if topic:
                    weight = _weight(keyword, size)
                    weight *= 0.4 if words[place][1] < end else 1.0
                    weights[topic] = weights.get(topic, 0.0) + weight + 0.01 * place
                    taken = size
                    break
            place += taken
        best = max(weights, key=lambda topic: weights[topic], default=self._other)
        return best if best == self._other or weights[best] > _ENOUGH else self._other


def _weight(keyword: str, size: int) -> float:
    if keyword in PRODUCTS:
        return _ENOUGH - 0.2
    return 3.0 if keyword in STRONG else 2.0 + 0.5 * (size - 1)
