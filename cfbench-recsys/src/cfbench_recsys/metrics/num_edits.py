"""#Perturb: how many edges the answer edits, in all, by removal and by addition.

CFExpRec, equation 7, extended to graphs: an undirected edge counts once. An empty answer counts 0, as in the
paper, so an explainer that answers nothing has the smallest mean of all. Read it together with coverage and PN-S, or
read ``num-edits-given-success``. Methods that add edges cannot be ranked on it against those that only remove:
hence no direction.
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
    id="recsys/metric/num-edits",
    summary="Number of edited edges, #Perturb",
    target=f"{__name__}:NumEdits",
    provides={"format": {"explicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"explicit"}}},
    papers=("cfexprec2026",),
    details={"unit": "explanation", "empty": "0: nothing is edited, nothing displaced"},
)


def perturbations(edges: IntArray) -> FloatArray:
    """(B,) number of edited edges, 0 for an empty answer."""
    return edges.astype(float)


class NumEdits:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        return (
            Column("#Perturb", "", None, "How many edges does the answer edit? An empty answer counts 0."),
            Column("#Removals", "", None, "How many edges does the answer remove?"),
            Column("#Additions", "", None, "How many edges does the answer add?"),
        )

    def compute(self, observed: ExplicitObservations) -> dict[str, FloatArray]:
        return {
            "#Perturb": perturbations(observed.edges),
            "#Removals": perturbations(observed.removals),
            "#Additions": perturbations(observed.additions),
        }
