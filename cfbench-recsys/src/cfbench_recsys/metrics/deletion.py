"""DEL@K_e: how much of the item's score is left when the K_e most important interactions are gone.

Refined fidelity, equation 7: DEL@K_e = f(x without the K_e most important)_y / f(x)_y, with f the sigmoid of the
logit.

``normalize``: the paper divides by f(x)_y; its code does not. Both are metrics here, and ``false`` gives the
numbers that were published. On ``supporting_only`` see ``fixed_length.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.affinity import affinity_of
from cfbench_recsys.metrics.fixed_length import AffinityConfig as Config
from cfbench_recsys.metrics.fixed_length import columns_by_length, range_of_affinity, values_by_length

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
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
    logits_without_explanation: FloatArray, logits_before: FloatArray, normalize: bool
) -> FloatArray:
    """(B, S) from logits (B, S), and (B, 1) of the untouched profile."""
    return affinity_of(logits_without_explanation, logits_before if normalize else None)


class Deletion:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "How much of the item's score is left without the {k_e} most important interactions?"
        return columns_by_length("DEL", self.config, "lower", range_of_affinity(self.config), question)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        logits = observed.logits_without_explanation(self.config.k_e, self.config.supporting_only)[:, :, 0]
        scores = deletion(logits, observed.logits_before, self.config.normalize)
        return values_by_length("DEL", self.config, scores)
