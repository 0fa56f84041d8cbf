"""Rewrites first-person text in the third person: "I love my strings" becomes "they love their strings".

"They" takes the plain form of the verb, so only "am", "was" and "have" forms change. Words that only look like a
pronoun are left alone: "made in the US", "Mark I", "i.e.", "a gold mine".
"""

from __future__ import annotations

import re

_NUMERAL = r"(?<!mark )(?<!type )(?<!part )(?<!war )(?<!class )(?<!phase )(?<!series )(?<!volume )"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), into)
    for pattern, into in (
        (_NUMERAL + r"\bI(?:['’]m| am)\b", "they are"),
        (_NUMERAL + r"\bI was\b", "they were"),
        (_NUMERAL + r"\bI wasn(['’])t\b", r"they weren\1t"),
        (_NUMERAL + r"\bI['’]ve\b", "they have"),
        (_NUMERAL + r"\bI['’]d\b", "they would"),
        (_NUMERAL + r"\bI['’]ll\b", "they will"),
        (_NUMERAL + r"\bI(?= [a-z])", "they"),
        (r"\b(?:we are|we['’]re)\b", "they are"),
        (r"\bwe['’]ve\b", "they have"),
        (r"\bwe['’]ll\b", "they will"),
        (r"\bwe\b", "they"),
        (r"\b(?:my|our)\b", "their"),
        (r"\b(?:myself|ourselves)\b", "themselves"),
    )
)
_FIRST_PERSON = re.compile(r"\b(?:i|we|my|our|me|us|mine|myself|ourselves)\b", re.IGNORECASE)
_ME = re.compile(r"\b(?:me|us)\b")  # as they are written: ME is Maine, US a country
_MINE = re.compile(r"(?<!gold )(?<!coal )(?<!land )(?<!\ba )(?<!the )\bmine\b")
_LOWERED = re.compile(
    r"^(?:The|This|That|These|Those|It|Its|It's|They|There|A|An|You|Your|My|He|She|We|Not|Very|Too|Has|Is|Was|"
    r"Works|Sounds|Looks|Feels|Easy|Great|Good|Nice|Does|Makes|Holds|Comes|Just|All|Some|No|With|For|In|On)\b"
)


def third_person(text: str) -> str:
    """The text in the third person. Texts without a first person are returned unchanged."""
    if not _FIRST_PERSON.search(text):
        return text
    for pattern, into in _RULES:
        text = pattern.sub(into, text)
    return _MINE.sub("theirs", _ME.sub("them", text))


def as_statement(clause: str) -> str:
    """A clause as a statement: third person, whitespace collapsed, first letter in lower case except for names."""
    statement = third_person(" ".join(clause.split()))
    return _LOWERED.sub(lambda word: word.group().lower(), statement)
