"""What the suite asks of a generator of explanations, which is its kind of recommender."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from cfbench_text.corpus import ExplanationRequests, Rows
from cfbench_text.domains import Domain
from cfbench_text.reviews import FloatArray

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Training:
    """What a generator learns from.

    Attributes:
        train: rows with ratings, reviews, statements, and paragraphs to learn to write; some paragraphs are empty.
        validation: rows to choose with, when to stop for example. Test rows are never here.
        domain: the topics.
        rng: the random stream of the fit; torch is seeded from it.
        report: tells how far it is, ``report(epoch, epochs)``.
    """

    train: Rows
    validation: Rows
    domain: Domain
    rng: np.random.Generator
    report: Report = lambda done, total: None


@dataclass(frozen=True)
class Explanation:
    """A text, empty where the generator has nothing to say, and the rating it predicts; NaN where it does not."""

    text: str
    rating: float = float("nan")


@dataclass(frozen=True)
class Context:
    """What a generator may use besides what it learned.

    Attributes:
        rng: ``rng(unit)`` is the random stream of a unit, the same whatever else is in the batch.
        references: the true paragraphs of all rows to explain, by ``ExplanationRequests.places``. Only for controls that say
            ``provides={"sees": {"references"}}``; None for everybody else.
    """

    rng: Callable[[str], np.random.Generator]
    references: Sequence[str] | None = None


class Generator(Protocol):
    """A component of kind "recommender": ``Name(config)``, then ``fit`` or ``load``, then ``explain``.

    One that predicts ratings has ``predict_ratings(asked) -> (B,)`` too; RMSE and MAE on the test rows are then
    reported beside its texts. Weights are kept as safetensors, all else as JSON.
    """

    def fit(self, training: Training) -> None:
        """Learn from the training rows; choose with the validation rows."""

    def explain(self, asked: ExplanationRequests, context: Context) -> Sequence[Explanation]:
        """One for each row, in order; the same whatever else is in the batch (greedy decoding)."""

    def save(self, folder: Path) -> None:
        """Write what was learned into files of its own below ``folder``."""

    def load(self, folder: Path, training: Training) -> None:
        """Take up what :meth:`save` wrote. ``training`` is as at the fit; do not learn from it again."""


class RatingGenerator(Generator, Protocol):
    """A generator that predicts ratings as well."""

    def predict_ratings(self, asked: ExplanationRequests) -> FloatArray:
        """(B,) the rating that the user would give the item."""


class Lookup:
    """A control that only looks things up in the training rows: nothing is saved, ``load`` looks again."""

    def fit(self, training: Training) -> None:
        raise NotImplementedError

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path, training: Training) -> None:
        self.fit(training)
