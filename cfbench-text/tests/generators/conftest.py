"""Small problems for the generators that are trained."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from cfbench_text.corpus import ExplanationRequests, Rows
from cfbench_text.domains import load_domain
from cfbench_text.generators.base import Context, Training

FEW = {"epochs": 3, "batch": 8, "length": 30, "device": "cpu"}
SMALL = {
    "nrt": {**FEW, "dimensions": 16, "hidden": 64, "learning_rate": 0.01},
    "att2seq": {**FEW, "dimensions": 16, "hidden": 32, "learning_rate": 0.01},
    "peter": {**FEW, "dimensions": 16, "hidden": 32, "learning_rate": 0.005},
    "cer": {**FEW, "dimensions": 16, "hidden": 32, "learning_rate": 0.005},
}
"""Options with which a fit takes a moment."""
CLASSES = {"nrt": "NRT", "att2seq": "Att2Seq", "peter": "PETER", "cer": "CER"}

FOUR = (
    ("ann", "amp", 5.0, "The user would appreciate this product because it is loud, and it weighs 3.5 kg."),
    ("ann", "bow", 1.0, "The user may dislike that it is rough."),
    ("bob", "amp", 4.0, "The user would appreciate this product because it is cheap."),
    (
        "bob",
        "bow",
        2.0,
        "The user seems indifferent to the colour. However, they may dislike that it is short.",
    ),
)
"""Two users, two items: only who knows both can tell the texts apart."""

PAIRS = [(user, item) for user, item, _, _ in FOUR]
TEXTS = [text for _, _, _, text in FOUR]


def rows_of(lines) -> Rows:
    users, items, ratings, texts = zip(*lines, strict=True) if lines else ((), (), (), ())
    count = len(lines)
    return Rows(
        tuple(f"{user}|{item}|{place}" for place, (user, item) in enumerate(zip(users, items, strict=True))),
        np.array(users, dtype=object),
        np.array(items, dtype=object),
        np.array(ratings, dtype=np.float64),
        np.arange(count),
        np.array(texts, dtype=object),
        [()] * count,
        list(texts),
    )


def training_of(train=FOUR, validation=(), seed: int = 0) -> Training:
    return Training(
        rows_of(train), rows_of(validation), load_domain("toy-reviews"), np.random.default_rng(seed)
    )


def requests_for(pairs) -> ExplanationRequests:
    users, items = (np.array(names, dtype=object) for names in zip(*pairs, strict=True))
    numbers = np.arange(len(pairs))
    return ExplanationRequests(
        tuple(f"{user}|{item}|0" for user, item in pairs), users, items, numbers, numbers
    )


def made(name: str, **options):
    module = importlib.import_module(f"cfbench_text.generators.{name}")
    return getattr(module, CLASSES[name])(module.Config(**{**SMALL[name], **options}))


def learned(name: str, **options):
    """A model that has seen the four texts often enough to know them by heart."""
    model = made(name, **{"epochs": 250 if name == "nrt" else 200, "dropout": 0.0, "batch": 4, **options})
    model.fit(training_of())
    return model


def written(model, pairs) -> list[str]:
    return [
        one.text for one in model.explain(requests_for(pairs), Context(lambda unit: np.random.default_rng(0)))
    ]


def agrees_without_cache(model, logits) -> None:
    """Batch decoding says what decoding one row says that computes all positions again for every word.

    Args:
        logits: ``logits(users, items, words)`` (B, T, V), as training computes them.
    """
    import torch

    pairs = [*PAIRS, ("eve", "amp")]
    for pair, text in zip(pairs, written(model, pairs), strict=True):
        users, items = model._numbers(*([name] for name in pair))
        numbers: list[int] = []
        while len(numbers) < model.config.length:
            with torch.no_grad():
                scores = logits(users, items, torch.tensor([[1, *numbers]]))[0, -1]
            scores[[0, 1, 3]] = -torch.inf
            if int(scores.argmax()) == 2:
                break
            numbers.append(int(scores.argmax()))
        assert model.encoding.vocabulary.decode(numbers) == text


@pytest.fixture(scope="session")
def examples():
    """The functions of this file."""
    return sys.modules[__name__]
