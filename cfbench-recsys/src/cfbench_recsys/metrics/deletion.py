"""DEL@K_e: how much of the item's score is left when the K_e most important interactions are gone.

Refined fidelity, equation 7: DEL@K_e = f(x without the K_e most important)_y / f(x)_y, with f the
recommender's own value: the sigmoid of the score, the softmax over all items, or the score itself, as its link
declares (``links.py``).

``normalize``: the paper divides by f(x)_y; its code does not. Both are metrics here, and ``false`` gives the
numbers that were published. With the link ``identity`` the ratio is NaN where f(x)_y is not positive. On
``supporting_only`` see ``fixed_length.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.links import relative_values, values
from cfbench_recsys.metrics.fixed_length import ScoreConfig as Config
from cfbench_recsys.metrics.fixed_length import columns_by_length, values_by_length

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Link, Point
    from cfbench_recsys.edits import FloatArray
    from cfbench_recsys.observations import ImplicitObservations

__all__ = ["Config", "Deletion", "deletion"]

SPEC = ComponentSpec(
    id="recsys/metric/del",
    summary="Score without the K_e most important interactions",
    target=f"{__name__}:Deletion",
    config=f"{__name__}:Config",
    provides={"format": {"implicit"}, "level": {"item"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("refinedfidelity2025",),
    details={
        "unit": "explanation",
        "empty": "fewer than K_e interactions (or supporting ones): all of them are taken",
    },
)


def deletion(
    scores_without_explanation: FloatArray, scores_before: FloatArray, normalize: bool, link: Link
) -> FloatArray:
    """(B, S) from linked scores (see ``links.py``) (B, S), and (B, 1) of the untouched profile."""
    if normalize:
        return relative_values(scores_without_explanation, scores_before, link)
    return values(scores_without_explanation, link)


class Deletion:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How much of the item's score is left without the {k_e} most important interactions?"
        return columns_by_length("DEL", self.config, "lower", None, question)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        scores = observed.scores_without_explanation(self.config.k_e, self.config.supporting_only)[:, :, 0]
        found = deletion(scores, observed.scores_before, self.config.normalize, observed.link)
        return values_by_length("DEL", self.config, found)
