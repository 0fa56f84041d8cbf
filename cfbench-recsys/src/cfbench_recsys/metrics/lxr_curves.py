"""The curves behind LXR's metrics: each of their 11 points as a column (Refined fidelity, figure 1, left column).

At 0 %, 10 %, ..., 100 % of a user's interactions removed, the most important first (``lxr_pos_p.py``), of the
explained item y:

- POS-P@T: whether y is among the first T; NDCG-P: 1 / log2(1 + rank(y)); DEL-P: f(x)_y of what is left;
- INS-P: f(x)_y of the interactions that were removed, alone.

The mean of the 11 points of a curve is LXR-POS-P@T, LXR-NDCG-P, LXR-DEL-P and LXR-INS-P. Nothing is divided by f(x)_y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.links import values
from cfbench_recsys.metrics.lxr_pos_p import STEPS

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/lxr-curves",
    summary="Curves of LXR's metrics over the share of the profile that is removed",
    target=f"{__name__}:LxrCurves",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("barkan2024lxr", "refinedfidelity2025"),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)

SHARES = tuple(round(100 * step / STEPS) for step in range(STEPS + 1))
"""Per cent of the interactions removed at each point."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """As in figure 1 of Refined fidelity."""

    t: Annotated[int, Range(minimum=1), Help("length of the list of POS-P")] = 20


def curve_names(t: int) -> dict[str, str]:
    """The curves with their directions."""
    return {f"POS-P@{t}": "lower", "NDCG-P": "lower", "INS-P": "higher", "DEL-P": "lower"}


def point_name(curve: str, share: int) -> str:
    """ "curve-POS-P@20[70%]"."""
    return f"curve-{curve}[{share}%]"


class LxrCurves:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "What is the value of {curve} after {share} % of the interactions?"
        return tuple(
            Column(point_name(curve, share), direction, None, question.format(curve=curve, share=share))
            for curve, direction in curve_names(self.config.t).items()
            for share in SHARES
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        import numpy as np

        def joined(first: FloatArray | IntArray, others: FloatArray | IntArray) -> FloatArray:
            """(B, 11) from (B,) and (B, 10)."""
            together: FloatArray = np.column_stack([first, others]).astype(np.float64)
            return together

        ranks = joined(observed.ranks_before[:, 0], observed.ranks_without_most_important(STEPS)[:, :, 0])
        left = joined(observed.scores_before[:, 0], observed.scores_without_most_important(STEPS)[:, :, 0])
        added = joined(observed.scores_on_empty[:, 0], observed.scores_with_most_important(STEPS)[:, :, 0])
        points = (
            (ranks <= self.config.t).astype(np.float64),
            1 / np.log2(1 + ranks),
            values(added, observed.link),
            values(left, observed.link),
        )
        return {
            point_name(curve, share): curve_points[:, at]
            for curve, curve_points in zip(curve_names(self.config.t), points, strict=True)
            for at, share in enumerate(SHARES)
        }
