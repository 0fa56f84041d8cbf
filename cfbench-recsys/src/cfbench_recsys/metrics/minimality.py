"""Minimality: is every edit of a successful answer needed?

Defined by cfbench: 1 where no single edit can be taken back with as many items displaced still, 0 where one can, missing
(NaN) where the answer fails. (A set of edits that is minimal so may still be larger than the smallest
counterfactual.)
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
    id="recsys/metric/minimality",
    summary="Share of successes in which every edit is needed",
    target=f"{__name__}:Minimality",
    provides={"format": {"explicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"explicit"}}},
    details={"unit": "explanation", "empty": "missing where the answer fails"},
)


def minimality(reducible: BoolArray, succeeded: BoolArray) -> FloatArray:
    """(B,) 1.0 where nothing can be taken back, NaN where nothing is displaced."""
    import numpy as np

    return np.where(succeeded, (~reducible).astype(float), np.nan)


class Minimality:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        return (
            Column(
                f"Minimality@{point['k']}",
                "higher",
                (0.0, 1.0),
                "Is every edit of a successful answer needed?",
            ),
        )

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {f"Minimality@{observed.k}": minimality(observed.reducible, observed.succeeded)}
