"""Phrases whose words mean something else in them: "no big deal" is no price, "this light" no weight."""

from __future__ import annotations

import functools
import re

from cfbench_text.atomic.words import split_words

_NOT_BEFORE_WEIGHT = "".join(
    rf"(?<!\b{word})"
    for word in (
        "is",
        "are",
        "was",
        "very",
        "so",
        "too",
        "super",
        "really",
        "and",
        "quite",
        "pretty",
        "extremely",
    )
)
_PHRASES = (
    r"\bpretty(?=\s+\w)",
    r"\b(?:no |not |a )*(?:big|huge|great) (?:deal(?! (?:for|on|at)\b)|fan|difference|thing|plus|issue|problem)\b",
    r"\bdeal with\b",
    r"\bworth (?:mention\w*|noting|buying|check\w*|a (?:try|look|shot|mention)|getting|having)\b",
    rf"{_NOT_BEFORE_WEIGHT}(?<!['’]s)(?<!,) light\b(?![ -]?weight)",
    r"\blight(?:s|ed)? up\b|\blights?(?= (?:is|are|was|comes?|stays?)\b)|\bin light of\b",
    r"\b(?:light|heavy|thin|medium|thick)"
    r"(?=[ -](?:gauge|strings?|picks?|metal|distortion|palm|strumm\w*|use|rock|music|over-?drive)\b)",
    r"\bbig (?:muff|time)\b|\bbottom end\b|\bsmall (?:price|amount|complaint|issue|problem)\b",
    r"\b(?:for )?(?:a |so |as |very |how )?(?:good )?long (?:time|as|way|run|after|before|ago|story)\b",
    r"\b(?:for|so) long\b|\bin short\b|\bshort (?:of|answer|time|period)\b|\bin no time\b",
    r"\b(?:the|at|my|his|your) last\b|\blast (?:one|year|week|month|time|night|few|set|pair|couple|but)\b",
    r"\bfeels? (?:free|it|like (?:i|it|you)|that|confident)\b",
    r"\blook(?:s|ed|ing)? (?:like|for(?:ward)?|at|into|elsewhere|no)\b",
    r"\bsounds? like (?:it|a (?:good|great))\b",
    r"\bfits? (?:the|my|your|all my|our) (?:bill|needs?|purposes?)\b",
    r"\b(?:my|their|current|this|the|your|pedalboard|live|guitar|a) set ?up\b",
    r"\bhard to (?:day|say|describe|find|believe|imagine|tell)\b",
    r"\blearn(?:ing)? (?:on|to play)\b|\bof course\b|\bno question about\b",
)
_OTHER_SENSE = re.compile("|".join(_PHRASES))
"""Of text in lower case."""
_WORD = re.compile(r"[a-z]+")
_OCCASIONS = frozenset(
    split_words(
        """
pretty deal fan difference thing plus issue problem worth light lights lighted heavy thin medium thick muff time end price
amount complaint long short last feel feels look looks looked looking sound sounds fit fits set setup hard learn learning
course question
"""
    )
)
"""Words of which every phrase has at least one: most statements have none, and the search is slow."""


@functools.lru_cache(maxsize=65_536)
def plain(statement: str) -> str:
    """In lower case, without phrases whose keywords and words of feeling have another sense there."""
    lowered = statement.lower()
    return lowered if _OCCASIONS.isdisjoint(_WORD.findall(lowered)) else _OTHER_SENSE.sub("", lowered)
