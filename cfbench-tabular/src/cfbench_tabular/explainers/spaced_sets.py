"""Several counterfactuals of a factual, added one after the other if they are a minimum distance apart."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.explainers.counterfactual_sets import apart
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

MinimumDistance = Annotated[
    float,
    Range(minimum=0),
    Help(
        "between two of several counterfactuals of a factual: L2 of encoded rows, 0.5 is half a standard deviation"
    ),
]


class SpacedSets:
    """At most ``size`` counterfactuals of each of B factuals.

    Attributes:
        rows: (B, size, d) what was added, NaN after it.
        counts: (B,) how many were added.
    """

    def __init__(self, factuals: int, size: int, width: int, minimum_distance: float) -> None:
        self.size, self.minimum_distance = size, minimum_distance
        self.rows = np.full((factuals, size, width), np.nan)
        self.counts = np.zeros(factuals, dtype=np.int64)

    def add(self, place: int, row: FloatArray) -> bool:
        """Adds a row (d,) to the set of factual ``place`` if it has room, and the row is far enough from the others."""
        count = self.counts[place]
        added = bool(count < self.size and self.apart(row, place).all())
        if added:
            self.rows[place, count] = row
            self.counts[place] += 1
        return added

    def apart(self, rows: FloatArray, place: int) -> BoolArray:
        """(...) whether the rows (..., d) are far enough from those in the set of factual ``place``."""
        return np.asarray(apart(rows[..., None, :], self.rows[place], self.minimum_distance).all(axis=-1))

    def full(self, place: int) -> bool:
        return bool(self.counts[place] == self.size)

    def unfilled(self) -> IntArray:
        """The places of the factuals whose sets have room."""
        return np.flatnonzero(self.counts < self.size)

    def results(self) -> FloatArray:
        """(B, size, d), or (B, d) if a set has one counterfactual at most."""
        return self.rows if self.size > 1 else self.rows[:, 0]
