"""METEOR (Banerjee & Lavie 2005): words shared with the reference, also as stems and synonyms, and their order.

Words of the text and of the reference are matched one to one. Two words may match if they are equal (exact), have the
same Porter stem (stem) or share a synset of WordNet (synonym). The m matches form ch chunks, runs of matches that are
adjacent in the same order on both sides.

    P = m / words of the text     R = m / words of the reference     F = P R / (alpha P + (1 - alpha) R)
    METEOR = (1 - gamma (ch / m)^beta) F

The defaults are the paper's: 10 P R / (R + 9 P), penalty 0.5 (ch / m)^3. ``weights`` are the weights of the stages in P
and R; Meteor 1.5 (Denkowski & Lavie 2014, English) has alpha 0.85, beta 0.2, gamma 0.6 and weights 1, 0.6, 0.8. Its
tables of paraphrases and function words are not included.

The alignment is that of Denkowski & Lavie (2014): as many words as possible, then as few chunks as possible, then the
largest weight, by a beam search over the text. The paper of 2005 aligns stage by stage and minimises crossings. NLTK
aligns greedily from the end, which results in more chunks than necessary: "the cat" against "the cat sat on the mat" has
two chunks there and one here (for 300 explanations by XRec: 5,126 chunks there, 3,746 here, and 0.33 instead of 0.40).
NLTK also looks up synonyms in one direction only, without base forms of the reference's words. The beam is exact on
texts that can be enumerated; on 3,000 explanations it always found the maximal number of matches. With thousands of
words on both sides the beam becomes narrower, down to one.

WordNet is a folder of files that the user provides; without it the metric stops, unless ``stages`` excludes synonyms.
Words are lower-cased letters and digits with apostrophes; punctuation is excluded, because the full stops and commas of
the template would match. A text equal to its reference scores slightly below 1, because one chunk is penalised. An
empty text scores 0; a missing reference gives NaN. It does not measure factuality.
"""

from __future__ import annotations

import functools
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.errors import UserError
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text import wordnet
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/meteor",
    summary="Words, stems and synonyms shared with the reference, in its order",
    target=f"{__name__}:METEOR",
    config=f"{__name__}:Config",
    papers=("banerjee2005meteor", "denkowski2014meteor"),
    details={"default": False},
)


STAGES = ("exact", "stem", "synonym")
BEAM = 40
"""Partial alignments per word, as in Meteor 1.5."""
MAX_CONTINUATIONS = 300_000
"""Continuations per text. With thousands of words on both sides the beam is narrower."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
Kin = Callable[[str, str], int | None]
"""The place in ``STAGES`` of the first stage at which two words may be a pair; None: at none."""


@dataclass(frozen=True, kw_only=True)
class Config:
    wordnet: Annotated[str | None, Help("folder with WordNet's files index.noun, index.verb, ...")] = None
    stages: Annotated[
        tuple[Literal["exact", "stem", "synonym"], ...],
        Help("how words may match; [exact, stem] needs no WordNet"),
    ] = STAGES  # type: ignore[assignment]
    weights: Annotated[tuple[float, ...], Help("what a match counts: exact, stem, synonym")] = (1.0, 1.0, 1.0)
    alpha: Annotated[float, Range(minimum=0, maximum=1), Help("weight of recall in F")] = 0.9
    beta: Annotated[float, Range(minimum=0), Help("exponent of the penalty for chunks")] = 3.0
    gamma: Annotated[float, Range(minimum=0, maximum=1), Help("largest penalty for chunks")] = 0.5

    def __post_init__(self) -> None:
        if "synonym" in self.stages and not self.wordnet:
            raise ValueError(
                "METEOR needs WordNet for synonyms: name its folder in 'wordnet' (Debian's package wordnet-base has"
                " /usr/share/wordnet), or set 'stages: [exact, stem]'"
            )
        if len(self.weights) != len(STAGES) or not all(0 <= weight <= 1 for weight in self.weights):
            raise ValueError("'weights' must be three numbers between 0 and 1: of exact, stem, synonym")


class METEOR:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column(
                "METEOR",
                "higher",
                (0.0, 1.0),
                "Are words, stems and synonyms those of the reference, in order?",
            ),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        pairs = list(zip(observed.texts, observed.references, strict=True))
        kin = self._kin
        found = {pair: self.of_words(words(pair[0]), words(pair[1]), kin) for pair in dict.fromkeys(pairs)}
        values = [found[pair] if pair[1].strip() else np.nan for pair in pairs]
        return {"METEOR": np.asarray(values, dtype=np.float64)}

    def signature(self) -> Mapping[str, str]:
        from importlib.metadata import version

        c = self.config
        about = {
            "metric": "METEOR",
            "stages": " ".join(c.stages),
            "parameters": f"alpha {c.alpha:g}, beta {c.beta:g}, gamma {c.gamma:g}",
            "weights": " ".join(f"{weight:g}" for weight in c.weights),
            "pairing": f"most words, then fewest chunks, beam {BEAM}",
        }
        stems = (
            {"stemmer": f"Porter, snowballstemmer {version('snowballstemmer')}"} if "stem" in c.stages else {}
        )
        return {**about, **stems, **({"wordnet": self._wordnet.signature()} if "synonym" in c.stages else {})}

    def of_words(self, text: Sequence[str], reference: Sequence[str], kin: Kin) -> float:
        """The formula, for words that are already apart."""
        pairs = align(text, reference, kin, self.config.weights)
        if not pairs:
            return 0.0
        c, matched = self.config, sum(self.config.weights[stage] for _, _, stage in pairs)
        p, r = matched / len(text), matched / len(reference)
        total = c.alpha * p + (1 - c.alpha) * r
        f = p * r / total if total else 0.0
        penalty: float = c.gamma * (chunks(pairs) / len(pairs)) ** c.beta
        return (1 - penalty) * f

    @functools.cached_property
    def _wordnet(self) -> wordnet.WordNet:
        return wordnet.load(str(self.config.wordnet))

    @functools.cached_property
    def _kin(self) -> Kin:
        stages = self.config.stages
        stem = _stemmer() if "stem" in stages else None
        synsets = self._wordnet.synsets if "synonym" in stages else None

        @functools.lru_cache(maxsize=1 << 20)
        def kin(one: str, other: str) -> int | None:
            if one == other and "exact" in stages:
                return 0
            if stem is not None and stem(one) == stem(other):
                return 1
            if synsets is not None and not synsets(one).isdisjoint(synsets(other)):
                return 2
            return None

        return kin


def _stemmer() -> Callable[[str], str]:
    try:
        import snowballstemmer
    except ImportError:
        raise UserError(
            "METEOR needs snowballstemmer for stems: pip install 'cfbench-text[meteor]', or set 'stages: [exact]'"
        ) from None
    return functools.lru_cache(maxsize=None)(snowballstemmer.stemmer("porter").stemWord)


def words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def chunks(pairs: Sequence[tuple[int, int, int]]) -> int:
    """Runs of pairs that are neighbours on both sides, in the order of the text."""
    places = {(one, other) for one, other, _ in pairs}
    return sum((one - 1, other - 1) not in places for one, other in places)


def align(
    text: Sequence[str], reference: Sequence[str], kin: Kin, weights: Sequence[float] = (1.0, 1.0, 1.0)
) -> list[tuple[int, int, int]]:
    """(place in the text, place in the reference, stage) of the pairs: most pairs, fewest chunks, heaviest.

    A beam search over the text's words. A partial alignment is identified by the positions of the reference that it uses
    and the position that would extend its last chunk; of those equal in both the best one remains. ``lost`` counts the
    pairs that it can no longer have: before and after each word its kinship (words of both sides that are linked by
    possible pairs) can have at most as many more as it has words left on the side that has fewer.
    """
    partners = _partners(text, reference, kin)
    bits = {name: _bits(others) for name, others in {id(one): one for one in partners.values()}.items()}
    masks = {place: bits[id(others)] for place, others in partners.items()}
    members = _kinships(masks)
    left = Counter(members.values())
    wanted = _wanted(masks, len(text))
    beam = min(BEAM, max(1, MAX_CONTINUATIONS // max(1, sum(map(len, partners.values())))))

    def continued(
        place: int, used: int, following: int, so_far: _Partial
    ) -> Iterator[tuple[_Known, _Partial]]:
        """All that may become of the word at ``place``: it stays alone, or it gets a partner that is free."""
        lost, count, weight, pairs = so_far
        mine, after = members[place], wanted[place + 1]
        could = min(left[mine], (mine & wanted[place] & ~used).bit_count())
        can = min(left[mine] - 1, (mine & after & ~used).bit_count())
        yield (used & after, -1), (lost + could - can, count, weight, pairs)
        here, next_ones = partners[place], partners.get(place + 1, {})
        goes_on = beam == 1 and following in here and not used >> following & 1
        for other, stage in ((following, here[following]),) if goes_on else here.items():
            if not used >> other & 1:
                now = (used | 1 << other) & after
                can = min(left[mine] - 1, (mine & after & ~now).bit_count())
                known = (now, other + 1 if other + 1 in next_ones else -1)
                more = (count + (other != following), weight - weights[stage])
                yield known, (lost + could - can - 1, *more, (pairs, (place, other, stage)))

    states: dict[_Known, _Partial] = {(0, -1): (0, 0, 0.0, None)}
    for place in partners:
        grown: dict[_Known, _Partial] = {}
        for (used, following), so_far in states.items():
            for known, state in continued(place, used, following, so_far):
                if known not in grown or state[:3] < grown[known][:3]:
                    grown[known] = state
        left[members[place]] -= 1
        states = dict(sorted(grown.items(), key=lambda item: (item[1][:3], item[0]))[:beam])
    found, pairs = [], min(states.values(), key=lambda state: state[:3])[3]
    while pairs is not None:
        pairs, pair = pairs
        found.append(pair)
    return found[::-1]


_Known = tuple[int, int]
"""The places of the reference that are used, as bits, as far as they are wanted later; the place that would go on."""
_Partial = tuple[int, int, float, Any]
"""Pairs lost, chunks, weight below zero, the pairs as (all before the last, the last)."""


def _partners(text: Sequence[str], reference: Sequence[str], kin: Kin) -> dict[int, dict[int, int]]:
    """For each place of the text that has any: the places of the reference it may be paired with, and the stage.
    Places of the same word share one."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(reference):
        places.setdefault(word, []).append(place)
    of_word = {}
    for mine in dict.fromkeys(text):
        near = ((theirs, stage) for theirs in places if (stage := kin(mine, theirs)) is not None)
        of_word[mine] = dict(sorted((place, stage) for theirs, stage in near for place in places[theirs]))
    return {place: of_word[word] for place, word in enumerate(text) if of_word[word]}


def _kinships(masks: Mapping[int, int]) -> dict[int, int]:
    """For each place of the text the places of the reference, as bits, that it is linked to over any others."""
    linked: list[int] = []
    distinct = set(masks.values())
    for mine in distinct:
        linked = [one for one in linked if not one & mine] + [
            functools.reduce(operator.or_, (one for one in linked if one & mine), mine)
        ]
    kinship = {mine: next(one for one in linked if one & mine) for mine in distinct}
    return {place: kinship[mine] for place, mine in masks.items()}


def _bits(places: Iterable[int]) -> int:
    return functools.reduce(operator.or_, (1 << place for place in places), 0)


def _wanted(masks: Mapping[int, int], size: int) -> list[int]:
    """For each place of the text the places of the reference, as bits, that it or a later one may be paired with."""
    found = [0] * (size + 1)
    for place in reversed(range(size)):
        found[place] = found[place + 1] | masks.get(place, 0)
    return found
