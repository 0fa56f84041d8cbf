"""Random: each interaction gets a uniform importance. The baseline that no explainer should fall below.

Not published elsewhere. The stream belongs to the unit (user and explained items) and not to its place in a
batch.
Cost: no model query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/random",
    summary="Interactions in random order: the baseline for every explainer",
    target=f"{__name__}:Random",
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


class Random:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) uniform in [0, 1)."""
        importances = np.zeros(targets.history.shape)
        for unit, (user, items) in enumerate(
            zip(targets.users.tolist(), targets.items.tolist(), strict=True)
        ):
            held = ~targets.padding[unit]
            importances[unit, held] = context.generator("random", user, *items).random(int(held.sum()))
        return importances
