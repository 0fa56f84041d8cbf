"""``atomic``: short statements of one fact without a language model; deterministic and fast.

A sentence is split into clauses and the items of its lists. Explanations of the form "the user would like it because of
A, B, and C" become their reasons, with the sentiment of the frame. What remains is filtered as the guidelines of the
labelled triplets ask (docs/explanation/labelled-triplets.md): no experience of the writer, no other products, no
conditions, no advice, and no opinion without content. A statement needs a subject that is the product, a predicate or
a word of feeling, and a topic of the domain. The topic is that of the keyword nearest to the predicate; the sentiment
is VADER's (Hutto & Gilbert 2014) with further words about products; a statement without any word of feeling has that
of the whole text. It prefers few right statements to many: docs/results/text-extractors.csv has precision and recall.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_text.atomic import keywords, lexicon, senses
from cfbench_text.atomic.frames import reasons
from cfbench_text.atomic.segments import hard_segments, shortened, soft_segments
from cfbench_text.atomic.topics import Topics
from cfbench_text.extractors.base import Extraction
from cfbench_text.sentence_segmentation import sentences
from cfbench_text.third_person import as_statement
from cfbench_text.triplets import Sentiment, Triplet, canonical

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

SPEC = ComponentSpec(
    id="text/extractor/atomic",
    summary="Short statements of one fact, by rules: lists, frames, filters; sentiment by VADER",
    target=f"{__name__}:Atomic",
    config=f"{__name__}:Config",
    papers=("hutto2014vader",),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    most: Annotated[int, Range(minimum=3), Help("maximum number of words of a statement")] = 12
    neutral: Annotated[
        float, Range(minimum=0, maximum=1), Help("compound scores of VADER nearer to 0 are neutral")
    ] = 0.05
    encoder: Annotated[
        str | None,
        Help(
            "name, folder or package:NAME of a sentence encoder: statements nearer to the description of another topic "
            "are left out; none: keywords alone"
        ),
    ] = None


class Atomic:
    def __init__(self, config: Config) -> None:
        self.config = config

    def extract(self, texts: Sequence[str], domain: Domain) -> list[Extraction]:
        topics = Topics(domain)
        found = [canonical(self._triplets(text, topics)) for text in texts]
        if self.config.encoder:
            found = self._agreeing(found, domain, self.config.encoder)
        return [Extraction(triplets, "ok" if triplets else "empty") for triplets in found]

    def usable(self, triplet: Triplet) -> bool:
        """Statements of reviews always have a topic, so statements of paragraphs must have one, too."""
        return bool(triplet.topic)

    def signature(self) -> Mapping[str, str]:
        from importlib.metadata import version

        encoder = {"encoder": self.config.encoder} if self.config.encoder else {}
        return {"extractor": "atomic", "vaderSentiment": version("vaderSentiment"), **encoder}

    @staticmethod
    def _agreeing(
        found: Sequence[tuple[Triplet, ...]], domain: Domain, encoder: str
    ) -> list[tuple[Triplet, ...]]:
        """The triplets whose topic's description agrees with its keywords."""
        from cfbench_text.atomic.descriptions import Descriptions

        distinct = list(dict.fromkeys(triplet for triplets in found for triplet in triplets))
        agree = dict(zip(distinct, Descriptions(encoder).agree(distinct, domain), strict=True))
        return [tuple(triplet for triplet in triplets if agree[triplet]) for triplets in found]

    def _triplets(self, text: str, topics: Topics) -> list[Triplet]:
        found: list[Triplet] = []
        parts = [" ".join(part.split()) for part in _joined(sentences(text))]
        mood = functools.cache(lambda: _mood(parts))
        for sentence in parts:
            listed = reasons(sentence)
            if listed is not None:
                for reason in listed:
                    statement = as_statement(reason.text)
                    topic = topics.of(statement)
                    if topic:
                        found.append(Triplet(statement, topic, reason.sentiment))
                continue
            if sentence.endswith("?"):
                continue
            for clause in hard_segments(sentence):
                found += self._of_clause(clause, topics, mood)
        return found

    def _of_clause(self, clause: str, topics: Topics, mood: Any) -> list[Triplet]:
        """The items of the clause's list that are statements; otherwise the clause if it is one."""
        clause = lexicon.TRIMMED.sub("", clause)
        if lexicon.CONDITION.search(clause):
            return []
        pieces = self._merged(clause, soft_segments(clause), topics)
        found = []
        if len(pieces) > 1:
            context = lexicon.EXPERIENCE.match(clause) is not None
            for piece in pieces:
                if context and not lexicon.SUBJECT.match(piece):
                    continue
                triplet = self._statement(piece, topics, mood)
                if triplet:
                    found.append(triplet)
        if not found and len(pieces) <= _WHOLE:
            triplet = self._statement(clause, topics, mood)
            found = [triplet] if triplet else []
        return found

    def _merged(self, clause: str, pieces: list[str], topics: Topics) -> list[str]:
        """Adjectives without a topic together with what follows: "nice, bright and full sound" is one piece."""
        found: list[str] = []
        start = 0
        for piece in pieces:
            place = clause.find(piece, start)
            start = place + len(piece)
            if found and self._continues(found[-1], piece, topics):
                found[-1] = clause[clause.rfind(found[-1], 0, place) : start]
            else:
                found.append(piece)
        return found

    def _continues(self, former: str, piece: str, topics: Topics) -> bool:
        """Whether two items state one fact: "bright, full sound", "easy and simple to use"."""
        if _TO_DO.match(piece):
            return len(former.split()) <= 2 and topics.of(former) == topics.of(piece)
        return self._adjectives(former, topics) and not lexicon.VERB.search(piece)

    def _adjectives(self, piece: str, topics: Topics) -> bool:
        words = piece.lower().split()
        return len(words) <= 3 and words[-1] in _vader(False).lexicon and not topics.of(piece)

    def _statement(self, segment: str, topics: Topics, mood: Any) -> Triplet | None:
        segment = lexicon.TRIMMED.sub("", segment)
        words = segment.split()
        if not words or _no_statement(segment):
            return None
        segment = shortened(segment, _SHORT)
        if len(segment.split()) > self.config.most:
            return None
        topic = topics.of(segment)
        if not topic or not topics.clear(segment):
            return None
        score = _score(segment, topic)
        bare = abs(score) < self.config.neutral
        stated = lexicon.SUBJECT.match(segment) or lexicon.PREDICATE.match(segment)
        if bare and not (stated and 3 <= len(words) <= _BARE):
            return None
        if segment.lower().startswith(("the ", "this ", "that ")) and not lexicon.VERB.search(segment, 4):
            return None
        if not stated and len(words) > _BARE:
            return None
        sentiment: Sentiment = "positive" if score > 0 else "negative"
        if bare:
            sentiment = "neutral" if lexicon.MEASURE.search(segment) else mood()
            if sentiment == "negative":  # a text that complains also describes
                return None
        return Triplet(as_statement(segment), topic, sentiment)


_TO_DO = re.compile(r"^\w+ to \w+", re.IGNORECASE)
_SHORT = 9
"""Words of a statement from which on subordinate clauses at its end are left out."""
_BARE = 6
"""Words up to which a statement may be without a word of feeling, or without a subject and a verb."""
_WHOLE = 2
"""Items up to which a clause whose items are no statements may be one itself."""
_FIRST_PERSON = re.compile(r"^(?:i|we)\b", re.IGNORECASE)
_AS_WELL = re.compile(r"\bas well\b(?: as\b)?", re.IGNORECASE)
_ONE_ING = re.compile(r"^\w+ing$", re.IGNORECASE)
_WRITER = re.compile(r"\s(?:I|i|we)\s")
_AMOUNT = re.compile(r"^\$?\d")
_REVIEWER = re.compile(r"\b(?:user|reader|customer)['’]s\b", re.IGNORECASE)
_INITIAL = re.compile(r"\b[A-Z]\.$")


def _joined(parts: Sequence[str]) -> list[str]:
    """Sentences that end with an initial ("by H.G. Wells") with the next."""
    found: list[list[str]] = []
    for part in parts:
        if found and _INITIAL.search(found[-1][-1]):
            found[-1].append(part)
        else:
            found.append([part])
    return [" ".join(joined) for joined in found]


def _no_statement(segment: str) -> bool:
    return bool(
        (_FIRST_PERSON.match(segment) and not lexicon.LIKING.match(segment))
        or (lexicon.EXPERIENCE.match(segment) and not lexicon.LIKING.match(segment))
        or (_AMOUNT.match(segment) and not lexicon.VERB.search(segment))
        or (_WRITER.search(segment) and not lexicon.LIKING.match(segment))
        or _ONE_ING.match(segment)
        or lexicon.GERUND.match(segment)
        or lexicon.UNFINISHED.search(segment)
        or _REVIEWER.search(segment)
        or lexicon.IMPERATIVE.match(segment)
        or lexicon.OPINION.match(segment)
        or lexicon.OTHERS.search(segment)
    )


def _mood(parts: Sequence[str]) -> Sentiment:
    """The sentiment of a whole text: the sum over its sentences, which costs time linear in their number."""
    scores = [_compound(senses.plain(part[:400]), price=False) for part in parts[:40]]
    total = sum(scores)
    return "positive" if total > 0 else "negative" if total < 0 else "neutral"


def _score(segment: str, topic: str) -> float:
    """VADER's compound score, with phrases that its words do not give and negations that are farther than three words."""
    text = lexicon.AS_GOOD_AS.sub(r"\1", lexicon.COMPARISON.sub("", segment))
    text = _AS_WELL.sub(" ", senses.plain(text))
    negation = lexicon.NEGATION.search(text)
    for phrases, value in ((lexicon.GOOD, 0.5), (lexicon.BAD, -0.5)):
        found = phrases.search(text)
        if found:
            return -value if negation and negation.start() < found.start() else value
    if lexicon.TOO.search(text):
        return -0.5
    compound = functools.partial(_compound, price=topic == "price")
    if negation:
        before = compound(text[: negation.start()])
        return before or -compound(text[negation.end() :])
    score = compound(text)
    relief = score < 0 and lexicon.RELIEVED.search(text)
    return -score if relief or lexicon.HARDLY.search(text) else score


def _compound(text: str, price: bool) -> float:
    return float(_vader(price).polarity_scores(text)["compound"])


@functools.cache
def _vader(price: bool) -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # type: ignore[import-untyped]

    found = SentimentIntensityAnalyzer()
    found.lexicon.update(keywords.FEELING)
    found.lexicon.update(keywords.PRICE_SENTIMENT if price else {"cheap": -1.2})
    return found
