"""What a user may have lying next to a configuration: a recommender and explainers, without packaging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Range
from cfbench_recsys.edits import Edits
from cfbench_recsys.targets import Answer


@dataclass(frozen=True, kw_only=True)
class Config:
    damping: Annotated[float, Range(minimum=0)] = 10.0


class CoOccurrence:
    """Scores an item by how often it was seen together with the items of the profile. Linear."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(self, split: Any, generator: Any, report: Any) -> dict[str, Any]:
        together = (split.train.T @ split.train).toarray()
        popular = np.sqrt(np.diag(together) + self.config.damping)
        self.weight = together / popular[:, None] / popular
        np.fill_diagonal(self.weight, 0.0)
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {"weight": self.weight}

    def load_state(self, state: Any, interactions: Any) -> None:
        self.weight = state["weight"]

    def score_profiles(self, profiles: Any) -> np.ndarray:
        return np.asarray(profiles @ self.weight)

    def weights(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.weight[rows, columns]


class ByIndex:
    """Holds the items with the highest index responsible. Depends on nothing: easy to check."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Any, context: Any) -> np.ndarray:
        return targets.history.astype(float)


class TakesTheFirst:
    """Removes the user's first interaction."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Any, context: Any) -> Edits:
        removed = np.zeros_like(targets.padding)
        removed[:, 0] = True
        return Edits.removals(targets.users, targets.history, removed & ~targets.padding)


class TellsTheLength:
    """Removes nothing, and reports the length of the history."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Any, context: Any) -> Answer:
        lengths = (~targets.padding).sum(axis=1).astype(float)
        return Answer(
            Edits.nothing(targets.users), {"length": lengths[:-1] if self.config.damping == 0 else lengths}
        )


class NeedsTraining:
    """Learns popularity from users who are not explained."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, context: Any) -> dict[str, np.ndarray]:
        return {"popularity": np.asarray(context.training.sum(axis=0)).ravel()}

    def importances(self, targets: Any, context: Any) -> np.ndarray:
        return context.state["popularity"][targets.history]
