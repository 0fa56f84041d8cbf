"""LXR's DEL-P: the item's score, on average over the 11 points of LXR's POS-P (``lxr_pos_p.py``).

The score is the sigmoid of the logit, as in the published code; nothing is divided by the score of the
untouched profile (DEL@K_e, ``deletion.py``, can be).
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
    id="recsys/metric/lxr-del-p",
    summary="LXR's DEL-P, mean of 11 points",
    target=f"{__name__}:LxrDelP",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("barkan2024lxr",),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)


def lxr_del_p(logits_before: FloatArray, logits_without_most_important: FloatArray) -> FloatArray:
    """(B,) from logits (B,) of the untouched profile and (B, 10) after the removals."""
    import numpy as np

    logits = np.column_stack([logits_before, logits_without_most_important])
    scores: FloatArray = affinity(logits).mean(axis=1)
    return scores


class LxrDelP:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How high is the item's score while the most important interactions are removed?"
        return (Column("LXR-DEL-P", "lower", (0.0, 1.0), question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        after = observed.logits_without_most_important(STEPS)[:, :, 0]
        return {"LXR-DEL-P": lxr_del_p(observed.logits_before[:, 0], after)}
