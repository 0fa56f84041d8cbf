"""Rank after the edit: where does the explained item land? For sentences, and to see how far.

Defined by cfbench. rank(i; x') with x' the edited profile (or graph), 1-based among the candidates; the item's old place
where there is no answer. Neither direction is better: an edit must push the item beyond K, how far is no
merit.
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
    id="recsys/metric/rank-after",
    summary="Rank of the item after the edit",
    target=f"{__name__}:RankAfter",
    provides={"format": {"explicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"explicit"}}},
    details={"unit": "explanation", "empty": "its old place"},
)

COLUMN = Column("Rank after", "", None, "In which place is the item after the edit?")


def rank_after(ranks_after: IntArray) -> FloatArray:
    """(B,) from ranks (B, 1) of the explained item under the edit."""
    return ranks_after[:, 0].astype(float)


class RankAfter:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        return (COLUMN,)

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {COLUMN.name: rank_after(observed.ranks_after)}
