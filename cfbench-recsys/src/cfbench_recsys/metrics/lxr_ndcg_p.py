"""LXR's NDCG-P: 1 / log2(1 + rank(y)), on average over the 11 points of LXR's POS-P (``lxr_pos_p.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.lxr_pos_p import STEPS

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/lxr-ndcg-p",
    summary="LXR's NDCG-P, mean of 11 points",
    target=f"{__name__}:LxrNdcgP",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("barkan2024lxr",),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)


def lxr_ndcg_p(ranks_before: IntArray, ranks_without_most_important: IntArray) -> FloatArray:
    """(B,) from ranks (B,) under the untouched profile and (B, 10) after the removals."""
    import numpy as np

    ranks = np.column_stack([ranks_before, ranks_without_most_important])
    gains: FloatArray = (1 / np.log2(1 + ranks)).mean(axis=1)
    return gains


class LxrNdcgP:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How far up is the item while the most important interactions are removed?"
        return (Column("LXR-NDCG-P", "lower", (0.0, 1.0), question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        after = observed.ranks_without_most_important(STEPS)[:, :, 0]
        return {"LXR-NDCG-P": lxr_ndcg_p(observed.ranks_before[:, 0], after)}
