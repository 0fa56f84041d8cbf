"""PN-R, probability of necessity (ranking): PN-S of a list, with displacement at the top counting more.

CFExpRec, equation 5, list level only; i_k is at place k of the original list, x' the edited profile (or
graph):

    PN-R@K(u) = 1 - sum_k 1[rank(i_k; x') <= K] / log2(rank(i_k; x') + 1)  /  sum_k 1 / log2(k + 1)

An untouched list scores 0, one of which nothing is left 1. Items that only change places within the list
change
nothing: it is the places that are lost to others that count.
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
    id="recsys/metric/pn-r",
    summary="Share of the list that is displaced, weighted by position",
    target=f"{__name__}:PnR",
    provides={"format": {"explicit"}, "level": {"list"}},
    needs={"explainer": {"format": {"explicit"}}},
    papers=("cfexprec2026",),
    details={"unit": "explanation", "empty": "0: nothing is displaced"},
)


def pn_r(ranks_after: IntArray, k: int) -> FloatArray:
    """(B,) from ranks (B, K) of the listed items under the edit."""
    import numpy as np

    places = np.arange(1, ranks_after.shape[-1] + 1)
    # Summed over places, not over items: whichever item holds a place, the sum has the same terms in one
    # order, so that a list without displaced items scores exactly 0.
    held = (ranks_after[..., None] == places).any(axis=-2) & (places <= k)
    discount = 1 / np.log2(places + 1)
    scores: FloatArray = 1 - np.where(held, discount, 0.0).sum(axis=-1) / discount.sum()
    return scores


class PnR:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How much of the list, its first places above all, does the edit give to other items?"
        return (Column(f"PN-R@{point['k']}", "higher", (0.0, 1.0), question),)

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {f"PN-R@{observed.k}": pn_r(observed.ranks_after, observed.k)}
