"""The leaves of an ensemble of trees as boxes, and the few values of each column that the trees distinguish.

A tree compares a position of the encoded row, as a 32-bit number, with thresholds. Between two neighbouring thresholds of
the whole ensemble nothing changes, so of each such interval only the value nearest to the factual matters: the *cell*
of the interval. Positions of categories have the cells 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.table import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Leaves:
    """The L leaves of T trees.

    Attributes:
        tree: (L,) which tree each leaf belongs to.
        value: (L,) what it adds to the sum.
        low, high: (L, p) for the p positions that are tested: the leaf has the rows with low < x <= high.
        positions: (p,) those positions of the encoded row, ascending.
    """

    tree: IntArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    positions: IntArray

    @staticmethod
    def of(trees: Trees) -> Leaves:
        inner = trees.left != np.arange(len(trees.left))
        positions = np.unique(trees.feature[inner]).astype(np.int64)
        place = {int(position): index for index, position in enumerate(positions)}
        tree, value, lows, highs = [], [], [], []
        for number, root in enumerate(trees.roots.tolist()):
            free = np.full(len(positions), np.inf)
            waiting = [(root, -free, free)]
            while waiting:
                node, low, high = waiting.pop()
                if not inner[node]:
                    tree.append(number)
                    value.append(float(trees.value[node]))
                    lows.append(low)
                    highs.append(high)
                    continue
                at, threshold = place[int(trees.feature[node])], trees.threshold[node]
                left, right = high.copy(), low.copy()
                left[at], right[at] = min(left[at], threshold), max(right[at], threshold)
                waiting.append((int(trees.right[node]), right, high))
                waiting.append((int(trees.left[node]), low, left))
        return Leaves(np.array(tree), np.array(value), np.array(lows), np.array(highs), positions)

    def thresholds(self, index: int) -> FloatArray:
        """Ascending thresholds of position number ``index``."""
        found = np.unique(np.concatenate([self.low[:, index], self.high[:, index]]))
        return found[np.isfinite(found)]


@dataclass(frozen=True)
class Cells:
    """The values that one position may have, one for each interval between thresholds that lies within its limits.

    Attributes:
        values: (c,) ascending; the value of an interval that is nearest to the factual.
        thresholds: of the position, ascending.
        intervals: (c,) the number of the interval, which is that of the thresholds below it.
    """

    values: FloatArray
    thresholds: FloatArray
    intervals: IntArray

    @staticmethod
    def of(factual: float, low: float, high: float, thresholds: FloatArray) -> Cells:
        """Of a number between ``low`` and ``high``."""
        above = np.concatenate([[-np.inf], _above(thresholds)])
        below = np.concatenate([_below(thresholds), [np.inf]])
        values = np.clip(np.clip(factual, above, below), low, high)
        intervals = np.arange(len(values))
        return Cells._within(values, thresholds, intervals, interval_of(values, thresholds) == intervals)

    @staticmethod
    def of_level(low: float, high: float, thresholds: FloatArray) -> Cells:
        """Of a position of a category: 0 and 1, as far as the limits allow it."""
        values = np.array([0.0, 1.0])
        allowed = (values >= low) & (values <= high)
        return Cells._within(values, thresholds, interval_of(values, thresholds), allowed)

    @staticmethod
    def _within(values: FloatArray, thresholds: FloatArray, intervals: IntArray, good: BoolArray) -> Cells:
        return Cells(values[good], thresholds, intervals[good])

    def inside(self, low: FloatArray, high: FloatArray) -> BoolArray:
        """(L, c) which cells satisfy low < x <= high, for thresholds (or infinities) low and high (L,)."""
        first = np.searchsorted(self.thresholds, low, side="right")  # the interval just above low
        last = np.searchsorted(self.thresholds, high, side="left")  # the interval that ends at high
        found: BoolArray = (self.intervals >= first[:, None]) & (self.intervals <= last[:, None])
        return found


def interval_of(values: FloatArray, thresholds: FloatArray) -> IntArray:
    """(n,) how many thresholds lie below each value, as the trees compare them."""
    single = values.astype(np.float32).astype(np.float64)
    return np.searchsorted(thresholds, single, side="left")


def _above(thresholds: FloatArray) -> FloatArray:
    """The smallest 32-bit numbers greater than the thresholds."""
    single = thresholds.astype(np.float32)
    larger = np.nextafter(single, np.float32(np.inf))
    return np.where(single.astype(np.float64) > thresholds, single, larger).astype(np.float64)


def _below(thresholds: FloatArray) -> FloatArray:
    """The largest 32-bit numbers that are at most the thresholds."""
    single = thresholds.astype(np.float32)
    smaller = np.nextafter(single, np.float32(-np.inf))
    return np.where(single.astype(np.float64) <= thresholds, single, smaller).astype(np.float64)
