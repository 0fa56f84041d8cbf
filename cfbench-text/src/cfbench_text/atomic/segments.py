"""Sentences into segments that may state one fact: clauses, and the items of lists."""

from __future__ import annotations

import re

_HARD = re.compile(
    r"\s*[;:]+\s*|\s*\.{2,}\s*|\s+[-–—]+\s+|\s*(?:—|--+)\s*|,?\s+(?:but|although|though|however|whereas|because|while|which|except|"
    r"even though|so that|yet)\s+|,?\s+so\s+(?=(?:no|i|it|they|you|we|the|this)\b)|,\s+so\s+|\s+(?=at an?\s\w+\sprice\b)",
    re.IGNORECASE,
)
_SOFT = re.compile(r"\s*,\s+(?:and\s+|plus\s+|or\s+)?|\s+(?:and|plus|&)\s+|,(?=[a-z])", re.IGNORECASE)
_ASIDE = re.compile(r"\s*\([^()]*\)?\s*")
"""In parentheses stand remarks: sizes, exceptions, other products."""
_GLUED = re.compile(r"(?<=[a-z][.!?])(?=[A-Z][a-z])")
_MARKS = ' \t\r\n.,;:!?…-–—*"“”'


def hard_segments(sentence: str) -> list[str]:
    """The clauses of a sentence."""
    pieces = _HARD.split(" ".join(_GLUED.sub(" ", _ASIDE.sub(" ", sentence)).split()))
    return [bare for piece in pieces if (bare := piece.strip(_MARKS))]


def soft_segments(clause: str) -> list[str]:
    """The parts of a clause between commas and each "and"."""
    return [bare for piece in _SOFT.split(clause) if (bare := piece.strip(_MARKS))]


_TAIL = re.compile(
    r"\s+(?:that|which|when|if|because|than|after|until|unless|since|where|whenever|once|so)\s+.*$",
    re.IGNORECASE,
)


def shortened(segment: str, most: int) -> str:
    """Without a subordinate clause at its end if it has more than ``most`` words."""
    if len(segment.split()) <= most:
        return segment
    short = _TAIL.sub("", segment)
    return short if len(short.split()) >= 3 else segment
