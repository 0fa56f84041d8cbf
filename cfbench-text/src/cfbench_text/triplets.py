"""Statements with topic and sentiment, and the template of Statement factuality (section III-B) for paragraphs.

A paragraph has a sentence for each sentiment, in the order positive, negative, neutral::

    The user would appreciate this product because A, and B. However, they may dislike that C. They seem
    indifferent to D.

:func:`parse` is the exact inverse of :func:`render` for any statements: a statement that could be mistaken for the
template (a comma with "and", a leading quotation mark, the opening of another sentence, surrounding whitespace) is
quoted, with inner quotation marks doubled. The topic is not part of the text; the parser receives a function for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

Sentiment = Literal["positive", "negative", "neutral"]
SENTIMENTS: tuple[Sentiment, ...] = get_args(Sentiment)

FIRST = {
    "positive": "The user would appreciate this product because ",
    "negative": "The user may dislike that ",
    "neutral": "The user seems indifferent to ",
}
"""How the first sentence of a paragraph opens, and a statement that stands alone."""

LATER = {
    "positive": "They would appreciate this product because ",  # never first to come later; read, not written
    "negative": "However, they may dislike that ",
    "neutral": "They seem indifferent to ",
}
BETWEEN = ", and "
_OPENINGS = tuple((opening, name) for table in (FIRST, LATER) for name, opening in table.items())
_MARKS = tuple(f". {opening}" for opening, _ in _OPENINGS)


@dataclass(frozen=True)
class Triplet:
    """A statement of one fact, the topic of the domain that it is about, and the user's sentiment."""

    statement: str
    topic: str
    sentiment: Sentiment


@dataclass(frozen=True)
class PlainStatement(Triplet):
    """A sentence of a text without topics, for example of news: judges see it as it is written."""

    topic: str = ""
    sentiment: Sentiment = "neutral"


def canonical(triplets: Iterable[Triplet]) -> tuple[Triplet, ...]:
    """By sentiment, in the order in which they came, each statement of a sentiment once."""
    known: dict[tuple[str, str], Triplet] = {}
    for triplet in triplets:
        known.setdefault((triplet.sentiment, triplet.statement), triplet)
    return tuple(sorted(known.values(), key=lambda triplet: SENTIMENTS.index(triplet.sentiment)))


def render(triplets: Iterable[Triplet]) -> str:
    """The paragraph; an empty text for no statements."""
    ordered = canonical(triplets)
    sentences: list[str] = []
    for sentiment in SENTIMENTS:
        statements = [_written(t.statement) for t in ordered if t.sentiment == sentiment]
        if statements:
            opening = (LATER if sentences else FIRST)[sentiment]
            sentences.append(f"{opening}{BETWEEN.join(statements)}.")
    return " ".join(sentences)


def sentence(triplet: Triplet) -> str:
    """One statement as a sentence of its own, so that its sentiment is part of what is judged."""
    if isinstance(triplet, PlainStatement):
        return triplet.statement
    return f"{FIRST[triplet.sentiment]}{triplet.statement}."


def parse(text: str, topic_of: Callable[[str], str]) -> tuple[Triplet, ...] | None:
    """The statements of a paragraph in the template's form; None for another text.

    A text that a model wrote may end without its full stop. The empty text has no statements.

    Args:
        topic_of: returns the topic of a statement, which the paragraph does not contain.
    """
    if not text:
        return ()
    found: list[Triplet] = []
    place = 0
    while place < len(text):
        opening = next(((o, name) for o, name in _OPENINGS if text.startswith(o, place)), None)
        if opening is None:
            return None
        place += len(opening[0])
        statements, place = _statements(text, place)
        found += [Triplet(s, topic_of(s), cast(Sentiment, opening[1])) for s in statements]
    return canonical(found)


def _statements(text: str, place: int) -> tuple[list[str], int]:
    """The statements of one sentence, and where the next sentence begins."""
    end, following = _end_of_sentence(text, place)
    found: list[str] = []
    while True:
        quoted = _quoted(text, place)
        if quoted is not None:
            statement, place = quoted
            if place > end:  # the sentence's end was inside the quotation marks
                end, following = _end_of_sentence(text, place)
            if text.startswith(BETWEEN, place):
                found.append(statement)
                place += len(BETWEEN)
                continue
            return [*found, statement], following
        stop = text.find(BETWEEN, place, end)
        if stop < 0:
            return [*found, text[place:end]], following
        found.append(text[place:stop])
        place = stop + len(BETWEEN)


def _end_of_sentence(text: str, place: int) -> tuple[int, int]:
    """Where the sentence's text ends, before its full stop, and where the next one begins."""
    ends = [found for mark in _MARKS if (found := text.find(mark, place)) >= 0]
    if ends:
        return min(ends), min(ends) + 2
    return len(text) - text.endswith("."), len(text)


def _quoted(text: str, place: int) -> tuple[str, int] | None:
    """A statement in quotation marks that begins here, and where it ends; None where none stands."""
    if not text.startswith('"', place):
        return None
    end = place + 1
    while True:
        end = text.find('"', end)
        if end < 0:
            return None
        if not text.startswith('""', end):
            break
        end += 2
    after = text[end + 1 :]
    ends = after in ("", ".") or after.startswith((BETWEEN, *_MARKS))
    return (text[place + 1 : end].replace('""', '"'), end + 1) if ends else None


def _written(statement: str) -> str:
    plain = statement and statement == statement.strip() and not statement.startswith('"')
    if plain and BETWEEN not in statement and not any(mark in statement for mark in _MARKS):
        return statement
    doubled = statement.replace('"', '""')
    return f'"{doubled}"'


def numbers_of(triplets: Sequence[Triplet]) -> dict[str, int]:
    """How many statements there are of each sentiment."""
    return {name: sum(t.sentiment == name for t in triplets) for name in SENTIMENTS}
