"""NEG-P: how long an item stays in the list while the least important interactions are removed.

CFExpRec, section 3.2: POS-P (``pos_p.py``) with the order of removal reversed. The order is reversed
exactly, ties
included: the least important interaction is the last one of the order that POS-P uses. So NEG-P of an
explanation is POS-P of the reversed explanation, and an explanation of equal importances scores by the same
one order in both.
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
    id="recsys/metric/neg-p",
    summary="Share of removal steps, least important first, with the item in the list",
    target=f"{__name__}:NegP",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("cfexprec2026",),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)

__all__ = ["Config", "NegP", "neg_p"]


def neg_p(ranks_without_least_important: IntArray, k: int) -> FloatArray:
    """(B,) from ranks (B, steps, T): the share of steps, and of items, in which the item is in the list."""
    shares: FloatArray = (ranks_without_least_important <= k).mean(axis=(1, 2))
    return shares


class NegP:
    def __init__(self, config: Config) -> None:
        self.steps = config.steps

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = (
            "How long does the item stay in the list while the least important interactions are removed?"
        )
        return (Column(with_steps(f"NEG-P@{point['k']}", self.steps), "higher", (0.0, 1.0), question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        values = neg_p(observed.ranks_without_least_important(self.steps), observed.k)
        return {with_steps(f"NEG-P@{observed.k}", self.steps): values}
