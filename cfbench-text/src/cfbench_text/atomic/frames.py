"""Frames of generated explanations: sentences that say why a user would like an item, with the reasons as a list.

Besides the suite's own template (:mod:`cfbench_text.triplets`) these are the sentences that language models write when
they are asked for such explanations, for example those of XRec: "The user would enjoy the business because of A, B, and
C, making it D." The reasons are the statements, their sentiment is that of the frame; D is a conclusion, not a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cfbench_text.atomic.words import split_words
from cfbench_text.triplets import FIRST, LATER, SENTIMENTS, Sentiment

_OPENINGS = [(re.escape(table[name].strip()), name) for table in (FIRST, LATER) for name in SENTIMENTS]
_WHO = r"(?:the|this|a)\s+(?:user|customer|reader|reviewer)|you|they|he|she"
_FOR = (
    r"(?:because\s+of|because|due\s+to|thanks\s+to|for|since|as)"
    r"(?:\s+(?:it|they|the\s+\w+|this\s+\w+)\s+(?:offers?|features?|has|have|provides?|includes?|"
    r"explores?|contains?))?\b"
)
_FRAMES: tuple[tuple[re.Pattern[str], Sentiment], ...] = (
    *((re.compile(rf"^{opening}\s*", re.IGNORECASE), name) for opening, name in _OPENINGS),
    (
        re.compile(
            rf"^[\"'\s]*(?:{_WHO})\s+(?:would|will|may|might|could)\s+(?:not|dislike|avoid)\b.{{0,120}}?\b{_FOR}\s*",
            re.IGNORECASE,
        ),
        "negative",
    ),
    (
        re.compile(
            rf"^[\"'\s]*(?:{_WHO})\s+(?:would|will|may|might)\s+(?:likely\s+|really\s+|also\s+)?"
            rf"(?:buy|enjoy|like|love|appreciate|choose|visit|purchase)\b.{{0,120}}?\b{_FOR}\s*",
            re.IGNORECASE,
        ),
        "positive",
    ),
    (
        re.compile(
            rf"^(?:they|{_WHO})\s+(?:also\s+)?(?:enjoy(?:s|ed)?|like[sd]?|loves?|appreciate[sd]?|mentions?|praises?|finds?|found|"
            rf"(?:is|are|was|were)\s+(?:also\s+)?(?:drawn\s+(?:to|in\s+by)|(?:captivated|impressed|intrigued)\s+by|interested\s+in))\s+",
            re.IGNORECASE,
        ),
        "positive",
    ),
    (
        re.compile(
            r"^(?:'s\s+)?(?:the\s+)?(?:book|story|business|place|product|series|stories|books|restaurant|store|hotel|movie|game)"
            r"(?:['’]s\s+|\s+(?:[\"“][^\"”]*[\"”]\s+)?(?:also\s+)?"
            r"(?:offers?|features?|provides?|has|includes?|explores?|contains?)\s+)",
            re.IGNORECASE,
        ),
        "positive",
    ),
)
_LABEL = re.compile(r"^[A-Z][a-z]+(?:\s[a-z]+)?:\s+(?=[A-Z])")
"""As in "Short answer: The user would ..."."""
_CONCLUSION = re.compile(
    r"[,\s]+(?:(?:which|that|all of which)\s+)?"
    r"(?:making\b|(?:makes?|made)\s+(?:it|them|this|for)\b|(?:creates?|provides?)\s+an?\b|indicating\b|"
    r"creating\s+an?\b|would appeal to\b|indicates?\s+an?\b|"
    r"ensuring\b|allowing\s+them\s+to\s+enjoy\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_CONCESSION = re.compile(
    r"[,\s]+(?:even though|although|though|despite|but)\s+(?:(?:they|the user|he|she)\s+(?:also\s+)?"
    r"(?:mentioned?|noted?|found|felt)\s+(?:that\s+)?)?",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"\s*[;]\s*|,?\s+(?:as well as|along with|in addition to|coupled with|combined with|while|especially|"
    r"particularly)\s+|"
    r",\s+(?:with|and|or)\s+|\s+with\s+(?!the\s|him\b|her\b|them\b|it\b|[A-Z])|,\s+"
)
_ADJECTIVE = re.compile(
    r"(?:ing|ed|ive|ous|ful|al|ic|able|ible|y|ent|ant|ish|less)$|-|^(?:strong|unique|fun|clean|quick|"
    r"complex|healthy|hot|modern|serene|good|great|"
    r"nice|fresh|warm|cool|soft|rich|deep|dark|sweet|fast|slow|old|new|young|large|small|big|short|long|"
    r"clear|kind|smart|dull|authentic)$",
    re.IGNORECASE,
)
"""A word that the head of a group of words rarely is."""
_NOUNS = frozenset(
    split_words(
        """
writing ending setting feeling meaning building clothing pricing parking seating story stories mystery fantasy
variety quality history family beauty society identity delivery journey comedy material food meal arrival
festival portal staff environment development content experience music topic magic comic restaurant plant
accident ability party company service pizza city community therapy energy humanity morality poetry bravery
diversity intensity mythology technology psychology geography
"""
    )
)
_BLEND = re.compile(r"\b(?:blend|mix|mixture|combination|elements)\s+of\b", re.IGNORECASE)
_JOINS = re.compile(rf"\bbetween\b|{_BLEND.pattern}", re.IGNORECASE)
"""What "and" belongs to when it stands before it."""
_PLACE = re.compile(r"\s(?:in|on|at|throughout|within)\s.*$")
_NAMES = re.compile(r"^(?:(?:the|of)\s+)*(?:[A-Z][\w'’.]*(?:\s+|$)(?:(?:and|of|the)\s+)*)+$")
_ABOUT_USER = re.compile(
    r"\b(?:user|reader|customer)['’]s\b|^(?:(?:they|the user)\s+)?(?:mention\w*|had an?|(?:are|"
    r"were) impressed|look forward|would return|is eager|"
    r"(?:enjoyed|overall) the experience)\b|\boverall experience$",
    re.IGNORECASE,
)
_IMPRESSED = re.compile(
    r"^(?:they\s+)?(?:are|were|is|was)\s+(?:impressed|pleased|satisfied|happy)\s+(?:by|with)\s+",
    re.IGNORECASE,
)
_EFFECT = re.compile(
    r"\s+(?:that|which)\s+(?:keeps?|creates?|leaves?|makes?|provides?)\b[^,]*$", re.IGNORECASE
)
_AND = re.compile(r"\s+and\s+")
_LEADING = re.compile(
    r"^(?:(?:and|also|with|of|because|that|it|they|both|especially|particularly|including|"
    r"featuring)\b\s*)+(?:(?:offers?|features?|"
    r"provides?|has|have|includes?|explores?|appreciates?|enjoys?|likes?|praises?|mentions?)\b\s+)?",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|a|an|its|their|his|her)\s+", re.IGNORECASE)
_AHEAD = 200
"""Characters behind an "and" that decide whether it joins two statements."""
_SMALL = 2
"""Words without article that both sides of "and" need to be two statements: "clean and modern rooms" is one."""


@dataclass(frozen=True)
class Reason:
    """A reason as it stands in the sentence, and the sentiment of its frame."""

    text: str
    sentiment: Sentiment


def framed(sentence: str) -> tuple[str, Sentiment] | None:
    """The sentence without its frame, and the frame's sentiment; None if it has no frame."""
    sentence = _LABEL.sub("", sentence)
    for pattern, sentiment in _FRAMES:
        opening = pattern.match(sentence)
        if opening:
            return sentence[opening.end() :].strip(" .\"'"), sentiment
    return None


def reasons(sentence: str) -> list[Reason] | None:
    """The reasons that a framed sentence lists; None if it has no frame."""
    found = framed(sentence)
    if found is None:
        return None
    rest, sentiment = found
    rest = _CONCLUSION.sub("", rest)
    kept, *conceded = _CONCESSION.split(rest, maxsplit=1)
    other: Sentiment = "negative" if sentiment == "positive" else "positive"
    return [
        *(Reason(item, sentiment) for item in list_items(kept)),
        *(Reason(item, other) for part in conceded for item in list_items(part)),
    ]


def list_items(text: str) -> list[str]:
    """The items of "A, B, and C".

    A single word belongs to the item before it ("a mix of humor, drama, and passion"), an adjective to the one behind
    it ("a strong, independent woman").
    """
    spans: list[tuple[int, int]] = []
    start, joined, listing = 0, False, False
    breaks = [(one.start(), one.end()) for one in _BREAK.finditer(text)]
    for begin, end in [*breaks, (len(text), len(text))]:
        piece = text[start:begin]
        if not piece.strip():
            continue
        if spans and (joined or listing or _size(piece) < _SMALL):
            spans[-1] = (spans[-1][0], begin)
        else:
            spans.append((start, begin))
        # "a blend of humor, suspense, and tender moments" is one item up to the part behind its "and".
        closed = " and " in text[spans[-1][0] : begin]
        listing = (
            _BLEND.search(text, spans[-1][0], begin) is not None
            and not closed
            and "with" not in text[begin:end]
        )
        joined = text[begin:end].strip() == "," and _is_adjective(piece.split()[-1])
        start = end
    items = [half for begin, end in spans for half in _halves(text[begin:end])]
    bare = (_bare(item) for item in items)
    return [item for item in bare if item and not _NAMES.match(item) and not _ABOUT_USER.search(item)]


def _bare(item: str) -> str:
    """Without what leads to it, and without what it does to the reader."""
    shown = _IMPRESSED.sub("", _LEADING.sub("", item.strip()))
    return _EFFECT.sub("", shown).strip(" .,\"'")


def _size(piece: str) -> int:
    """Words without an article, and without a place at the end."""
    return len(_PLACE.sub("", _ARTICLE.sub("", piece.strip())).split())


def _is_adjective(word: str) -> bool:
    return word.lower() not in _NOUNS and _ADJECTIVE.search(word) is not None


def _halves(piece: str) -> list[str]:
    """Splits at each "and" that joins two groups of words."""
    found: list[str] = []
    start = 0
    for joint in _AND.finditer(piece):
        left, right = piece[start : joint.start()], piece[joint.end() : joint.end() + _AHEAD]
        sizes = min(_size(left), _size(right.partition(" of ")[0])) >= _SMALL
        if "," not in right and sizes and not _JOINS.search(left) and not _is_adjective(left.split()[-1]):
            found.append(left)
            start = joint.end()
    return [*found, piece[start:]]
