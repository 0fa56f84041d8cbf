"""POS@K_r,K_e: is the item among the first K_r when the K_e most important interactions are gone?

Refined fidelity, equation 4: POS@K_r,K_e = 1[rank(y; x without the K_e most important) <= K_r].

On ``supporting_only`` see ``fixed_length.py``.
Ranks are among the items that the user has not seen, with ties broken by the lower index (equation 1 ranks
among all items, and lets ties share the better rank).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Distinct, Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.fixed_length import FixedLengthConfig, variant

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/pos-at",
    summary="Whether the item is in the top K_r without the K_e most important interactions",
    target=f"{__name__}:PosAt",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("refinedfidelity2025",),
    details={
        "unit": "explanation",
        "empty": "fewer than K_e interactions (or supporting ones): all of them are taken",
    },
)


@dataclass(frozen=True, kw_only=True)
class Config(FixedLengthConfig):
    """The defaults are those of the paper."""

    k_r: Annotated[tuple[int, ...], Range(minimum=1), Distinct(), Help("lengths of the list")] = (5, 10, 20)


def pos_at(ranks_without_explanation: IntArray, k_r: int) -> FloatArray:
    """(...) 1.0 where the rank is at most k_r."""
    return (ranks_without_explanation <= k_r).astype(float)


class PosAt:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        return tuple(
            Column(
                self._name(k_r, k_e),
                "lower",
                (0.0, 1.0),
                f"Is the item among the first {k_r} without the {k_e} most important interactions?",
            )
            for k_r in self.config.k_r
            for k_e in self.config.k_e
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        ranks = observed.ranks_without_explanation(self.config.k_e, self.config.supporting_only)[:, :, 0]
        return {
            self._name(k_r, k_e): pos_at(ranks[:, s], k_r)
            for k_r in self.config.k_r
            for s, k_e in enumerate(self.config.k_e)
        }

    def _name(self, k_r: int, k_e: int) -> str:
        return f"{variant('POS', self.config)}@{k_r},{k_e}"
