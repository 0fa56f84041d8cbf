"""Coverage: for how many units there is an answer at all, right or wrong.

Defined by cfbench. 1 where the answer has at least one edit, else 0.
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
    id="recsys/metric/coverage",
    summary="Share of units with an answer",
    target=f"{__name__}:Coverage",
    provides={"format": {"explicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"explicit"}}},
    details={"unit": "explanation", "empty": "0: no answer, no success"},
)


def coverage(edges: IntArray) -> FloatArray:
    """(B,) 1.0 where something is edited."""
    return (edges > 0).astype(float)


class Coverage:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        return (Column("Coverage", "higher", (0.0, 1.0), "Is there an answer?"),)

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {"Coverage": coverage(observed.edges)}
