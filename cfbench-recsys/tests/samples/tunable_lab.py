"""Explainers for tests, with options to tune and a record of the users they learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range, Search
from cfbench_recsys.edits import Edits


@dataclass(frozen=True, kw_only=True)
class Config:
    truth: Annotated[float, Range(minimum=0, maximum=1), Search(0, 1), Help("how much of it is so")] = 0.0


class Blend:
    """For linear models: what each interaction adds to the score, and noise in place of the rest of it."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, context: Any) -> dict[str, np.ndarray]:
        return {"learned_from": np.flatnonzero(np.diff(context.training.indptr))}

    def importances(self, targets: Any, context: Any) -> np.ndarray:
        exact = context.model.weights(targets.history, targets.items[:, :1])
        noise = context.generator("noise", str(targets.users[0])).random(exact.shape)
        share = self.config.truth
        return share * exact / exact.max() + (1 - share) * noise


class RemovesSome:
    """Removes the first ``truth`` of the user's interactions."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Any, context: Any) -> Edits:
        lengths = (~targets.padding).sum(axis=1, keepdims=True)
        removed = np.arange(targets.history.shape[1]) < self.config.truth * lengths
        return Edits.removals(targets.users, targets.history, removed & ~targets.padding)
