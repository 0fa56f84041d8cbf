"""The topic of a short statement: by its keywords, of which those in the predicate count more than the subject."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from cfbench_text.atomic.keywords import CUES, PRODUCTS, STRONG
from cfbench_text.atomic.senses import plain

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_DETERMINED = re.compile(
    r"^(?:this|these|the|those|that|it|they)(?:\s+\w+){0,2}?\s+(?=(?:is|are|was|were|has|have|works?|worked|holds?|fits?|"
    r"sounds?|looks?|feels?|plays?|keeps?|stays?|sits?|does|do|makes?|gives?|lasts?|stopped|seems?)\b)",
    re.IGNORECASE,
)
"""The subject, in front of a verb."""


_COMPLEMENT = re.compile(r"\s(?:for|with|like|from|between|compared|as)\s(?!the (?:price|money|cost)\b)")
"""Begins what the statement is not about: "it works great for recording guitars"."""
_PLACE = re.compile(
    r"\s(?:on|in|at|of|around|while|to|when|without|over|through)\s(?!the (?:price|money|cost)\b)"
)
"""Begins it only after a keyword: "it fits my cheap guitar", but "easy on the fingers"."""
_OF_TAIL = 0.3
_CLEAR = 0.3
"""A second topic with at least this share of the weight of the first leaves the topic open."""
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
        self._starting: dict[str, list[tuple[list[str], str, float]]] = {}
        for keyword in sorted(self._keywords, key=lambda word: -len(_WORD.findall(word))):
            parts = _WORD.findall(keyword)
            known = (parts, self._keywords[keyword], _weight(keyword, len(parts)))
            self._starting.setdefault(parts[0], []).append(known)
        self._weights = functools.lru_cache(maxsize=65_536)(self._weighed)

    def of(self, statement: str) -> str:
        """The topic with the largest weight of keywords, of several the last to appear; "" without keywords."""
        weights = self._weights(statement)
        best = max(weights, key=lambda topic: weights[topic], default=self._other)
        return best if best == self._other or weights[best] > _ENOUGH else self._other

    def clear(self, statement: str) -> bool:
        """Whether no second topic comes near the first."""
        first, second = (*sorted(self._weights(statement).values(), reverse=True), 0.0, 0.0)[:2]
        return second < _CLEAR * first or not first

    def _weighed(self, statement: str) -> dict[str, float]:
        """The weight of each topic that has keywords in the statement."""
        lowered = plain(statement)
        words = _WORD.findall(lowered)
        found = self._found(words)
        if not found:
            return {}
        subject = _DETERMINED.match(lowered)
        start = subject.end() if subject else 1
        end = len(_WORD.findall(subject.group())) if subject else 0
        tail = len(words)
        for opening in (_COMPLEMENT, _PLACE) if found[1:] else ():
            ending = opening.search(lowered, start)
            place = len(_WORD.findall(lowered[: ending.start()])) if ending else tail
            if place < tail and (opening is _COMPLEMENT or any(end <= at < place for at, _, _ in found)):
                tail = place
        of_subject = 1.3 if lowered.startswith("the ") else 0.4
        weights: dict[str, float] = {}
        for at, topic, weight in found:
            share = of_subject if at < end else _OF_TAIL if at >= tail else 1.0
            weights[topic] = weights.get(topic, 0.0) + weight * share + 0.01 * at
        return weights

    def _found(self, words: list[str]) -> list[tuple[int, str, float]]:
        """Place, topic and weight of each keyword; of those that start at one place the longest."""
        found = []
        behind = 0
        for place, word in enumerate(words):
            for parts, topic, weight in self._starting.get(word, ()) if place >= behind else ():
                if words[place : place + len(parts)] == parts:
                    found.append((place, topic, weight))
                    behind = place + len(parts)
                    break
        return found


def _weight(keyword: str, size: int) -> float:
    if keyword in PRODUCTS:
        return _ENOUGH - 0.2
    return 3.0 if keyword in STRONG else 2.0 + 0.5 * (size - 1)
