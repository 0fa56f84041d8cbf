"""What generators of explanations receive and return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_text.corpus import Corpus, Rows
from cfbench_text.domains import Domain

if TYPE_CHECKING:
    from cfbench_core.lifecycle.models import State

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Training:
    """The training data of a generator.

    Attributes:
        train: rows with ratings, reviews, statements, and ``targets``, the texts to learn to write; some are empty.
        validation: rows for model selection, for example early stopping. Test rows are never included.
        domain: the topics.
        rng: the random stream of the training; torch is seeded from it.
        report: called as ``report(epoch, epochs)`` after each epoch.
    """

    train: Rows
    validation: Rows
    domain: Domain
    rng: np.random.Generator
    report: Report = lambda done, total: None

    @staticmethod
    def of(corpus: Corpus, rng: np.random.Generator, report: Report = lambda done, total: None) -> Training:
        """The training and validation rows of a corpus."""
        return Training(corpus.part("train"), corpus.part("validation"), corpus.domain, rng, report)


@dataclass(frozen=True)
class Explanation:
    """A text, empty if the generator produces none, and the predicted rating, NaN if it predicts none."""

    text: str
    rating: float = float("nan")


@dataclass(frozen=True)
class Context:
    """What a generator may use in addition to what it has learned.

    Attributes:
        rng: ``rng(unit)`` is the random stream of a unit, which does not depend on the other rows of the batch.
        references: the reference texts of all rows to explain, indexed by ``ExplanationRequests.places``. Only for
            controls that declare ``provides={"sees": {"references"}}``; None for all others.
    """

    rng: Callable[[str], np.random.Generator]
    references: Sequence[str] | None = None


class LookupGenerator:
    """A control that only looks up training rows. It stores nothing; ``load_state`` fits again."""

    def fit(self, training: Training) -> None:
        raise NotImplementedError

    def state(self) -> State:
        return {}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], training: Training) -> None:
        self.fit(training)
