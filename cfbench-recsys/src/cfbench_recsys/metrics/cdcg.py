"""CDCG@K_e: how far up the item still is when the K_e most important interactions are gone.

Refined fidelity, equation 5: CDCG@K_e = 1 / log2(1 + rank(y; x without the K_e most important)). On
``supporting_only`` see ``fixed_length.py``, on ranks ``pos_at.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.fixed_length import FixedLengthConfig as Config
from cfbench_recsys.metrics.fixed_length import columns_by_length, values_by_length

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

__all__ = ["Cdcg", "Config", "cdcg"]

SPEC = ComponentSpec(
    id="recsys/metric/cdcg",
    summary="Discounted rank without the K_e most important interactions",
    target=f"{__name__}:Cdcg",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("refinedfidelity2025",),
    details={
        "unit": "explanation",
        "empty": "fewer than K_e interactions (or supporting ones): all of them are taken",
    },
)


def cdcg(ranks_without_explanation: IntArray) -> FloatArray:
    """(...) in (0, 1]."""
    import numpy as np

    gains: FloatArray = 1 / np.log2(1 + ranks_without_explanation)
    return gains


class Cdcg:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How far up is the item without the {k_e} most important interactions?"
        return columns_by_length("CDCG", self.config, "lower", (0.0, 1.0), question)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        ranks = observed.ranks_without_explanation(self.config.k_e, self.config.supporting_only)[:, :, 0]
        return values_by_length("CDCG", self.config, cdcg(ranks))
