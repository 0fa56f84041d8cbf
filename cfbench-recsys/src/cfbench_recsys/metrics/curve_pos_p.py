"""POS-P curve: how long an item stays among the first T while the most important interactions go one by one.

Consistency beyond top-1, equation 1, for one explained item (its sum over the first k items of the list is taken by the
analysis ``consistency``, k = 1..K). x(t) is the profile without the t most important interactions (ties: lower
item index), t = 1..|I_u|; the last one is the empty profile, the untouched one is no step:

    POS-P curve@T(u, i) = 1/|I_u| sum_t 1[rank(i; x(t)) <= T]              lower is better

T does not depend on the length K of the list that is explained. Departures:

- The printed equation 1 and algorithm 1 count rank > T (algorithm 1: > k). The paper's text ("whether the item
  still appears"), its table (a lower POS is better) and its code count rank <= T, and so do we.
- Equation 1 sums over the steps, so that users count by the length of their history. The published code divides,
  but a sum over at most 10 steps (the first of them the untouched profile) by |I_u| + 1: what a user can reach
  falls with the length of the history, for every explainer. Here each curve is averaged over its own steps.
- The published code drops interactions of importance zero from the order of LXR; here all of I_u take part.
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
    id="recsys/metric/curve-pos-p",
    summary="Share of single removals, most important first, with the item in the top T",
    target=f"{__name__}:CurvePosP",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("consistency2025",),
    details={"unit": "explanation", "empty": "missing: a user without any interaction has no curve"},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """As in the paper."""

    t: Annotated[
        tuple[int, ...], Range(minimum=1), Distinct(), Help("among the first how many the item must stay")
    ] = (
        5,
        10,
        20,
    )


def share_of_curve(ranks: IntArray, unit: IntArray, lengths: IntArray, t: int) -> FloatArray:
    """(B,) share of each unit's own steps at which the rank is at most t; NaN for a unit without a step.

    Args:
        ranks: (N, T) after each removal, T items of the target: their mean.
        unit: (N,) the unit of each removal.
        lengths: (B,) how many removals each unit has.
    """
    import numpy as np

    hits = np.bincount(unit, (ranks <= t).mean(axis=1), minlength=len(lengths))
    return np.where(lengths > 0, hits / np.maximum(lengths, 1), np.nan)


class CurvePosP:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = (
            "How long is the item among the first {t} while the most important interactions go one by one?"
        )
        return tuple(
            Column(f"POS-P curve@{t}", "lower", (0.0, 1.0), question.format(t=t)) for t in self.config.t
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        ranks, unit = observed.ranks_without_most_important_one_by_one(), observed.unit_of_removal
        return {f"POS-P curve@{t}": share_of_curve(ranks, unit, observed.lengths, t) for t in self.config.t}
