"""Empty-profile POS-P and Full removal: what compresses the differences of POS-P and NEG-P.

Defined by cfbench. Two numbers that depend on the recommender and the user only, to be read together with POS-P and NEG-P:

- Empty-profile POS-P@K: the same indicator for the empty profile, 1[rank(i; 0) <= K] (list level: their mean). A model
  with a bias may have an item in the list without any history.
- Full removal: the share of the T steps after which nothing is left to remove: 1/T for a user with n >= T
  interactions, more for a user with fewer.

At the steps of Full removal the profile is empty, so that of each unit

    POS-P, NEG-P >= Empty-profile POS-P * Full removal.

Empty-profile POS-P alone is no limit: without a part of the history other items can be ahead of an item that the empty
profile has in the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.pos_p import Config, with_steps

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/empty-profile-pos-p",
    summary="What the empty profile and short histories contribute to POS-P and NEG-P",
    target=f"{__name__}:EmptyProfilePosP",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"implicit"}}},
    details={"unit": "explanation", "empty": "does not depend on the answer"},
)

__all__ = ["Config", "EmptyProfilePosP", "empty_profile_pos_p", "full_removal"]


def empty_profile_pos_p(ranks_on_empty: IntArray, k: int) -> FloatArray:
    """(B,) from ranks (B, T) under the empty profile."""
    shares: FloatArray = (ranks_on_empty <= k).mean(axis=1)
    return shares


def full_removal(removed: IntArray, lengths: IntArray) -> FloatArray:
    """(B,) from how many of ``lengths`` (B,) interactions are removed after each step, (B, steps)."""
    shares: FloatArray = (removed == lengths[:, None]).mean(axis=1)
    return shares


class EmptyProfilePosP:
    def __init__(self, config: Config) -> None:
        self.steps = config.steps

    def columns(self, point: Point) -> tuple[Column, ...]:
        return (
            Column(
                f"Empty-profile POS-P@{point['k']}",
                "",
                (0.0, 1.0),
                "Is the item in the list of a user without any history?",
            ),
            Column(
                with_steps("Full removal", self.steps),
                "",
                (0.0, 1.0),
                "At which share of the steps of POS-P and NEG-P is the whole history gone?",
            ),
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        return {
            f"Empty-profile POS-P@{observed.k}": empty_profile_pos_p(observed.ranks_on_empty, observed.k),
            with_steps("Full removal", self.steps): full_removal(
                observed.removed(self.steps), observed.lengths
            ),
        }
