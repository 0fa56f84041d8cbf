"""Popularity: the importance of an interaction is the number of training users of its item. A baseline.

Not published elsewhere. An explainer that does no better than this explains the data, not the recommendation.
Cost: no model query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/popularity",
    summary="The user's most popular items first, whatever is explained",
    target=f"{__name__}:Popularity",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="baseline",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """There are no options."""


class Popularity:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) number of training users of each item of the history."""
        users_of = np.asarray(context.training.sum(axis=0), dtype=np.float64).ravel()
        return np.where(targets.padding, 0.0, users_of[targets.history])
