"""Recommenders and explainers that misbehave, for one user where that is possible."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import my_lab
import numpy as np

from cfbench_recsys.edits import Edits


@dataclass(frozen=True, kw_only=True)
class Config:
    how: str = ""
    user: int = -1
    """The index of the user for whom things go wrong; -1: for all users."""


class Misbehaves:
    """Importances that go wrong."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Any, context: Any) -> Any:
        values = targets.history.astype(float)
        wrong = np.flatnonzero((targets.users == self.config.user) | (self.config.user == -1))
        if not len(wrong):
            return values
        match self.config.how:
            case "raise":
                raise ValueError("I do not like this user\nand say why at length")
            case "shape":
                return values[:, :1]
            case "nothing":
                return None
            case "nan":
                values[wrong, 0] = np.nan
            case "infinity":
                values[wrong, 0] = np.inf
            case "hang":
                time.sleep(3600)
            case "eat":
                hoard = []
                while True:
                    hoard.append(np.ones(4_000_000))  # 32 MB
                    time.sleep(0.002)
            case how if how.startswith("wait:"):
                while not Path(how.removeprefix("wait:")).exists():
                    time.sleep(0.01)
        return values


class Confused:
    """Counterfactuals that go wrong."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Any, context: Any) -> Any:
        removed = np.zeros_like(targets.padding)
        removed[:, 0] = True
        edits = Edits.removals(targets.users, targets.history, removed)
        items = context.interactions.shape[1]
        match self.config.how:
            case "importances":
                return targets.history.astype(float)
            case "fewer":
                return edits.take(0, len(edits) - 1)
            case "others":
                return replace(edits, users=edits.users[::-1] + 1)
            case "disorder":
                return replace(edits, rows=edits.rows[::-1])
            case "beyond":
                return replace(edits, edge_items=edits.edge_items + items)
            case "foreign":
                return replace(edits, edge_users=np.zeros_like(edits.edge_users))
            case "everything":
                return Edits.removals(targets.users, targets.history, ~targets.padding)
            case "twice":
                edges = (edits.rows, edits.edge_users, edits.edge_items, edits.ops)
                return Edits(edits.users, *(np.repeat(array, 2) for array in edges))
            case "float":
                return replace(edits, edge_items=edits.edge_items.astype(float))
            case "operation":
                return replace(edits, ops=np.full_like(edits.ops, 7))
            case "absent":
                # an item that the user has not: the first of the list that is explained
                return replace(edits, edge_items=targets.items[:, 0])
        return edits


class PreparesNothing:
    """Is pre-trained, but learns nothing."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, context: Any) -> Any:
        return None

    def importances(self, targets: Any, context: Any) -> Any:
        return targets.history.astype(float)


class Unfit(my_lab.CoOccurrence):
    """A recommender that cannot be fitted, or gives NaN, or eats memory while it is fitted."""

    def __init__(self, config: Config) -> None:
        super().__init__(my_lab.Config())
        self.how = config.how

    def fit(self, split: Any, generator: Any, report: Any) -> dict[str, Any]:
        if self.how == "raise":
            raise RuntimeError("did not converge")
        if self.how == "hang":
            time.sleep(3600)
        return super().fit(split, generator, report)

    def score_profiles(self, profiles: Any) -> np.ndarray:
        scores = super().score_profiles(profiles)
        if self.how == "nan":
            return np.full_like(scores, np.nan)
        if self.how == "nan-for-short-profiles":
            scores[np.diff(profiles.indptr) == 1] = np.nan
        return scores
