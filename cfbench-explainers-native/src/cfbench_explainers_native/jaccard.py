"""Jaccard: an interaction matters as much as its item resembles the explained one, by the users they share.

With U_i the training users of item i: jac(i, y) = |U_i n U_y| / |U_i u U_y|, and 0 where neither has training
users. At list level the mean over the listed items. A baseline of Refined fidelity and Consistency beyond top-1 ("Jaccard").

Departs from their code: a sparse product for the columns that are needed instead of all pairs of items, and
an item unknown to training users has similarity 0 rather than raising.
Cost: no model query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import similarities
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/jaccard",
    summary="Jaccard similarity of items by their users",
    target=f"{__name__}:Jaccard",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """There are no options."""


class Jaccard:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) in [0, 1]."""
        return similarities(targets, context, jaccard)


def jaccard(both: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Jaccard index of two sets from the size of their intersection and their own sizes."""
    return both / np.maximum(first + second - both, 1.0)
