"""Pairs of statements whose relation is known because they are made: training data without labels by people.

From a statement of a review:

- *entailed*: the same statement; without its words of degree ("very"); as one part of two statements joined by "and";
- *contradicted*: the statement negated, or with a word replaced by its antonym;
- *neither*: a statement of another review on another topic, or on the same topic in other words; two statements joined,
  of which the premise is one; the statement with another number.

A statement of another review with the opposite sentiment on the same topic is not entailed; whether it contradicts is
not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cfbench_text.judges.lexical import NEGATIONS, NUMBER, OPPOSITES
from cfbench_text.judges.overlap import words
from cfbench_text.triplets import Triplet

DEGREE = re.compile(
    r"\b(?:very|really|quite|so|extremely|pretty|absolutely|totally|incredibly|super|too)\s+", re.IGNORECASE
)
AUXILIARY = re.compile(r"\b(is|are|was|were|can|could|will|would|does|do|did|has|have|should)\b")
AND = " and "


@dataclass(frozen=True)
class MadePair:
    """``entailed`` by the premise or not; ``contradicted``: None where it is not known."""

    premise: str
    hypothesis: str
    entailed: bool
    contradicted: bool | None
    document: int


def made_pairs(triplets: Sequence[Triplet], draw: np.random.Generator) -> list[MadePair]:
    """Up to eight pairs of each statement. Statements with a negation are not negated again."""
    return [
        MadePair(premise, hypothesis, entailed, contradicted, place)
        for place, one in enumerate(triplets)
        for premise, hypothesis, entailed, contradicted in _of(one, triplets, draw)
        if hypothesis.strip() and premise.strip()
    ]


Row = tuple[str, str, bool, bool | None]


def _of(one: Triplet, others: Sequence[Triplet], draw: np.random.Generator) -> list[Row]:
    said = one.statement
    found: list[Row] = [(said, said, True, False)]
    plain = DEGREE.sub("", said)
    if plain != said:
        found += [(said, plain, True, False), (plain, said, True, False)]
    for changed in (negated(said), with_antonym(said)):
        if changed:
            found.append((said, changed, False, True))
    if number := NUMBER.search(said):
        other = str(int(draw.integers(2, 500)))
        if other != number.group():
            found.append((said, said.replace(number.group(), other, 1), False, None))
    joined = _another(others, draw, lambda t: t.statement != said and _apart(t.statement, said))
    if joined:
        both = AND.join([said, joined.statement])
        found += [
            (both, said, True, False),
            (said, both, False, False),
            (said, joined.statement, False, False),
        ]
    same = _another(others, draw, lambda t: t.topic == one.topic and _apart(t.statement, said))
    if same:
        opposite = {same.sentiment, one.sentiment} == {"positive", "negative"}
        found.append((said, same.statement, False, None if opposite else False))
    return found


def _another(
    others: Sequence[Triplet], draw: np.random.Generator, fits: Callable[[Triplet], bool]
) -> Triplet | None:
    """One of ten statements drawn at random that fits."""
    drawn = (others[int(place)] for place in draw.integers(0, len(others), size=10))
    return next((one for one in drawn if fits(one)), None)


def _apart(one: str, other: str) -> bool:
    """Whether they share no more than a fourth of their words."""
    first, second = set(words(one)), set(words(other))
    return bool(first and second) and len(first & second) <= 0.25 * min(len(first), len(second))


def negated(statement: str) -> str | None:
    """The statement with "not" behind its first auxiliary verb; None without one, or with a negation."""
    if any(word in NEGATIONS for word in statement.lower().replace("’", "'").split()):
        return None
    changed, count = AUXILIARY.subn(lambda verb: f"{verb.group()} not", statement, count=1)
    return changed if count else None


def with_antonym(statement: str) -> str | None:
    """The statement with its first word that has an antonym replaced by it; None without one."""
    for word in re.findall(r"[A-Za-z]+", statement):
        if word.lower() in OPPOSITES:
            other = min(OPPOSITES[word.lower()])
            return re.sub(rf"\b{word}\b", other, statement, count=1)
    return None
