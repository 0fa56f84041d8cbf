"""Fitting in epochs, as recommenders do that score a user from the profile alone and learn from all profiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.devices.cuda import torch_device
from cfbench_core.devices.training_steps import Loss, TrainingSteps
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.adam import Adam
from cfbench_recsys.recommenders.training import (
    CheckpointCallback,
    State,
    Stopping,
    sample_of,
    train,
)
from cfbench_recsys.splits import Split


class Training(ABC):
    """What is trained: a subclass makes parameters and their ``optimizer``, and says what is minimised.

    Attributes:
        random: all draws of the training, the parameters' first values among them.
        users: those who have interactions.
    """

    optimizer: Adam

    def __init__(
        self, interactions: scipy.sparse.csr_matrix, config: Any, random: np.random.Generator
    ) -> None:
        import torch

        self.torch = torch
        self.config = config
        self.device = torch_device(config.device)
        self.random = random
        self.interactions = interactions
        self.users = np.flatnonzero(np.diff(interactions.indptr))

    @abstractmethod
    def loss(self, profiles: scipy.sparse.csr_matrix) -> Loss:
        """Draws what is random for the users of ``profiles`` (B, items); the mean of their losses, by parts."""

    @abstractmethod
    def state(self) -> State:
        """Copies of what was learned so far, in the layout of the recommender's own state."""

    def epoch(self, steps: TrainingSteps) -> float:
        """Once over all users; the mean loss."""
        total = 0.0
        self.random.shuffle(self.users)
        for start in range(0, len(self.users), self.config.batch):
            batch = self.users[start : start + self.config.batch]
            loss = self.loss(self.interactions[batch])
            total += steps.take(self.optimizer, len(batch), loss) * len(batch)
        return total / max(1, len(self.users))


def entries(profiles: scipy.sparse.csr_matrix, rows: slice) -> slice:
    """Where the stored entries of some rows, one after the other, stand among those of all."""
    return slice(profiles.indptr[rows.start], profiles.indptr[rows.stop])


class TrainedOnProfiles(ABC):
    """Fits; a recommender says what is trained, and scores with what comes of it.

    Attributes:
        name: of the component; it names the random streams.
        smaller: the options on which the memory of a single user depends in the training.
        config: has batch, epochs, patience and device.
    """

    name: str
    smaller: str
    config: Any

    @abstractmethod
    def training(
        self, interactions: scipy.sparse.csr_matrix, generator: Callable[..., np.random.Generator]
    ) -> Training:
        """What is trained on ``interactions`` (users, items), from the beginning."""

    @abstractmethod
    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Takes up what was learned."""

    @abstractmethod
    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items)."""

    def stopping(self) -> Stopping:
        """How long to train; a look at the validation data after each epoch."""
        return Stopping(self.config.epochs, self.config.patience)

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
        checkpoint: CheckpointCallback | None = None,
    ) -> dict[str, Any]:
        """Trains on ``split.train``. Returns a summary of the training."""
        training = self.training(split.train, generator)
        validation = sample_of(split.validation, generator(self.name, "validation"))

        def validate() -> Mapping[str, float]:
            self.load_state(training.state(), split.profiles)
            return ranking_quality(lambda rows: self.score_profiles(validation.inputs[rows]), validation)

        steps = TrainingSteps(self.name, self.smaller)
        best, summary = train(
            lambda: training.epoch(steps), validate, training.state, self.stopping(), report, checkpoint
        )
        self.load_state(best, split.profiles)
        return summary
