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
from cfbench_text.atomic import lexicon
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
    most: Annotated[int, Range(minimum=3), Help("maximum number of words of a statement")] = 18
    neutral: Annotated[
        float, Range(minimum=0, maximum=1), Help("compound scores of VADER nearer to 0 are neutral")
    ] = 0.05


class Atomic:
    def __init__(self, config: Config) -> None:
        self.config = config

    def extract(self, texts: Sequence[str], domain: Domain) -> list[Extraction]:
        topics = Topics(domain)
        found = []
        for text in texts:
            triplets = canonical(self._triplets(text, topics))
            found.append(Extraction(triplets, "ok" if triplets else "empty"))
        return found

    def usable(self, triplet: Triplet) -> bool:
        """Statements of reviews always have a topic, so statements of paragraphs must have one, too."""
        return bool(triplet.topic)

    def signature(self) -> Mapping[str, str]:
        from importlib.metadata import version

        return {"extractor": "atomic", "vaderSentiment": version("vaderSentiment")}

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
        if not found:
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
            if found and self._adjectives(found[-1], topics) and not lexicon.VERB.search(piece):
                found[-1] = clause[clause.rfind(found[-1], 0, place) : start]
            else:
                found.append(piece)
        return found

    def _adjectives(self, piece: str, topics: Topics) -> bool:
        words = piece.lower().split()
        return len(words) <= 3 and words[-1] in _vader(False).lexicon and not topics.of(piece)

    def _statement(self, segment: str, topics: Topics, mood: Any) -> Triplet | None:
        segment = lexicon.TRIMMED.sub("", segment)
        words = segment.split()
        if not words or _no_statement(segment):
            return None
        segment = shortened(segment, self.config.most // 2)
        if len(segment.split()) > self.config.most:
            return None
        topic = topics.of(segment)
        if not topic:
            return None
        score = _score(segment, topic)
        bare = abs(score) < self.config.neutral
        stated = lexicon.SUBJECT.match(segment) or lexicon.PREDICATE.match(segment)
        if bare and not (stated and len(words) >= 3):
            return None
        if segment.lower().startswith(("the ", "this ", "that ")) and not lexicon.VERB.search(segment, 4):
            return None
        if not stated and len(words) > 8:
            return None
        sentiment: Sentiment = "positive" if score > 0 else "negative"
        if bare:
            sentiment = "neutral" if lexicon.MEASURE.search(segment) else mood()
        return Triplet(as_statement(segment), topic, sentiment)


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
        or _REVIEWER.search(segment)
        or lexicon.IMPERATIVE.match(segment)
        or lexicon.OPINION.match(segment)
        or lexicon.OTHERS.search(segment)
    )


def _mood(parts: Sequence[str]) -> Sentiment:
    """The sentiment of a whole text: the sum over its sentences, which costs time linear in their number."""
    scores = [_score(part[:400], "") for part in parts[:40]]
    total = sum(scores)
    return "positive" if total > 0 else "negative" if total < 0 else "neutral"


def _score(segment: str, topic: str) -> float:
    """VADER's compound score, with phrases that its words do not give."""
    plain = _AS_WELL.sub(" ", segment)
    score = float(_vader(topic == "price").polarity_scores(plain)["compound"])
    good = lexicon.GOOD.search(segment)
    if good and not lexicon.NEGATION.search(segment[: good.start()]):
        return max(score, 0.5)
    if lexicon.TOO.search(plain):
        return -0.5
    relief = score < 0 and lexicon.RELIEF.match(segment)
    hardly = score > 0 and lexicon.HARDLY.search(segment)
    return -score if relief or hardly else score


@functools.cache
def _vader(price: bool) -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # type: ignore[import-untyped]

    found = SentimentIntensityAnalyzer()
    found.lexicon.update(lexicon.FEELING)
    found.lexicon.update(lexicon.PRICE_SENTIMENT if price else {"cheap": -1.2})
    return found
