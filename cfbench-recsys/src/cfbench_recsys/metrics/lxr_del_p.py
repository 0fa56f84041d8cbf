"""LXR's DEL-P: the item's score, on average over the 11 points of LXR's POS-P (``lxr_pos_p.py``).

    LXR-DEL-P = 1/11 sum_{t=0..10} f(x_t)_y,     x_0 = x,   x_t without the most important interactions of t steps

f(x)_y is the recommender's own value: the sigmoid, the softmax over all items, or the score itself, as its link
declares (``links.py``). Nothing is divided by f(x)_y (DEL@K_e, ``deletion.py``, can be).
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


def lxr_del_p(scores_before: FloatArray, scores_without_most_important: FloatArray, link: Link) -> FloatArray:
    """(B,) from linked scores (see ``links.py``) (B,) of the untouched profile and (B, 10) after the removals."""
    import numpy as np

    scores = np.column_stack([scores_before, scores_without_most_important])
    means: FloatArray = values(scores, link).mean(axis=1)
    return means


class LxrDelP:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How high is the item's score while the most important interactions are removed?"
        return (Column("LXR-DEL-P", "lower", None, question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        after = observed.scores_without_most_important(STEPS)[:, :, 0]
        return {"LXR-DEL-P": lxr_del_p(observed.scores_before[:, 0], after, observed.link)}
