"""Gini index of the importances: is the explanation concentrated on few interactions?

Paper 000, equation 6. With m the importances of the n interactions of the user, min-max scaled to [0, 1], ascending:

    Gini = 1 - 2 sum_{k=1..n} (m_k / ||m||_1) * (n - k + 0.5) / n

All importances equal, or n = 1: 0 (the formula divides by zero there; nothing is concentrated).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cfbench_core.plan import Column

if TYPE_CHECKING:
    from cfbench_recsys.edits import BoolArray, FloatArray
    from cfbench_recsys.observations import ImplicitObservations


def gini(importances: FloatArray, padding: BoolArray) -> FloatArray:
    """(B,) from importances (B, H) of the interactions that are not ``padding`` (B, H).

    Histories are taken end to end, so that a long one does not widen everybody's rows.
    """
    import numpy as np

    present = ~padding
    lengths = np.count_nonzero(present, axis=1)
    unit = np.repeat(np.arange(len(importances)), lengths)
    given = importances[present]
    given = given[np.lexsort((given, unit))]  # ascending within each unit
    first, units = np.cumsum(lengths) - lengths, np.flatnonzero(lengths)
    low, high = np.zeros(len(importances)), np.zeros(len(importances))
    low[units], high[units] = given[first[units]], given[first[units] + lengths[units] - 1]
    spread = np.where(high > low, high - low, 1.0)
    scaled = (given - low[unit]) / spread[unit]
    k = np.arange(1, len(given) + 1) - first[unit]
    total = np.bincount(unit, scaled, minlength=len(importances))
    weighted = np.bincount(unit, scaled * (lengths[unit] - k + 0.5), minlength=len(importances))
    return np.where(high > low, 1 - 2 * weighted / np.where(total > 0, total * lengths, 1.0), 0.0)


class Gini:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def columns(self, k: int, level: Literal["item", "list"]) -> tuple[Column, ...]:
        question = "Is the explanation concentrated on few interactions?"
        return (Column("Gini", "higher", (0.0, 1.0), question),)

    def compute(self, seen: ImplicitObservations) -> dict[str, FloatArray]:
        return {"Gini": gini(seen.importances, seen.padding)}
