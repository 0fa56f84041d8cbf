"""PN-S, probability of necessity (single): does the edit push the item, or the list, out of the top K?

CFExpRec, equations 3 and 4, with x' the edited profile (or graph):

    PN-S@K(u, i) = 1[rank(i; x') > K]                          item level
    PN-S@K(u)    = the mean of this over i_1..i_K              list level

An empty answer displaces nothing and scores 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ExplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/pn-s",
    summary="Share of the items that leave the list",
    target=f"{__name__}:PnS",
    provides={"format": {"explicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"explicit"}}},
    papers=("cfexprec2026",),
    details={"unit": "explanation", "empty": "0: nothing is edited, nothing displaced"},
)


def pn_s(ranks_after: IntArray, k: int) -> FloatArray:
    """(B,) from ranks (B, T) of the explained items under the edit."""
    shares: FloatArray = (ranks_after > k).mean(axis=-1)
    return shares


class PnS:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = {
            "item": "Does the edit push the item out of the list?",
            "list": "How much of the list does the edit push out of it?",
        }[str(point["level"])]
        return (Column(f"PN-S@{point['k']}", "higher", (0.0, 1.0), question),)

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {f"PN-S@{observed.k}": pn_s(observed.ranks_after, observed.k)}
