"""``rules``: statements without a language model; deterministic and fast.

A review is segmented into sentences and clauses. A clause is a statement if it has a keyword of a topic of the domain
(opinions without content have none) and at least three words. Its topic is the one with most keywords; its sentiment
is VADER's compound score with the usual thresholds of +-0.05 (Hutto & Gilbert 2014). The clause is rewritten in the
third person ("my" becomes "their"). The openings of the template's sentences are not part of a statement. Reviews of
any length are read completely. In the domain ``general`` every clause is a statement. Statement factuality uses
Llama-3-8B instead, whose statements are atomic, while these are clauses.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_text.extractors.base import Extraction
from cfbench_text.sentence_segmentation import clauses, sentences
from cfbench_text.third_person import as_statement
from cfbench_text.triplets import FIRST, LATER, Sentiment, Triplet, canonical

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

SPEC = ComponentSpec(
    id="text/extractor/rules",
    summary="Clauses with a keyword of a topic; sentiment by VADER",
    target=f"{__name__}:Rules",
    config=f"{__name__}:Config",
    papers=("hutto2014vader",),
)


_OPENING = re.compile(f"^(?:{'|'.join(map(re.escape, (*FIRST.values(), *LATER.values())))})")


PART = 200
"""Words per call of VADER, whose time grows with their square. For longer clauses, which only occur in texts without
punctuation, the mean over such parts is used."""


@dataclass(frozen=True, kw_only=True)
class Config:
    words: Annotated[int, Range(minimum=1), Help("minimum number of words in a clause")] = 3
    neutral: Annotated[
        float, Range(minimum=0, maximum=1), Help("compound scores of VADER nearer to 0 are neutral")
    ] = 0.05


class Rules:
    def __init__(self, config: Config) -> None:
        self.config = config

    def extract(self, texts: Sequence[str], domain: Domain) -> list[Extraction]:
        found = []
        for text in texts:
            triplets = canonical(self._triplets(text, domain))
            found.append(Extraction(triplets, "ok" if triplets else "empty"))
        return found

    def usable(self, triplet: Triplet) -> bool:
        """Statements of reviews always have a topic, so statements of paragraphs must have one, too."""
        return bool(triplet.topic)

    def signature(self) -> Mapping[str, str]:
        from importlib.metadata import version

        return {"extractor": "rules", "vaderSentiment": version("vaderSentiment")}

    def _triplets(self, text: str, domain: Domain) -> list[Triplet]:
        found = []
        for sentence in sentences(text):
            if not domain.covers(sentence):
                continue
            for clause in clauses(_OPENING.sub("", sentence)):
                if len(clause.split()) < self.config.words or not domain.covers(clause):
                    continue
                statement = as_statement(clause)
                topic = domain.topic_of(statement)
                if topic:
                    found.append(Triplet(statement, topic, self._sentiment(clause)))
        return found

    def _sentiment(self, clause: str) -> Sentiment:
        words = clause.split()
        parts = [" ".join(words[start : start + PART]) for start in range(0, len(words), PART)]
        score = sum(_vader().polarity_scores(part)["compound"] for part in parts) / max(1, len(parts))
        if abs(score) < self.config.neutral:
            return "neutral"
        return "positive" if score > 0 else "negative"


@functools.cache
def _vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # type: ignore[import-untyped]

    return SentimentIntensityAnalyzer()
