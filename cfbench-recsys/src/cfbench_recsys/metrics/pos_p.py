"""POS-P: how long an item stays in the list while the most important interactions are removed.

CFExpRec, equations 1 and 2. The history is sorted by importance, descending (ties: lower item index), and
removed in T chunks as even as ``numpy.array_split`` makes them; x(t) is what remains after t chunks.

    POS-P@K(u, i) = 1/T sum_t 1[rank(i; x(t)) <= K]            item level
    POS-P@K(u)    = the mean of this over i_1..i_K             list level

All of the history takes part, items of importance zero too. (The published code drops those, so that an
explainer which gives many exact zeros is judged on fewer removals than another.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/pos-p",
    summary="Share of removal steps, most important first, with the item in the list",
    target=f"{__name__}:PosP",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("cfexprec2026",),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """The paper's number of steps is 10."""

    steps: Annotated[int, Range(minimum=1), Help("chunks that the history is removed in")] = 10


def pos_p(ranks_without_most_important: IntArray, k: int) -> FloatArray:
    """(B,) from ranks (B, steps, T): the share of steps, and of items, in which the item is in the list."""
    shares: FloatArray = (ranks_without_most_important <= k).mean(axis=(1, 2))
    return shares


class PosP:
    def __init__(self, config: Config) -> None:
        self.steps = config.steps

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = (
            "How long does the item stay in the list while the most important interactions are removed?"
        )
        return (Column(with_steps(f"POS-P@{point['k']}", self.steps), "lower", (0.0, 1.0), question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        values = pos_p(observed.ranks_without_most_important(self.steps), observed.k)
        return {with_steps(f"POS-P@{observed.k}", self.steps): values}


def with_steps(name: str, steps: int) -> str:
    """The column's name, with the number of steps if it differs from the paper's."""
    return name if steps == 10 else f"{name} (T={steps})"
