"""Parses the response of a language model to the request for a JSON array of statements.

Every complete member is used, whatever surrounds or truncates the array: prose before it, or a response that ends in
the middle of a word. Arrays that follow one another, or are the values of one object under names of topics or
sentiments, are one list. What is listed elsewhere behind it may be an example, and is counted, not used. Unusable
members are counted by reason, and an object with a quotation mark too many does not cost the next one. An empty array
is a valid response (there is nothing to extract). A response without any usable member is a failure: what it would
have listed is unknown. The reasoning of a model (``<think>...</think>``) is no part of its answer; a response that is
still reasoning when it ends is a failure.
(The published code of Statement factuality counts ``[]`` and every truncated response as a failure, and drops topics
that are not in the list on one side only.) The same rules apply to reviews and to generated texts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from cfbench_text.triplets import SENTIMENTS, Triplet, canonical

Status = Literal["ok", "empty", "cut", "failed"]

NO_ARRAY = "no array"
ONLY_REASONING = "reasoning without an answer"
MALFORMED = "malformed object"
NOT_AN_OBJECT = "not an object"
NO_STATEMENT = "no statement"
OFF_TOPIC = "topic not in the list"
OFF_SENTIMENT = "sentiment not in the list"
PLACEHOLDER = "placeholder of the prompt"
BEHIND = "listed behind the array"

Found = TypeVar("Found", Triplet, str)

_ARRAY = re.compile(r"\[\s*(?=[{\]]|$)")
_ODD_ARRAY = re.compile(r"\[\s*(?=[\"\[])")
_LINE = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(\S.*)$", re.MULTILINE)
_ENDS = frozenset('.!?"”')
_ANY_ARRAY = re.compile(r"\[\s*(?=[{\]\"\[]|$)")


@dataclass(frozen=True)
class Reading:
    """The result of parsing one response.

    Attributes:
        triplets: the valid statements, as :func:`~cfbench_text.triplets.canonical` has them.
        status: "ok", "empty" (the array is complete and holds nothing), "cut" (truncated; complete members
            are used), "failed" (no usable member, although the answer is not an empty array).
        left_out: how many objects were not usable, by reason.
    """

    triplets: tuple[Triplet, ...]
    status: Status
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BareReading:
    """The same of an answer whose statements have neither topic nor sentiment; each once, as they came."""

    statements: tuple[str, ...]
    status: Status
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Unusable:
    why: str


def without_reasoning(text: str) -> str | None:
    """What follows the reasoning of a model; None if its reasoning did not end.

    The opening tag may be missing, because some chat templates put it into the prompt.
    """
    *_, rest = _REASONED.split(text)
    return None if _REASONING.search(rest) else rest


_REASONED = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_REASONING = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)


def read_answer(answer: str, topics: Collection[str]) -> Reading:
    """The statements of an answer whose topic and sentiment are in the lists, compared in lower case."""
    rest = without_reasoning(answer)
    if rest is None:
        return Reading((), "failed", {ONLY_REASONING: 1})
    start = _first(_ARRAY, rest) or _ODD_ARRAY.search(rest) or _ARRAY.search(rest)
    names = {*topics, *SENTIMENTS}
    found, status, left_out = _members(rest, start, lambda value: _checked(value, topics), names)
    return Reading(canonical(found), status, left_out)


def read_statements(answer: str) -> BareReading:
    """The statements of an answer that is an array of texts; objects with the key "statement" do as well, and so does
    a list with a dash or a number before each line, which small models prefer."""
    rest = without_reasoning(answer)
    if rest is None:
        return BareReading((), "failed", {ONLY_REASONING: 1})
    start = _first(_ANY_ARRAY, rest) or _ANY_ARRAY.search(rest)
    lines = [] if start else list(_LINE.finditer(rest))
    if lines:
        return _read_lines(lines, rest)
    found, status, left_out = _members(rest, start, _checked_statement)
    return BareReading(tuple(dict.fromkeys(found)), status, left_out)


def _first(array: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first array that is not empty: prose may mention ``[]`` before the answer."""
    return next((found for found in array.finditer(text) if text[found.end() : found.end() + 1] != "]"), None)


def _read_lines(lines: list[re.Match[str]], answer: str) -> BareReading:
    """A last line that may have been cut, for it ends neither itself nor a sentence, is left out."""
    items = [line[1].rstrip(", ") for line in lines]
    cut = lines[-1].end() == len(answer.rstrip(" ")) and items[-1][-1:] not in _ENDS
    checked = [_checked_statement(one.strip('"“”')) for one in (items[:-1] if cut else items)]
    counts = Counter(one.why for one in checked if isinstance(one, _Unusable))
    found = tuple(dict.fromkeys(one for one in checked if isinstance(one, str)))
    return BareReading(found, "cut" if cut else "ok", dict(counts))


def _members(
    answer: str,
    start: re.Match[str] | None,
    checked: Callable[[Any], Found | _Unusable],
    names: Collection[str] = (),
) -> tuple[list[Found], Status, Mapping[str, int]]:
    """The usable members of the array that ``start`` opens; ``names``: of arrays that may follow it in an object."""
    counts: Counter[str] = Counter()
    found: list[Found] = []
    if start is None:
        counts[NO_ARRAY] += 1
    values, end = _values(answer, start.end() if start else answer.find("{"), names)
    for value in values:
        result = _Unusable(MALFORMED) if value is None else checked(value)
        if isinstance(result, _Unusable):
            counts[result.why] += 1
        else:
            found.append(result)
    if end is not None:
        behind = {one for value in _behind(answer, end) if not isinstance(one := checked(value), _Unusable)}
        counts.update({BEHIND: lost} if (lost := len(behind - set(found))) else {})
    whole = start is not None and end is not None
    if not found:
        return found, "empty" if whole and not values else "failed", dict(counts)
    return found, "ok" if whole else "cut", dict(counts)


def _values(text: str, place: int, names: Collection[str]) -> tuple[list[Any], int | None]:
    """The complete members of the array that has been opened before ``place``, None for one that is malformed, and
    where it is closed, if it is."""
    found: list[Any] = []
    if place < 0:
        return found, None
    members = _Members(text)
    while place < len(text):
        if text[place].isspace() or text[place] in ",}":  # one brace too many closes nothing
            place += 1
        elif text[place] == "]":
            following = _FOLLOWING.match(text, place)
            if following is None or (following[1] and following[1].strip().lower() not in names):
                return found, place + 1
            place = following.end()
        else:
            end = members.end_of(place)
            value = None if end is None else _decoded(text[place:end])
            if value is None and (
                opening := _OBJECT.search(text, place + 1, len(text) if end is None else end)
            ):
                end = opening.start()
            if end is None:
                return found, None
            found.append(value)
            place = end
    return found, None


_FOLLOWING = re.compile(r'\]\s*(?:,\s*)?(?:"([^"\\]*)"\s*:\s*)?\[\s*(?=[{\]"]|$)')
"""The end of an array and the beginning of one that continues it; group 1: its name in the object of both."""
_OBJECTS = re.compile(r"\[\s*(?=\{)")
_OBJECT = re.compile(r'\{\s*"(?:statement|topic|sentiment)"\s*:')


def _behind(text: str, place: int) -> Iterator[Any]:
    """The members of the first array of objects behind ``place``."""
    start = _OBJECTS.search(text, place)
    return iter(() if start is None else _values(text, start.end(), ())[0])


class _Members:
    """Where members end. A scan remembers all brackets that it meets: in a response that opens objects without closing
    them, each is otherwise looked for up to the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[int, int | None] = {}

    def end_of(self, place: int) -> int | None:
        """Where a member that begins at ``place`` ends, brackets in strings not counted; None when it is cut."""
        if place not in self._ends:
            self._ends[place] = self._scanned(place)
        return self._ends[place]

    def _scanned(self, place: int) -> int | None:
        opened: list[int] = []
        for at, mark in _marks(self._text, place):
            if mark in "{[":
                opened.append(at)
            elif not opened:  # the comma behind a bare value, or the array's own end
                return at
            elif mark in "}]":
                self._ends[opened.pop()] = at + 1
                if not opened:
                    return at + 1
        self._ends.update(dict.fromkeys(opened))
        return None


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_MARK = re.compile(r'["{}\[\],]')


def _marks(text: str, place: int) -> Iterator[tuple[int, str]]:
    """Brackets and commas outside strings; ends where a string is cut."""
    while found := _MARK.search(text, place):
        place = found.end()
        if found.group() == '"':
            string = _STRING.match(text, found.start())
            if string is None:
                return
            place = string.end()
        else:
            yield found.start(), found.group()


def _decoded(piece: str) -> Any:
    try:
        return json.loads(piece, strict=False)
    except (ValueError, RecursionError):
        return None


def _checked(value: Any, topics: Collection[str]) -> Triplet | _Unusable:
    """The triplet, or why it is none."""
    if not isinstance(value, dict):
        return _Unusable(NOT_AN_OBJECT)
    statement, topic, sentiment = (value.get(name) for name in ("statement", "topic", "sentiment"))
    if not isinstance(statement, str) or not statement.strip():
        return _Unusable(NO_STATEMENT)
    topic, sentiment = (str(text).strip().lower() for text in (topic, sentiment))
    if topic not in topics:
        return _Unusable(OFF_TOPIC)
    known = next((name for name in SENTIMENTS if name == sentiment), None)
    if known is None:
        return _Unusable(OFF_SENTIMENT)
    return Triplet(" ".join(statement.split()), topic, known)


def _checked_statement(value: Any) -> str | _Unusable:
    statement = value.get("statement") if isinstance(value, dict) else value
    if not isinstance(statement, str) or not any(mark.isalnum() for mark in statement):
        return _Unusable(NO_STATEMENT)
    bare = " ".join(statement.split())
    return _Unusable(PLACEHOLDER) if bare.startswith("<") and bare.endswith(">") else bare
