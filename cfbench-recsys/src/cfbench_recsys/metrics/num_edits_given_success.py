"""#Perturb of the successes: the number of edited edges of successful answers.

Defined by cfbench: equation 7 of CFExpRec over the units whose answer displaces something; missing (NaN) for the others.
Unlike the paper's convention (``edits.py``) an explainer gains nothing by not answering; it is a mean over
other units for every explainer, so read it together with the success rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
    from cfbench_recsys.observations import ExplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/num-edits-given-success",
    summary="Number of edited edges of successful answers",
    target=f"{__name__}:NumEditsGivenSuccess",
    provides={"format": {"explicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"explicit"}}},
    details={"unit": "explanation", "empty": "missing where the answer fails"},
)


def num_edits_given_success(edges: IntArray, succeeded: BoolArray) -> FloatArray:
    """(B,) number of edited edges, NaN where nothing is displaced."""
    import numpy as np

    return np.where(succeeded, edges.astype(float), np.nan)


class NumEditsGivenSuccess:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How many edges does a successful answer edit?"
        return (Column(f"#Perturb given success@{point['k']}", "lower", None, question),)

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {
            f"#Perturb given success@{observed.k}": num_edits_given_success(
                observed.edges, observed.succeeded
            )
        }
