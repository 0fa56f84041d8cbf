"""The grid of admissible values in the encoded space, and the limits of the counterfactuals of factuals.

A column with the step s, the mean m and the standard deviation t has the encoded values (k s - m) / t, for whole k.
Encoding the decoded value gives the same floating-point number, so that what is stored is what was tested.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfbench_tabular.column_types import OFF, decimals_of
from cfbench_tabular.table import BoolArray, FloatArray, IntArray


class Grid:
    """The G positions of an encoding whose values come in steps.

    Attributes:
        positions: (G,) in the encoded vector.
        step, mean, scale: (G,) of their columns, raw.
    """

    def __init__(self, positions: IntArray, step: FloatArray, mean: FloatArray, scale: FloatArray) -> None:
        self.positions, self.step, self.mean, self.scale = positions, step, mean, scale
        self._power = np.array([10.0 ** decimals_of(float(one)) for one in step])
        self._units = bool((step == 1.0).all())

    def __len__(self) -> int:
        return len(self.positions)

    def multiples(self, values: FloatArray) -> FloatArray:
        """(..., G) encoded values as multiples of their steps, with fractions."""
        found: FloatArray = values * self.scale
        found += self.mean
        if not self._units:
            found /= self.step
        return found

    def at(self, multiples: FloatArray) -> FloatArray:
        """(..., G) the encoded values of whole multiples (..., G)."""
        raw = multiples if self._units else np.rint(multiples * self.step * self._power) / self._power
        found: FloatArray = (raw - self.mean) / self.scale
        return found

    def missed(self, vectors: FloatArray) -> BoolArray:
        """(..., d) where numbers are between two values of their column; NaN is not."""
        found = np.zeros(vectors.shape, dtype=np.bool_)
        multiples = self.multiples(vectors[..., self.positions])
        slack = OFF + 8 * np.spacing(np.abs(np.nan_to_num(multiples)))
        found[..., self.positions] = np.abs(multiples - np.rint(multiples)) > slack
        return found


class Limits:
    """What the counterfactuals of B factuals may be: limits of each position, and the grid.

    Made by :meth:`~cfbench_tabular.encoding.Encoding.limits`.

    Attributes:
        low, high: (B, d) limits of the positions; (1, d), the range of the columns, without factuals.
    """

    def __init__(
        self,
        grid: Grid,
        low: FloatArray,
        high: FloatArray,
        factuals: FloatArray | None,
        with_levels: Callable[[FloatArray], FloatArray] | None,
    ) -> None:
        """``with_levels`` gives each category its largest level; None without categories."""
        self.grid, self.low, self.high, self._with_levels = grid, low, high, with_levels
        if not len(self.grid):
            return
        at = self.grid.positions
        first, last = (self.grid.multiples(side[:, at]) for side in (self.low, self.high))
        self._first, self._last = np.ceil(first - OFF), np.floor(last + OFF)
        # Without exceptions, a factual's own value is on the grid, and rounding alone gives the answer.
        self._exceptions = factuals is not None and bool(self.grid.missed(factuals)[:, at].any())
        self._own = factuals[:, at] if factuals is not None else None

    def snapped(self, points: FloatArray, of: slice | IntArray | BoolArray | None = None) -> FloatArray:
        """The points with numbers at the nearest admissible values; the same object without a grid.

        points: (b, d) or (b, n, d) for the factuals ``of`` (b,), by default all. Positions without a step are
        unchanged. The factual's own value is admissible, also if it is between two values of its column.
        """
        if not len(self.grid) or len(points) == 0:
            return points
        return self._snap(points.copy(), of)

    def _snap(self, points: FloatArray, of: slice | IntArray | BoolArray | None) -> FloatArray:
        """The points themselves, with their numbers snapped."""
        of = slice(None) if of is None else of
        first, last = self._first[of], self._last[of]
        if points.ndim == 3:
            first, last = first[:, None], last[:, None]
        given = points[..., self.grid.positions]
        multiples = np.rint(self.grid.multiples(given))
        values = self.grid.at(np.minimum(np.maximum(multiples, first), last))
        if self._exceptions and self._own is not None:
            own = self._own[of] if points.ndim == 2 else self._own[of][:, None]
            nearer = (np.abs(given - own) <= np.abs(given - values)) | ((first > last) & ~np.isnan(given))
            values = np.where(nearer, own, values)
        points[..., self.grid.positions] = values
        return points

    def projected(self, points: FloatArray, of: slice | IntArray | BoolArray | None = None) -> FloatArray:
        """The rows nearest to the points (b, d) or (b, n, d): levels of categories, and numbers at their steps."""
        if self._with_levels is None:
            return self.snapped(points, of)
        rows = self._with_levels(points.reshape(-1, points.shape[-1])).reshape(points.shape)
        return self._snap(rows, of) if len(self.grid) and len(points) else rows
