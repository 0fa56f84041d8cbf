"""Success rate: how many answers displace the item (item level), or any item of the list (list level).

Defined by cfbench. At item level the same as PN-S; at list level PN-S measures how much of the list is displaced,
this metric whether anything is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import BoolArray, FloatArray
    from cfbench_recsys.observations import ExplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/success-rate",
    summary="Share of units with a successful answer",
    target=f"{__name__}:SuccessRate",
    provides={"format": {"explicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"explicit"}}},
    details={"unit": "explanation", "empty": "0: no answer, no success"},
)


def success_rate(succeeded: BoolArray) -> FloatArray:
    """(B,) 1.0 where something is displaced."""
    return succeeded.astype(float)


class SuccessRate:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = (
            f"Does the answer push {'the' if point['level'] == 'item' else 'any'} item out of the list?"
        )
        return (Column(f"Success@{point['k']}", "higher", (0.0, 1.0), question),)

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {f"Success@{observed.k}": success_rate(observed.succeeded)}
