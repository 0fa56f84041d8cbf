"""LXR's NEG-P@T: as LXR's POS-P@T (``lxr_pos_p.py``), the least important interactions removed first.

The order of removal is that of POS-P, reversed exactly (see ``neg_p.py``). (The published code sorts once
more, ascending, so that equally important interactions go in the same order both times.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.lxr_pos_p import STEPS, Config

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/lxr-neg-p",
    summary="LXR's NEG-P, mean of 11 points",
    target=f"{__name__}:LxrNegP",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("barkan2024lxr",),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)

__all__ = ["Config", "LxrNegP", "lxr_neg_p"]


def lxr_neg_p(ranks_before: IntArray, ranks_without_least_important: IntArray, t: int) -> FloatArray:
    """(B,) from ranks (B,) under the untouched profile and (B, 10) after the removals."""
    hits = (ranks_before <= t) + (ranks_without_least_important <= t).sum(axis=1)
    shares: FloatArray = hits / (1 + ranks_without_least_important.shape[1])
    return shares


class LxrNegP:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = (
            "How long is the item among the first {t} while the least important interactions are removed?"
        )
        return tuple(
            Column(f"LXR-NEG-P@{t}", "higher", (0.0, 1.0), question.format(t=t)) for t in self.config.t
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        before, after = observed.ranks_before[:, 0], observed.ranks_without_least_important(STEPS)[:, :, 0]
        return {f"LXR-NEG-P@{t}": lxr_neg_p(before, after, t) for t in self.config.t}
