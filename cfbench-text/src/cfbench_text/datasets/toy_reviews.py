"""``toy-reviews``: synthetic reviews of fictitious headphones, for offline tests and tutorials.

A grammar builds them from known statements, so that the correct extraction is known: every product has a good, a bad or
a neutral property for each topic, every user is interested in some topics, and a review states the product's properties
in plain sentences between remarks without content. Scores on these reviews are not meaningful.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.lifecycle.streams import generator
from cfbench_core.specs import ComponentSpec
from cfbench_text.reviews import Reviews, array_of_text
from cfbench_text.triplets import SENTIMENTS, Sentiment, Triplet, canonical

SPEC = ComponentSpec(
    id="text/dataset/toy-reviews",
    summary="Synthetic reviews of headphones, made by a grammar from known statements",
    target=f"{__name__}:ToyReviews",
    config=f"{__name__}:Config",
    details={"licence": "Apache-2.0", "embedded": True},
)


STATEMENTS: Mapping[str, Mapping[Sentiment, tuple[str, ...]]] = {
    "sound": {
        "positive": ("the bass is excellent", "the sound is clear and beautiful"),
        "negative": ("the treble is harsh and awful", "the sound is terribly bad"),
        "neutral": ("the volume is set on the left side",),
    },
    "comfort": {
        "positive": ("the ear pads are wonderfully soft", "the headband is comfortable"),
        "negative": ("the headband hurts after an hour", "the ear pads are horribly hot"),
        "neutral": ("the weight is 250 grams",),
    },
    "battery": {
        "positive": ("the battery is impressive on long trips",),
        "negative": ("the battery is weak and disappointing",),
        "neutral": ("the charger has a small lamp",),
    },
    "build": {
        "positive": ("the hinge is strong", "the case is a nice surprise"),
        "negative": ("the cable is poor and annoying",),
        "neutral": ("the cable is 1.2 metres long",),
    },
    "price": {
        "positive": ("the price is great",),
        "negative": ("the price is a ridiculous joke",),
        "neutral": ("the price is 79 dollars",),
    },
}
"""By topic and sentiment; keywords and words of feeling are such that the extractor by rules reads them right."""

REMARKS = (
    "I bought these in May.",
    "My sister has them too.",
    "What can I say?",
    "I use them on the train, e.g. in the morning.",
    "They came from the U.S. in two days.",
)
JOINS = (". ", "; ", ", and ")
RATINGS = {"positive": 1.0, "negative": -1.0, "neutral": 0.0}
START, DAY = 1_400_000_000, 86_400


@dataclass(frozen=True, kw_only=True)
class Config:
    users: Annotated[int, Range(minimum=2), Help("who write 5 to 10 reviews each")] = 40
    items: Annotated[int, Range(minimum=10), Help("products")] = 24
    seed: Annotated[int, Range(minimum=0), Help("of the grammar's draws")] = 0


class ToyReviews:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Reviews:
        draw = generator("toy-reviews", self.config.seed)
        products = [_product(draw) for _ in range(self.config.items)]
        rows: list[tuple[str, str, float, int, str, tuple[Triplet, ...]]] = []
        for user in range(self.config.users):
            cares = draw.choice(list(STATEMENTS), size=3, replace=False).tolist()
            bought = draw.choice(self.config.items, size=int(draw.integers(5, 11)), replace=False)
            for item in bought.tolist():
                about = [products[item][topic] for topic in cares if draw.random() < 0.8]
                mood = sum(RATINGS[triplet.sentiment] for triplet in about)
                rating = float(np.clip(3.0 + mood, 1.0, 5.0))
                time = START + DAY * int(draw.integers(1000))
                rows.append(
                    (f"U{user:03d}", f"H{item:03d}", rating, time, _review(about, draw), canonical(about))
                )
        users, items, ratings, times, texts, known = zip(*rows, strict=True)
        return Reviews(
            "toy-reviews",
            "toy-reviews",
            array_of_text(users),
            array_of_text(items),
            np.asarray(ratings),
            np.asarray(times, dtype=np.int64),
            array_of_text(texts),
            known=known,
            about={"synthetic": True},
        )


def _product(draw: np.random.Generator) -> dict[str, Triplet]:
    """What a product is like, on every topic."""
    found = {}
    for topic, of_topic in STATEMENTS.items():
        sentiment = SENTIMENTS[int(draw.choice(3, p=[0.5, 0.3, 0.2]))]
        statement = of_topic[sentiment][int(draw.integers(len(of_topic[sentiment])))]
        found[topic] = Triplet(statement, topic, sentiment)
    return found


def _review(triplets: list[Triplet], draw: np.random.Generator) -> str:
    """The statements as sentences or clauses, with a remark before and perhaps one behind."""
    remarks = [REMARKS[place] for place in draw.permutation(len(REMARKS))[:2].tolist()]
    text = ""
    for triplet in triplets:
        join = JOINS[int(draw.integers(len(JOINS)))] if text else ""
        starts = join in ("", ". ")
        text += join + (triplet.statement[0].upper() + triplet.statement[1:] if starts else triplet.statement)
    middle = f" {text}." if text else ""
    return remarks[0] + middle + (f" {remarks[1]}" if draw.random() < 0.5 else "")
