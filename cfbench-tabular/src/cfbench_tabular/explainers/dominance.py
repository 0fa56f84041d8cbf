"""Which counterfactuals of a factual contain the changes of another one, so that they are no alternatives to it.

A counterfactual contains the changes of another one if it changes all of the columns that the other one changes, numbers
and ordered levels in the same direction and at least as far, and categories to the same level. It is then dominated:
the other one needs only a part of its changes. Columns that follow from others by an equation between columns (a total) do
not count where others change.
"""

from __future__ import annotations

import numpy as np

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import BoolArray, FloatArray

ROUNDING = 1e-9
"""Difference of encoded values that is none, but a rounding error."""

EQUATIONS = frozenset({"product", "ratio", "sum", "difference"})


class Dominance:
    """Compares the counterfactuals of B factuals.

    Attributes:
        factuals: (B, d) encoded.
        independent: (d,) which positions do not follow from others by an equation.
    """

    def __init__(self, encoding: Encoding, factuals: FloatArray) -> None:
        self.factuals = factuals
        derived = {one.column for one in encoding.constraints if one.relation in EQUATIONS}
        free = np.array([column.name not in derived for column in encoding.columns], dtype=np.bool_)
        self.independent: BoolArray = free[encoding.column_of]

    def of(self, place: int, rows: FloatArray, others: FloatArray) -> BoolArray:
        """(...) whether the rows (..., d) contain the changes of ``others`` (..., d); both are of factual ``place``."""
        return self.contains(rows, others, self.factuals[place])

    def contains(self, rows: FloatArray, others: FloatArray, factuals: FloatArray) -> BoolArray:
        """(...) whether the rows contain the changes of ``others``; all of them (..., d). False for a row of NaN."""
        # The two places of a category that change, from 1 to 0 and from 0 to 1, determine both of its levels.
        changes = others - factuals
        far = np.abs(changes)
        with np.errstate(invalid="ignore"):
            same = (far <= ROUNDING) | ((rows - factuals) * np.sign(changes) >= far - ROUNDING)
            changed = ((far > ROUNDING) & self.independent).any(axis=-1, keepdims=True)
        relevant = self.independent | ~changed
        missing = np.isnan(rows).any(axis=-1) | np.isnan(others).any(axis=-1)
        return np.asarray((same | ~relevant).all(axis=-1) & ~missing)

    def undominated(self, sets: FloatArray, counts: BoolArray) -> BoolArray:
        """(B, k) which rows of the sets (B, k, d), of those that ``counts``, contain the changes of no other one.

        Of two that contain each other's changes, the first one remains.
        """
        size = sets.shape[1]
        if size == 1:
            return counts.copy()
        factuals = self.factuals[:, None, None]
        contains = self.contains(sets[:, :, None], sets[:, None], factuals)
        mutual = contains & contains.transpose(0, 2, 1)
        loses = np.where(mutual, np.tri(size, k=-1, dtype=np.bool_), contains)
        loses[:, range(size), range(size)] = False
        found: BoolArray = counts & ~(loses & counts[:, None]).any(axis=2)
        return found
