"""What a comparison of two statements by their words sees: shared words and pairs of words, negation, numbers, names,
antonyms, and the sentiment of each.

The lists are our own. Sentiment is VADER's compound score (Hutto & Gilbert 2014).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cfbench_text.judges.overlap import STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NEGATIONS = frozenset(
    """
    no not never none nobody nothing neither nor without cannot hardly barely scarcely lack lacks lacking fail fails
    failed unable isn't aren't wasn't weren't don't doesn't didn't won't wouldn't can't couldn't shouldn't hasn't
    haven't hadn't ain't
    """.split()  # noqa: SIM905 (as people write lists of words)
)
_OPPOSITES = """
    good bad; great terrible; great poor; excellent awful; good poor; good terrible; best worst; better worse; nice awful;
    long short; large small; big small; big little; tall short; high low; wide narrow; thick thin; heavy light;
    heavy lightweight; hard soft; hot cold; warm cold; hot cool; fast slow; quick slow; loud quiet; loud silent; easy
    hard; easy difficult; simple complicated; cheap expensive; cheap pricey; inexpensive expensive; new old; strong weak;
    sturdy flimsy; solid flimsy; durable fragile; tight loose; full empty; open closed; clean dirty; clear muddy; clear
    unclear; bright dark; bright dull; smooth rough; sharp dull; dry wet; fresh stale; rich poor; accurate inaccurate;
    comfortable uncomfortable; comfy uncomfortable; reliable unreliable; useful useless; helpful useless; pleasant
    unpleasant; friendly rude; friendly unfriendly; safe dangerous; interesting boring; happy sad; like dislike; love
    hate; likes dislikes; loves hates; recommend avoid; success failure; succeed fail; win lose; buy sell; buy return;
    work break; works breaks; works broke; increase decrease; rise fall; more less; most least; many few; always never;
    everything nothing; everyone nobody; all none; up down; in out; on off; front back; left right; top bottom; inside
    outside; indoors outdoors; above below; before after; early late; first last; near far; with without; man woman;
    men women; boy girl; male female; day night; black white; alive dead; awake asleep; sit stand; sitting standing;
    stay leave; arrive leave; enter exit; start stop; begin end; push pull; lift lower; climbing descending; adding
    removing; cleaning dirtying; perfect flawed; stable unstable; consistent inconsistent; attractive ugly; beautiful
    ugly; crisp muddy; generous stingy; spacious cramped; polite rude; satisfied disappointed; impressed disappointed
"""


def _opposites() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _OPPOSITES.split(";"):
        one, other = pair.split()
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES: Mapping[str, frozenset[str]] = _opposites()
"""The antonyms of a word."""


@dataclass(frozen=True)
class Words:
    """What is known of a statement by itself.

    Attributes:
        content: its stems without stop words and negations. bigrams: pairs of adjacent words.
        negations: their number. numbers: as written. names: capitalised words after the first.
        sentiment: VADER's compound score, in [-1, 1]. length: number of words.
    """

    words: frozenset[str]
    content: frozenset[str]
    bigrams: frozenset[tuple[str, str]]
    negations: int
    numbers: frozenset[str]
    names: frozenset[str]
    sentiment: float
    length: int


def read(statement: str) -> Words:
    written = WORD.findall(statement.replace("’", "'"))
    words = [word.lower() for word in written]
    stems = [stem(word) for word in words]
    return Words(
        frozenset(words),
        frozenset(
            stem_
            for word, stem_ in zip(words, stems, strict=True)
            if word not in STOP_WORDS and word not in NEGATIONS
        ),
        frozenset(itertools.pairwise(stems)),
        sum(word in NEGATIONS for word in words),
        frozenset(NUMBER.findall(statement)),
        frozenset(word.lower() for word in written[1:] if word[0].isupper() and word != "I"),
        sentiment(statement),
        len(words),
    )


NAMES = (
    "word recall",
    "word precision",
    "bigram recall",
    "log length ratio",
    "negation differs",
    "negation added",
    "new numbers",
    "new names",
    "antonyms",
    "sentiment gap",
    "opposite sentiment",
)


def compared(premise: Words, hypothesis: Words) -> tuple[float, ...]:
    """The features ``NAMES`` of a pair."""
    from math import log

    shared = len(premise.content & hypothesis.content)
    negated, other = hypothesis.negations % 2, premise.negations % 2
    antonyms = any(
        OPPOSITES[word] & premise.words and word not in premise.words
        for word in hypothesis.words
        if word in OPPOSITES
    )
    return (
        shared / len(hypothesis.content) if hypothesis.content else 1.0,
        shared / len(premise.content) if premise.content else 0.0,
        _share(hypothesis.bigrams, premise.bigrams),
        log((1 + hypothesis.length) / (1 + premise.length)),
        float(negated != other),
        float(negated > other),
        1 - _share(hypothesis.numbers, premise.numbers),
        1 - _share(hypothesis.names, premise.words),
        float(antonyms),
        abs(hypothesis.sentiment - premise.sentiment),
        max(0.0, -hypothesis.sentiment * premise.sentiment),
    )


def _share(wanted: frozenset[Any], there: frozenset[Any]) -> float:
    """The share of ``wanted`` that is there; 1 if nothing is wanted."""
    return len(wanted & there) / len(wanted) if wanted else 1.0


def stem(word: str) -> str:
    """Without the ending of plural, past and progressive; a light stemmer that needs no library."""
    for ending in ("ingly", "edly", "ing", "ies", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


@functools.lru_cache(maxsize=20_000)
def sentiment(statement: str) -> float:
    return float(_vader().polarity_scores(statement[:2000])["compound"])


@functools.cache
def _vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # type: ignore[import-untyped]

    return SentimentIntensityAnalyzer()
