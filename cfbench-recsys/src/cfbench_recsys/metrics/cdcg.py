"""CDCG@K_e: how far up the item still is when the K_e most important interactions are gone.

Paper 001, equation 5: CDCG@K_e = 1 / log2(1 + rank(y; x without the K_e most important)). On
``supporting_only`` and on ranks see ``pos_at.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.pos_at import variant

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

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
        "empty": "fewer than K_e interactions (or supporting ones): what there is",
    },
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """As in the paper."""

    k_e: Annotated[tuple[int, ...], Range(minimum=1), Help("lengths of the explanation")] = (1, 2, 3, 4, 5)
    supporting_only: Annotated[bool, Help("only positive importances count among the K_e")] = True


def cdcg(ranks_without_explanation: IntArray) -> FloatArray:
    """(...) in (0, 1]."""
    import numpy as np

    gains: FloatArray = 1 / np.log2(1 + ranks_without_explanation)
    return gains


class Cdcg:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        return tuple(
            Column(
                self._name(k_e),
                "lower",
                (0.0, 1.0),
                f"How far up is the item without the {k_e} most important interactions?",
            )
            for k_e in self.config.k_e
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        gains = cdcg(
            observed.ranks_without_explanation(self.config.k_e, self.config.supporting_only)[:, :, 0]
        )
        return {self._name(k_e): gains[:, s] for s, k_e in enumerate(self.config.k_e)}

    def _name(self, k_e: int) -> str:
        return f"{variant('CDCG', supporting_only=self.config.supporting_only)}@{k_e}"
