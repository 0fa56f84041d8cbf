"""LXR's INS-P: the item's score while the most important interactions are added, on average over 11 points.

The points are the empty profile, and the profiles that hold only what LXR's POS-P (``lxr_pos_p.py``) has
removed after each of its 10 steps; the last is the untouched one. The score is f(x)_y, as in ``lxr_del_p.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.links import values
from cfbench_recsys.metrics.lxr_pos_p import STEPS

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Link, Point
    from cfbench_recsys.edits import FloatArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/lxr-ins-p",
    summary="LXR's INS-P, mean of 11 points",
    target=f"{__name__}:LxrInsP",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("barkan2024lxr",),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)


def lxr_ins_p(scores_on_empty: FloatArray, scores_with_most_important: FloatArray, link: Link) -> FloatArray:
    """(B,) from linked scores (see ``links.py``) (B,) of the empty profile and (B, 10) after the additions."""
    import numpy as np

    scores = np.column_stack([scores_on_empty, scores_with_most_important])
    means: FloatArray = values(scores, link).mean(axis=1)
    return means


class LxrInsP:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How high is the item's score while the most important interactions are added to nothing?"
        return (Column("LXR-INS-P", "higher", None, question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        after = observed.scores_with_most_important(STEPS)[:, :, 0]
        return {"LXR-INS-P": lxr_ins_p(observed.scores_on_empty[:, 0], after, observed.link)}
