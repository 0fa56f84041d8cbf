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
_COMPLEMENT = re.compile(r"\s(?:for|with|like|from|between|compared|as)\s(?!the (?:price|money|cost)\b)")
"""Begins what the statement is not about: "it works great for recording guitars"."""
_OF_TAIL = 0.4
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
        self.of = functools.lru_cache(maxsize=65_536)(self._of)

    def _of(self, statement: str) -> str:
        """The topic with the largest weight of keywords, of several the last to appear; "" without keywords."""
        lowered = _ADVERB.sub("", statement.lower())
        words = _WORD.findall(lowered)
        places = [place for place, word in enumerate(words) if word in self._starting]
        if not places:
            return self._other
        subject = _DETERMINED.match(lowered)
        end = len(_WORD.findall(subject.group())) if subject else 0
        behind_verb = _COMPLEMENT.search(lowered, subject.end() if subject else 1) if places[1:] else None
        tail = len(_WORD.findall(lowered[: behind_verb.start()])) if behind_verb else len(words)
        of_subject = 1.3 if lowered.startswith("the ") else 0.4
        weights: dict[str, float] = {}
        behind = 0
        for place in places:
            for parts, topic, weight in self._starting[words[place]] if place >= behind else ():
                if words[place : place + len(parts)] == parts:
                    share = of_subject if place < end else _OF_TAIL if place >= tail else 1.0
                    counted = weight * share + 0.01 * place
                    weights[topic] = weights.get(topic, 0.0) + counted
                    behind = place + len(parts)
                    break
        best = max(weights, key=lambda topic: weights[topic], default=self._other)
        return best if best == self._other or weights[best] > _ENOUGH else self._other


def _weight(keyword: str, size: int) -> float:
    if keyword in PRODUCTS:
        return _ENOUGH - 0.2
    return 3.0 if keyword in STRONG else 2.0 + 0.5 * (size - 1)
