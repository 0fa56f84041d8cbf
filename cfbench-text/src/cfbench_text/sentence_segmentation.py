"""Segments texts into sentences and sentences into clauses, in time linear in the length of the text."""

from __future__ import annotations

import re

_ABBREVIATIONS = (
    "e.g.", "i.e.", "etc.", "vs.", "mr.", "mrs.", "ms.", "dr.", "st.", "no.", "approx.", "u.s.", "u.k.", "a.m.", "p.m.",
)  # fmt: skip
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"')\]”’]*(?=\s|$)|(?<=[a-z)\]])[.!?]+(?=[A-Z])|\n+")
# A run of spaces or of full stops is only tried from its beginning (the lookbehinds), so that long runs cost no more.
_CLAUSE = re.compile(
    r"(?:(?<!\s)\s+)?;\s+|(?:(?:(?<!\s)\s+)?[,–—]\s+|(?<!\s)\s+)"
    r"(?:but|although|though|however|whereas|except that|while)\s+|(?<!\s)\s+--?\s+"
    r"|,\s+(?:and|so|plus)\s+(?=(?:i|it|the|this|they|its|my|these|there|you|we)\b)|,\s+(?=(?:it|they|the)\s)",
    re.IGNORECASE,
)
_EDGES = re.compile(
    r"^(?:(?:and|but|so|also|plus|however|although|though|because|overall|well|yes|ok|first|second)\b[\s,:]*)+",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without blank ends. 3.5 and "e.g." end none; ".It" without a space does."""
    found, start = [], 0
    for end in _END.finditer(text):
        last = text[max(start, end.end() - 12) : end.end()].lower().rsplit(None, 1)
        if last and last[-1] in _ABBREVIATIONS and end.end() < len(text):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [piece for piece in found if piece]


def clauses(sentence: str) -> list[str]:
    """The clauses of a sentence, each without its conjunction and without punctuation at its ends."""
    pieces = (_EDGES.sub("", piece.strip()) for piece in _CLAUSE.split(sentence))
    return [bare for piece in pieces if (bare := piece.strip(" \t\r\n.,;:!?…-–—*"))]
