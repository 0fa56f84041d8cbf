"""Several counterfactuals of a factual, added one after the other if they are alternatives.

They are a minimum distance apart, and none contains the changes of another one (:mod:`dominance <.dominance>`).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.counterfactual_sets import apart
from cfbench_tabular.explainers.dominance import Dominance
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

MinimumDistance = Annotated[
    float,
    Range(minimum=0),
    Help(
        "between two of several counterfactuals of a factual: L2 of encoded rows, 0.5 is half a standard deviation"
    ),
]


class SpacedSets:
    """At most ``size`` counterfactuals of each of the B factuals (B, d).

    Attributes:
        rows: (B, size, d) what was added, NaN after it.
        counts: (B,) how many were added.
    """

    def __init__(self, factuals: FloatArray, size: int, encoding: Encoding, minimum_distance: float) -> None:
        self.size, self.minimum_distance = size, minimum_distance
        self.rows = np.full((len(factuals), size, encoding.width), np.nan)
        self.counts = np.zeros(len(factuals), dtype=np.int64)
        self._dominance = Dominance(encoding, factuals)

    def add(self, place: int, row: FloatArray) -> bool:
        """Adds a row (d,) to the set of factual ``place`` if it has room and the row is an alternative to the others.

        Those that contain its changes leave the set; it takes the place of the first of them.
        """
        count = self.counts[place]
        if count == self.size:
            return False
        others = self.rows[place, :count]
        if self._dominance.of(place, row, others).any():
            return False
        stays = ~self._dominance.of(place, others, row)
        if not apart(row, others[stays], self.minimum_distance).all():
            return False
        at = int(np.argmin(stays)) if not stays.all() else int(count)
        remaining = np.insert(others[stays], at, row, axis=0)
        self.rows[place] = np.nan
        self.rows[place, : len(remaining)] = remaining
        self.counts[place] = len(remaining)
        return True

    def admits(self, rows: FloatArray, place: int) -> BoolArray:
        """(...) which of the rows (..., d) are far enough from those in the set of factual ``place``, and contain the
        changes of none."""
        rows, others = rows[..., None, :], self.rows[place, : self.counts[place]]
        alternative = apart(rows, others, self.minimum_distance) & ~self._dominance.of(place, rows, others)
        return np.asarray(alternative.all(axis=-1))

    def full(self, place: int) -> bool:
        return bool(self.counts[place] == self.size)

    def unfilled(self) -> IntArray:
        """The places of the factuals whose sets have room."""
        return np.flatnonzero(self.counts < self.size)

    def results(self) -> FloatArray:
        """(B, size, d), or (B, d) if a set has one counterfactual at most."""
        return self.rows if self.size > 1 else self.rows[:, 0]
