"""NEG-P curve: how long an item stays among the first T while the least important interactions go one by one.

Consistency beyond top-1, equation 3, for one explained item: the POS-P curve (``curve_pos_p.py``, with what departs from the
paper) with the order of removal reversed, exactly, ties included. Higher is better:

    NEG-P curve@T(u, i) = 1/|I_u| sum_t 1[rank(i; x without the t least important) <= T]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.curve_pos_p import Config, share_of_curve

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/curve-neg-p",
    summary="Share of single removals, least important first, with the item in the top T",
    target=f"{__name__}:CurveNegP",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("consistency2025",),
    details={"unit": "explanation", "empty": "missing: a user without any interaction has no curve"},
)

__all__ = ["Config", "CurveNegP"]


class CurveNegP:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = (
            "How long is the item among the first {t} while the least important interactions go one by one?"
        )
        return tuple(
            Column(f"NEG-P curve@{t}", "higher", (0.0, 1.0), question.format(t=t)) for t in self.config.t
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        ranks, unit = observed.ranks_without_least_important_one_by_one(), observed.unit_of_removal
        return {f"NEG-P curve@{t}": share_of_curve(ranks, unit, observed.lengths, t) for t in self.config.t}
