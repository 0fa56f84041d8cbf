"""Parts of the certified methods: a network as layers, the costs of changes, and the reachable values at a cost.

Used by ``optimum`` (mixed-integer programming) and ``mace`` (satisfiability modulo theories).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.columns import allowed_only
from cfbench_tabular.grid import Limits
from cfbench_tabular.table import BoolArray, FloatArray

HALVINGS = 12
"""Of each change of a number on its way back to the factual."""


@dataclass(frozen=True)
class Network:
    """Fully connected layers with ReLU between them; the last, with one output, gives the log-odds z1 - z0."""

    weights: list[FloatArray]
    biases: list[FloatArray]

    @staticmethod
    def of(layers: Sequence[tuple[FloatArray, FloatArray]]) -> Network:
        """From the layers of a classifier, the last of which has two outputs."""
        weights = [np.asarray(weight, dtype=np.float64) for weight, _ in layers]
        biases = [np.asarray(bias, dtype=np.float64) for _, bias in layers]
        weights[-1] = weights[-1][:, 1:] - weights[-1][:, :1]
        biases[-1] = biases[-1][1:] - biases[-1][:1]
        return Network(weights, biases)

    def hidden(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Weights and biases of the layers with ReLU."""
        return zip(self.weights[:-1], self.biases[:-1], strict=True)

    def signs(self, row: FloatArray) -> list[BoolArray]:
        """Which units of each hidden layer are on at ``row`` (d,)."""
        on, values = [], row
        for weight, bias in self.hidden():
            values = values @ weight + bias
            on.append(values > 0)
            values = np.maximum(values, 0.0)
        return on


@dataclass(frozen=True)
class Costs:
    """What changes cost: per column, slope_j |c_j - x_j| (numbers) plus fixed_j when it changes at all.

    Attributes:
        slope, fixed: (M,); a category has no slope.
        largest: the total is the largest of these, not their sum.
    """

    encoding: Encoding
    slope: FloatArray
    fixed: FloatArray
    largest: bool = False

    def of(self, rows: FloatArray, factual: FloatArray) -> FloatArray:
        """(n,) for rows (n, d) as counterfactuals of ``factual`` (d,)."""
        changes = np.abs(rows - factual)
        starts = [block.start for block in self.encoding.blocks]
        sizes = np.add.reduceat(changes, starts, axis=1)
        parts = self.slope * sizes + self.fixed * (sizes > 0)
        return np.asarray(parts.max(axis=1) if self.largest else parts.sum(axis=1))


@dataclass(frozen=True)
class Reach:
    """The rows that a counterfactual of one factual may be.

    Attributes:
        row, low, high: (d,) the factual, and between what each place may lie.
        budget: what the changes may cost in all.
        limits: the same limits with the steps of the columns.
    """

    costs: Costs
    row: FloatArray
    low: FloatArray
    high: FloatArray
    limits: Limits
    budget: float = np.inf

    @property
    def encoding(self) -> Encoding:
        return self.costs.encoding

    @property
    def steps(self) -> FloatArray:
        """(d,) between two values of a number; 0 where it can be any number."""
        found, grid = np.zeros(self.encoding.width), self.encoding.grid
        found[grid.positions] = grid.step / grid.scale
        return found

    def within(self, budget: float) -> Reach:
        """As far as ``budget`` allows: numbers that no budget reaches are cut off, so are categories."""
        encoding, costs = self.encoding, self.costs
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(costs.slope > 0, (budget - costs.fixed) / costs.slope, np.inf)
        room = np.where(costs.fixed > budget, 0.0, np.maximum(room, 0.0))[encoding.column_of]
        low = np.where(room < np.inf, np.maximum(self.low, self.row - room), self.low)
        high = np.where(room < np.inf, np.minimum(self.high, self.row + room), self.high)
        return replace(self, low=low, high=high, budget=budget)

    def units(self, network: Network) -> list[tuple[FloatArray, FloatArray]]:
        """For each hidden layer (h,) and (h,): between what its units lie before the ReLU."""
        found: list[tuple[FloatArray, FloatArray]] = []
        for weight, bias in network.hidden():
            if not found:
                found.append(self.extremes(weight, bias))
                continue
            below, above = (np.maximum(side, 0.0) for side in found[-1])
            rising, falling = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
            found.append((bias + below @ rising + above @ falling, bias + above @ rising + below @ falling))
        return found

    def extremes(self, weight: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(h,) and (h,): between what bias + row @ weight (d, h) lies, were levels divisible."""
        middle = self.row @ weight + bias
        return middle - self._gain(-weight), middle + self._gain(weight)

    def _gain(self, weight: FloatArray) -> FloatArray:
        """(h,) what the changes can add to row @ weight (d, h) at most."""
        gains, prices = [], []
        for place, block in enumerate(self.encoding.blocks):
            here, part = self.row[block], weight[block]
            if block.stop - block.start == 1:
                room = np.stack([self.high[block] - here, self.low[block] - here])  # (2, 1)
                moved = room * part  # (2, h) upwards, downwards
                gain, length = moved.max(axis=0), np.abs(room[moved.argmax(axis=0), 0])
            else:
                moved = np.where(self.high[block, None] > 0, part - here @ part, 0.0)
                gain, length = np.maximum(moved.max(axis=0), 0.0), np.zeros(weight.shape[1])
            gains.append(gain)
            prices.append(self.costs.slope[place] * length + self.costs.fixed[place])
        if self.costs.largest or np.isinf(self.budget):
            return np.asarray(np.sum(gains, axis=0))
        return _knapsack(np.stack(gains, axis=1), np.stack(prices, axis=1), self.budget)


def reach_of(costs: Costs, row: FloatArray) -> Reach:
    """All rows that ``row`` (d,) may become: within the ranges and constraints of its columns."""
    encoding = costs.encoding
    limits = encoding.limits(row[None])
    low, high = limits.low[0].copy(), limits.high[0].copy()
    between = encoding.grid.missed(
        row
    )  # such a number of the factual is unchanged: no whole steps lead to others
    low[between], high[between] = row[between], row[between]
    for column, block in zip(encoding.columns, encoding.blocks, strict=True):
        if column.kind == "categorical" and len(column.levels) < 2:
            low[block] = high[block] = row[block]
    return Reach(costs, row, low, high, limits)


def nearby(model: Classifier, reach: Reach, label: int, enemies: FloatArray) -> FloatArray | None:
    """(d,) a counterfactual to start from: the cheapest training row of the other class, its changes undone.

    enemies: (n, d). Of each, only what may change is taken. Changes are undone column by column, the dearest
    first, and halved where that loses the class. None where no row is left.
    """
    rows = allowed_only(reach.encoding, reach.low, reach.high, reach.row, enemies)
    order = reach.costs.of(rows, reach.row).argsort(kind="stable")
    for start in range(0, len(order), 256):
        block = rows[order[start : start + 256]]
        good = np.flatnonzero(predicted_classes(model, block) != label)
        if len(good):
            return _undone(model, reach, label, block[good[0]])
    return None


def _undone(model: Classifier, reach: Reach, label: int, enemy: FloatArray) -> FloatArray:
    """``enemy`` (d,) with each change reset as far as the other class allows."""
    nearest_enemy = enemy.copy()
    for block in sorted(reach.encoding.blocks, key=lambda b: -float(np.abs(enemy[b] - reach.row[b]).max())):
        if (nearest_enemy[block] == reach.row[block]).all():
            continue
        wrong, right = 0.0, 1.0  # shares of the change: without and with the other class
        tries = [0.0] if not reach.encoding.numeric[block.start] else [0.0] + [0.5] * HALVINGS
        for way in tries:
            share = wrong + way * (right - wrong)
            tried = nearest_enemy.copy()
            tried[block] = reach.row[block] + share * (enemy[block] - reach.row[block])
            tried = reach.limits.snapped(tried[None])[0]
            if predicted_classes(model, tried[None])[0] != label:
                right = share
                if share == 0.0:
                    break
            elif share > 0.0:
                wrong = share
        if right < 1.0:
            nearest_enemy[block] = reach.row[block] + right * (enemy[block] - reach.row[block])
            nearest_enemy = reach.limits.snapped(nearest_enemy[None])[0]
    return nearest_enemy


def _knapsack(gains: FloatArray, prices: FloatArray, budget: float) -> FloatArray:
    """(h,) the most that divisible offers, (h, O) gains at (h, O) prices, give for the budget."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(gains > 0, gains / prices, 0.0)
    order = (-worth).argsort(axis=1)
    gains, prices = np.take_along_axis(gains, order, axis=1), np.take_along_axis(prices, order, axis=1)
    before = prices.cumsum(axis=1) - prices
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(prices > 0, np.clip((budget - before) / prices, 0.0, 1.0), 1.0)
    return np.asarray((gains * share).sum(axis=1))
