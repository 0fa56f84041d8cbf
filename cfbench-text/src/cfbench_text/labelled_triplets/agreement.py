"""Compares extracted triplets with labelled ones, each statement with at most one label.

A statement matches a label if at least half of the content words of each are in the other. It is *right* if it matches
a label whose topic and sentiment are also its own. Statements without a common content word with any label, or with too
few, are *none*: no statement about the product, as the annotators read the text. The words are compared, not the places,
so that extractors that rewrite statements can be measured.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from scipy.optimize import linear_sum_assignment

from cfbench_text.triplets import Triplet

Outcome = Literal["right", "topic", "sentiment", "topic and sentiment", "boundaries", "none"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""What an extracted triplet is. topic, sentiment: the wrong one on a matching statement. boundaries: a part of a label,
too much beside it, several labels in one statement, or a label that another statement has already matched."""

SHARE = 0.5
"""Of the content words, in both directions."""

_WORD = re.compile(r"\w+")


_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an the is are was were be been am it its this that these those they them their i my me we our you your he his
        she her of to in on for with at by from and or as so do does did has have had very really just also s t d ve re ll
        m there
        """,
    )
)


def content_words(statement: str) -> Counter[str]:
    """Words in lower case without function words and a plural s; all words if there are only function words."""
    words = _WORD.findall(statement.lower())
    content = [word for word in words if word not in _FUNCTION_WORDS] or words
    return Counter(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in content)


def overlap(first: Counter[str], second: Counter[str]) -> tuple[float, float]:
    """Shares of the words of ``first`` and of ``second`` that are in the other."""
    common = (first & second).total()
    return common / max(1, first.total()), common / max(1, second.total())


def outcomes(extracted: Sequence[Triplet], labels: Sequence[Triplet]) -> list[Outcome]:
    """What each extracted triplet is; the assignment of statements to labels makes as many right as possible."""
    if not extracted or not labels:
        return ["none"] * len(extracted)
    shares = np.array(
        [
            [overlap(words, known) for known in map(content_words, (t.statement for t in labels))]
            for words in map(content_words, (t.statement for t in extracted))
        ]
    )
    matches = shares.min(axis=2) >= SHARE
    same = np.array(
        [[(a.topic == b.topic) + (a.sentiment == b.sentiment) for b in labels] for a in extracted]
    )
    # One more match outweighs any common words; a right triplet outweighs two that are not.
    value = np.where(matches, 1 + 2.0 * (same == 2) + 0.25 * same + 0.01 * shares.sum(axis=2), 0.0)
    chosen = dict(zip(*(side.tolist() for side in linear_sum_assignment(-value)), strict=True))
    several = (shares[:, :, 1] >= SHARE).sum(axis=1) > 1
    found: list[Outcome] = []
    for place, triplet in enumerate(extracted):
        label = chosen.get(place)
        if label is not None and matches[place, label]:
            found.append(_compared(triplet, labels[label]))
        else:
            touches = shares[place].max(axis=1) >= SHARE
            found.append("boundaries" if several[place] or touches.any() else "none")
    return found


def _compared(triplet: Triplet, label: Triplet) -> Outcome:
    if triplet.topic != label.topic:
        return "topic" if triplet.sentiment == label.sentiment else "topic and sentiment"
    return "right" if triplet.sentiment == label.sentiment else "sentiment"
