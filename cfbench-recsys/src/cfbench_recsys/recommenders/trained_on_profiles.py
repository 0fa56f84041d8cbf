"""Fitting in epochs, as recommenders do that score a user from the profile alone and learn from all profiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from cfbench_recsys.edits import FloatArray
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.training import Keep, State, Stopping, sample_of, train
from cfbench_recsys.splits import Split


class Training(Protocol):
    """What is trained."""

    def epoch(self) -> float:
        """Once over all users; the mean loss."""

    def state(self) -> State:
        """What was learned so far, as the recommender keeps it."""


class TrainedOnProfiles(ABC):
    """Fits; a recommender says what is trained, and scores with what comes of it.

    Attributes:
        name: of the component; it names the random streams.
        config: has epochs and patience.
    """

    name: str
    config: Any

    @abstractmethod
    def training(
        self, interactions: sparse.csr_matrix, generator: Callable[..., np.random.Generator]
    ) -> Training:
        """What is trained on ``interactions`` (users, items), from the beginning."""

    @abstractmethod
    def load_state(self, state: Mapping[str, np.ndarray], interactions: sparse.csr_matrix) -> None:
        """Takes up what was learned."""

    @abstractmethod
    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items)."""

    def stopping(self) -> Stopping:
        """How long to train; a look at the validation data after each epoch."""
        return Stopping(self.config.epochs, self.config.patience)

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
        keep: Keep | None = None,
    ) -> dict[str, Any]:
        """Trains on ``split.train``. Returns a summary of the training."""
        training = self.training(split.train, generator)
        validation = sample_of(split.validation, generator(self.name, "validation"))

        def validate() -> Mapping[str, float]:
            self.load_state(training.state(), split.profiles)
            return ranking_quality(lambda rows: self.score_profiles(validation.inputs[rows]), validation)

        best, summary = train(training.epoch, validate, training.state, self.stopping(), report, keep)
        self.load_state(best, split.profiles)
        return summary
