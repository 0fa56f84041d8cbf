"""LXR's POS-P@T, the original of POS@K_r,K_e: is the item among the first T, on average over 11 points?

Barkan et al. 2024, Gurevitch et al. 2025 (the "continuous" metrics of Refined fidelity). The points are the
untouched profile and those after 10 cumulative removals, the most important interactions first, in chunks as
even as ``numpy.array_split`` makes them; the mean is plain, the untouched profile included. (CFExpRec's
POS-P, ``pos_p.py``, leaves the untouched profile out.) Ranks are among the items that the user has not observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Distinct, Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray, IntArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/lxr-pos-p",
    summary="LXR's POS-P, mean of 11 points",
    target=f"{__name__}:LxrPosP",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("barkan2024lxr",),
    details={
        "unit": "explanation",
        "empty": "a user with fewer interactions than steps reaches the empty profile early (see Full removal)",
    },
)

STEPS = 10


@dataclass(frozen=True, kw_only=True)
class Config:
    """As in the paper."""

    t: Annotated[tuple[int, ...], Range(minimum=1), Distinct(), Help("lengths of the list")] = (
        1,
        5,
        10,
        20,
        50,
        100,
    )


def lxr_pos_p(ranks_before: IntArray, ranks_without_most_important: IntArray, t: int) -> FloatArray:
    """(B,) from ranks (B,) under the untouched profile and (B, 10) after the removals."""
    hits = (ranks_before <= t) + (ranks_without_most_important <= t).sum(axis=1)
    shares: FloatArray = hits / (1 + ranks_without_most_important.shape[1])
    return shares


class LxrPosP:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = (
            "How long is the item among the first {t} while the most important interactions are removed?"
        )
        return tuple(
            Column(f"LXR-POS-P@{t}", "lower", (0.0, 1.0), question.format(t=t)) for t in self.config.t
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        before, after = observed.ranks_before[:, 0], observed.ranks_without_most_important(STEPS)[:, :, 0]
        return {f"LXR-POS-P@{t}": lxr_pos_p(before, after, t) for t in self.config.t}
