"""LXR's INS-P: the item's score while the most important interactions are added, on average over 11 points.

The points are the empty profile, and the profiles that hold only what LXR's POS-P (``lxr_pos_p.py``) has
removed after each of its 10 steps; the last is the untouched one. The score is that of ``lxr_del_p.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.affinity import affinity
from cfbench_recsys.metrics.lxr_pos_p import STEPS

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
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


def lxr_ins_p(logits_on_empty: FloatArray, logits_with_most_important: FloatArray) -> FloatArray:
    """(B,) from logits (B,) of the empty profile and (B, 10) after the additions."""
    import numpy as np

    logits = np.column_stack([logits_on_empty, logits_with_most_important])
    scores: FloatArray = affinity(logits).mean(axis=1)
    return scores


class LxrInsP:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How high is the item's score while the most important interactions are added to nothing?"
        return (Column("LXR-INS-P", "higher", (0.0, 1.0), question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        after = observed.logits_with_most_important(STEPS)[:, :, 0]
        return {"LXR-INS-P": lxr_ins_p(observed.logits_on_empty[:, 0], after)}
