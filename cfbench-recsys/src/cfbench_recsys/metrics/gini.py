"""Gini index of the importances: is the explanation concentrated on few interactions?

CFExpRec, equation 6. With m the importances of the n interactions of the user, min-max scaled to [0, 1],
ascending:

    Gini = 1 - 2 sum_{k=1..n} (m_k / ||m||_1) * (n - k + 0.5) / n

All importances equal, or n = 1: 0 (the formula divides by zero there; nothing is concentrated).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Point
    from cfbench_recsys.edits import BoolArray, FloatArray
    from cfbench_recsys.observations import ImplicitObservations

SPEC = ComponentSpec(
    id="recsys/metric/gini",
    summary="Concentration of the importances",
    target=f"{__name__}:Gini",
    provides={"format": {"implicit"}, "level": {"item", "list"}},
    needs={"explainer": {"format": {"implicit"}}},
    papers=("cfexprec2026",),
    details={"unit": "explanation", "empty": "0: all importances equal, or one interaction"},
)


def gini(importances: FloatArray, padding: BoolArray) -> FloatArray:
    """(B,) from importances (B, H) of the interactions that are not ``padding`` (B, H)."""
    import numpy as np

    lengths = np.count_nonzero(~padding, axis=1)
    ascending = np.sort(np.where(padding, np.inf, importances), axis=1)
    unit, place = np.nonzero(np.arange(importances.shape[1]) < lengths[:, None])
    given = ascending[
        unit, place
    ]  # concatenated: sums over padded rows would round differently in a batch with a long history
    low, high = ascending[:, 0], ascending[np.arange(len(ascending)), np.maximum(lengths - 1, 0)]
    concentrated = high > low
    with np.errstate(over="ignore"):  # where even their difference is too large, halves have the same index
        halved = np.where(np.isinf(high - low), 0.5, 1.0)
    given, low, high = given * halved[unit], low * halved, high * halved
    scaled = (given - low[unit]) / np.where(concentrated, high - low, 1.0)[unit]
    total = np.bincount(unit, scaled, minlength=len(lengths))
    weighted = np.bincount(unit, scaled * (lengths[unit] - place - 0.5), minlength=len(lengths))
    return np.where(concentrated, 1 - 2 * weighted / np.where(concentrated, total * lengths, 1.0), 0.0)


class Gini:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def columns(self, point: Point) -> tuple[Column, ...]:
        question = "Is the explanation concentrated on few interactions?"
        return (Column("Gini", "higher", (0.0, 1.0), question),)

    def compute(self, observed: ImplicitObservations) -> dict[str, FloatArray]:
        return {"Gini": gini(observed.importances, observed.padding)}
