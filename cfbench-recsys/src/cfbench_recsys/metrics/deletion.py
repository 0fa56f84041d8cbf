"""DEL@K_e: how much of the item's score is left when the K_e most important interactions are gone.

Paper 001, equation 7: DEL@K_e = f(x without the K_e most important)_y / f(x)_y, with f the sigmoid of the
logit.

``normalize``: the paper divides by f(x)_y; its code does not. Both are metrics here, and ``false`` gives the
numbers that were published. On ``supporting_only`` see ``pos_at.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics.affinity import affinity, relative_affinity
from cfbench_recsys.metrics.pos_at import variant

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import FloatArray
    from cfbench_recsys.observations import ImplicitObservations

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
        "empty": "fewer than K_e interactions (or supporting ones): what there is",
    },
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """As in the paper's text."""

    k_e: Annotated[tuple[int, ...], Range(minimum=1), Help("lengths of the explanation")] = (1, 2, 3, 4, 5)
    supporting_only: Annotated[bool, Help("only positive importances count among the K_e")] = True
    normalize: Annotated[bool, Help("divide by the score of the untouched profile")] = True


def deletion(
    logits_without_explanation: FloatArray, logits_before: FloatArray, normalize: bool
) -> FloatArray:
    """(B, S) from logits (B, S), and (B, 1) of the untouched profile."""
    if normalize:
        return relative_affinity(logits_without_explanation, logits_before)
    return affinity(logits_without_explanation)


class Deletion:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> tuple[Column, ...]:
        return tuple(
            Column(
                self._name(k_e),
                "lower",
                None if self.config.normalize else (0.0, 1.0),
                f"How much of the item's score is left without the {k_e} most important interactions?",
            )
            for k_e in self.config.k_e
        )

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        logits = observed.logits_without_explanation(self.config.k_e, self.config.supporting_only)[:, :, 0]
        scores = deletion(logits, observed.logits_before, self.config.normalize)
        return {self._name(k_e): scores[:, s] for s, k_e in enumerate(self.config.k_e)}

    def _name(self, k_e: int) -> str:
        named = variant("DEL", supporting_only=self.config.supporting_only, normalize=self.config.normalize)
        return f"{named}@{k_e}"
