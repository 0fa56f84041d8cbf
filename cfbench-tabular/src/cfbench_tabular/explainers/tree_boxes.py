"""The few values of each column that an ensemble of trees distinguishes, and the leaves that a budget reaches.

A tree compares a position of the encoded row, as a 32-bit number, with thresholds. Between two neighbouring thresholds of
the whole ensemble nothing changes, so of each such interval only the value nearest to the factual matters: the *cell*
of the interval. Positions of categories have the cells 0 and 1; of a column with steps, the cell is at a step, and an
interval without one has none. A leaf has consecutive cells of each position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_tabular.classifiers.trees import Index, Trees
from cfbench_tabular.column_types import OFF
from cfbench_tabular.explainers.exact import Reach
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

ROUNDING = 1e-9
"""By which a value at a step may lie outside of limits that a budget sets."""


@dataclass(frozen=True)
class Cells:
    """The values that one position may have, one for each interval between thresholds that lies within its limits.

    Attributes:
        values: (c,) ascending; the value of an interval that is nearest to the factual.
        intervals: (c,) the number of the interval, which is that of the thresholds below it.
    """

    values: FloatArray
    intervals: IntArray

    @staticmethod
    def of(reach: Reach, position: int, thresholds: FloatArray) -> Cells:
        """Of a number, within its limits; ``thresholds`` ascending."""
        factual = float(reach.row[position])
        above = np.maximum(np.concatenate([[-np.inf], _above(thresholds)]), reach.low[position])
        below = np.minimum(np.concatenate([_below(thresholds), [np.inf]]), reach.high[position])
        intervals = np.arange(len(above))
        values = _steps_between(reach, position, above, below, thresholds)
        # The trees decide which interval a value is in: rounded to 32 bits, a step that lies at a threshold may be
        # above it, although it lies below the first 32-bit number above. Only limits are compared as they are.
        good = interval_of(values, thresholds) == intervals
        low, high = reach.low[position] - ROUNDING, reach.high[position] + ROUNDING
        good &= (values == factual) | ((values >= low) & (values <= high))
        # Rounded to 32 bits, the factual may be on the other side of a threshold than above and below say.
        own = int(interval_of(np.array([factual]), thresholds)[0])
        values[own], good[own] = factual, True
        return Cells(values[good], intervals[good])

    @staticmethod
    def of_level(low: float, high: float, thresholds: FloatArray) -> Cells:
        """Of a position of a category: 0 and 1, as far as the limits allow it."""
        values = np.array([0.0, 1.0])
        values = values[(values >= low) & (values <= high)]
        return Cells(values, interval_of(values, thresholds))


def _steps_between(
    reach: Reach, position: int, low: FloatArray, high: FloatArray, thresholds: FloatArray
) -> FloatArray:
    """(n,) the value nearest to the factual's in the n intervals, from low to high; of a column with steps, at a step.

    Where no value lies between them, it is one outside.
    """
    factual = reach.row[position]
    nearest: FloatArray = np.clip(factual, low, np.maximum(low, high))
    grid = reach.encoding.grid
    if position not in grid.positions:
        return nearest
    at = int(np.flatnonzero(grid.positions == position)[0])

    def multiples(values: FloatArray) -> FloatArray:
        found: FloatArray = grid.multiples(np.repeat(values[:, None], len(grid), axis=1))[:, at]
        return found

    def at_step(whole: FloatArray) -> FloatArray:
        found: FloatArray = grid.at(np.repeat(whole[:, None], len(grid), axis=1))[:, at]
        return found

    whole = np.where(nearest > factual, np.ceil(multiples(nearest) - OFF), np.floor(multiples(nearest) + OFF))
    # An interval begins at the 32-bit number after a threshold. Where the threshold is at a step, so is, up to the
    # tolerance, this number, and the first step inside is the next one.
    reached, wanted = interval_of(at_step(whole), thresholds), np.arange(len(low))
    whole = whole + (reached < wanted) - (reached > wanted)
    return np.where(nearest == factual, factual, at_step(whole))


def interval_of(values: FloatArray, thresholds: FloatArray) -> IntArray:
    """(n,) how many thresholds lie below each value, as the trees compare them."""
    single = values.astype(np.float32).astype(np.float64)
    return np.searchsorted(thresholds, single, side="left")


def ends_of_interval(thresholds: FloatArray, interval: int) -> tuple[float, float]:
    """The smallest and the largest number of an interval between thresholds; infinite at the ends."""
    low = float(_above(thresholds)[interval - 1]) if interval else -np.inf
    return low, float(_below(thresholds)[interval]) if interval < len(thresholds) else np.inf


@dataclass(frozen=True)
class EnsembleTests:
    """What an ensemble tests.

    Attributes:
        trees: the ensemble.
        inner: (J,) which nodes are no leaves.
        tree: (J,) the tree of each node.
        thresholds: ascending, of each tested position.
    """

    trees: Trees
    inner: BoolArray
    tree: IntArray
    thresholds: dict[int, FloatArray]

    @staticmethod
    def of(trees: Trees) -> EnsembleTests:
        inner = trees.left != np.arange(len(trees.left))
        tree = np.searchsorted(trees.roots, np.arange(len(trees.left)), side="right") - 1
        thresholds = {
            int(position): np.unique(trees.threshold[inner & (trees.feature == position)])
            for position in np.unique(trees.feature[inner])
        }
        return EnsembleTests(trees, inner, tree, thresholds)

    def cells(self, reach: Reach) -> dict[int, Cells]:
        """Of the tested positions, and of all positions of categories."""
        found = {}
        for position in range(reach.encoding.width):
            thresholds = self.thresholds.get(position, np.empty(0))
            low, high = float(reach.low[position]), float(reach.high[position])
            if not reach.encoding.numeric[position]:
                found[position] = Cells.of_level(low, high, thresholds)
            elif position in self.thresholds:
                found[position] = Cells.of(reach, position, thresholds)
        return found


@dataclass(frozen=True)
class Leaves:
    """L leaves of an ensemble that rows within a budget reach.

    Attributes:
        node: (L,) their nodes.
        first, stop: (L, p) of each tested position the cells first, ..., stop - 1.
        positions: (p,) those positions.
    """

    node: IntArray
    first: Index
    stop: Index
    positions: IntArray

    @staticmethod
    def within(tested: EnsembleTests, reach: Reach, cells: dict[int, Cells]) -> Leaves:
        """Leaves that a row of ``cells`` reaches whose changes in tested columns cost at most the budget.

        From the roots on, level by level for all trees; a branch ends where no cell is left, or where the cheapest
        cells cost too much.
        """
        trees, positions = tested.trees, np.array(sorted(tested.thresholds), dtype=np.int64)
        place = np.zeros(reach.encoding.width, dtype=np.int64)
        place[positions] = np.arange(len(positions))
        split, paid = _splits(tested, cells), _prices(reach, cells, positions)
        column = reach.encoding.column_of[positions]
        node = trees.roots.astype(np.int64)
        first = np.zeros((len(node), len(positions)), dtype=np.int32)
        stop = np.tile(
            np.array([len(cells[int(p)].values) for p in positions], dtype=np.int32), (len(node), 1)
        )
        price = np.zeros((len(node), len(reach.encoding.columns)))
        found = []
        while len(node):
            leaf = ~tested.inner[node]
            found.append((node[leaf], first[leaf], stop[leaf]))
            node, first, stop, price = node[~leaf], first[~leaf], stop[~leaf], price[~leaf]
            at, each = place[trees.feature[node]], np.arange(len(node))
            sides = []
            for child, is_left in ((trees.left, True), (trees.right, False)):
                lower, upper, cost = first.copy(), stop.copy(), price.copy()
                if is_left:
                    upper[each, at] = np.minimum(upper[each, at], split[node])
                else:
                    lower[each, at] = np.maximum(lower[each, at], split[node])
                good = lower[each, at] < upper[each, at]
                cheapest = paid.least(at[good], lower[good, at[good]], upper[good, at[good]])
                changed = column[at[good]]
                lines = np.flatnonzero(good)
                cost[lines, changed] = np.maximum(cost[lines, changed], cheapest)
                good[lines] = cost[lines].sum(axis=1) <= reach.budget * (1 + 1e-9) + 1e-12
                sides.append((child[node][good].astype(np.int64), lower[good], upper[good], cost[good]))
            node, first, stop, price = (np.concatenate(parts) for parts in zip(*sides, strict=True))
        node, first, stop = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = node.argsort(kind="stable")
        return Leaves(node[order], first[order], stop[order], positions)


@dataclass(frozen=True)
class _Prices:
    """What the cells cost: (p, c) padded by infinities, and (p,) the cell of the factual."""

    paid: FloatArray
    own: IntArray

    def least(self, at: IntArray, first: Index, stop: Index) -> FloatArray:
        """(n,) the cheapest of the cells first, ..., stop - 1 of positions ``at``: the one nearest to the factual's."""
        nearest = np.clip(self.own[at], first, stop - 1)
        found: FloatArray = self.paid[at, nearest]
        return found


def _prices(reach: Reach, cells: dict[int, Cells], positions: IntArray) -> _Prices:
    most = max((len(cells[int(p)].values) for p in positions), default=0)
    paid, own = np.full((len(positions), most), np.inf), np.zeros(len(positions), dtype=np.int64)
    for index, position in enumerate(positions.tolist()):
        changes = np.abs(cells[position].values - reach.row[position])
        column = reach.encoding.column_of[position]
        paid[index, : len(changes)] = reach.costs.slope[column] * changes + reach.costs.fixed[column] * (
            changes > 0
        )
        own[index] = changes.argmin()
    return _Prices(paid, own)


def _splits(tested: EnsembleTests, cells: dict[int, Cells]) -> IntArray:
    """(J,) of each inner node, how many cells of its position go left."""
    trees, split = tested.trees, np.zeros(len(tested.trees.left), dtype=np.int64)
    for position, thresholds in tested.thresholds.items():
        own = tested.inner & (trees.feature == position)
        last = np.searchsorted(thresholds, trees.threshold[own], side="left")  # the interval that ends there
        split[own] = np.searchsorted(cells[position].intervals, last, side="right")
    return split


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
