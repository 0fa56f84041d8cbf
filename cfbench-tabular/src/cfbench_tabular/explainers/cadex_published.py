"""CADEX as its authors published it (Moore, Hammerla & Watkins 2019, and their code): ``loop: published``.

Keras's Adam descends -log P(other class) with respect to delta, and the details of the code count. The second largest
level of a category takes the place of the largest as soon as its value is above ``switch_above`` (0 is the default of
the code, 0.2 is what the authors evaluated), in all categories at once, and Adam keeps its moments. The class is
predicted at x + delta, which may be no row, and if it has changed, once more at the row nearest to it (levels as
one-hot, whole numbers rounded). Descent goes on unless both are in the other class. There are no ranges. A one-way
column is fixed if the gradient at x points the wrong way, and free otherwise; ``features`` and ``skip`` choose positions
of the vector, not columns.

Departures: a two-valued column is one position here and a pair of positions in the authors' data; its second level has
the value 1 - v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_tabular.classifier_contracts import DifferentiableClassifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.descent import Columns, flips, margin_gradients, margins
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

FIRST_DECAY, SECOND_DECAY, SMALL = 0.9, 0.999, 1e-7
"""Of Adam, as in Keras."""

_SIGN = {"up": 1.0, "down": -1.0, "any": 0.0}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of CADEX that count in this loop."""

    learning_rate: float
    iterations: int
    features: int | None
    skip: int
    switch_above: float


class PublishedSearch:
    """The search for the counterfactuals of factuals (n, d)."""

    def __init__(
        self,
        settings: Settings,
        model: DifferentiableClassifier,
        encoding: Encoding,
        factuals: FloatArray,
        classes: IntArray,
    ) -> None:
        self.settings, self.model = settings, model
        self.factuals, self.classes = factuals, classes
        self.columns = Columns(encoding)
        self.grid = encoding.limits(factuals, ranges=False)
        self.groups = [
            np.arange(block.start, block.stop) for block in encoding.blocks if block.stop - block.start > 1
        ]
        self.two_valued = np.flatnonzero(self.columns.two_valued[self.columns.of])
        self.mask = self._mask(encoding)

    def run(self) -> tuple[FloatArray, FloatArray]:
        """(n, d) counterfactuals or NaN, and (n,) the number of steps."""
        found_rows, steps = np.full_like(self.factuals, np.nan), np.full(len(self.factuals), np.nan)
        active = np.arange(len(self.factuals))
        points = self.factuals.copy()
        first, second = np.zeros_like(points), np.zeros_like(points)
        for step in range(1, self.settings.iterations + 1):
            gradient = self._gradient(points, active)
            first = FIRST_DECAY * first + (1 - FIRST_DECAY) * gradient
            second = SECOND_DECAY * second + (1 - SECOND_DECAY) * gradient**2
            rate = self.settings.learning_rate * np.sqrt(1 - SECOND_DECAY**step) / (1 - FIRST_DECAY**step)
            points = self._switched(points - rate * first / (np.sqrt(second) + SMALL))
            done = flips(self.model, points, self.classes[active])
            if done.any():
                rows = self._rows(points[done], active[done])
                valid = flips(self.model, rows, self.classes[active[done]])
                done[done] = valid
                found_rows[active[done]], steps[active[done]] = rows[valid], step
                active, points = active[~done], points[~done]
                first, second = first[~done], second[~done]
            if len(active) == 0:
                break
        return found_rows, steps

    def _gradient(self, points: FloatArray, active: IntArray) -> FloatArray:
        """Of -log P(other class): the slope of the log-odds times P(class of the factual)."""
        own = 1 / (1 + np.exp(np.clip(margins(self.model, points, self.classes[active]), -700, 700)))
        slopes = margin_gradients(self.model, points, self.classes[active])
        return -own[:, None] * slopes * self.mask[active]

    def _mask(self, encoding: Encoding) -> FloatArray:
        """(n, d) 1 where delta may change, by the gradient at the factuals."""
        gradient = -margin_gradients(self.model, self.factuals, self.classes)
        direction = np.array([_SIGN[column.direction] for column in encoding.columns])[self.columns.of]
        free = ~encoding.immutable & (gradient * direction <= 0)
        if self.settings.features is None:
            everywhere: FloatArray = free.astype(np.float64)
            return everywhere
        strength = np.abs(np.where(self._wasted(gradient), 0.0, gradient))
        order = np.argsort(strength, axis=1)
        largest = order[:, order.shape[1] - self.settings.skip :]
        np.put_along_axis(strength, largest, 0.0, axis=1)
        order = np.argsort(strength * free, axis=1)
        chosen = np.zeros_like(free)
        np.put_along_axis(chosen, order[:, -self.settings.features :], values=True, axis=1)
        mask: FloatArray = (free & chosen).astype(np.float64)
        return mask

    def _wasted(self, gradient: FloatArray) -> BoolArray:
        """(n, d) levels that are there already, or that a step would make smaller: their column cannot change by them."""
        found = np.zeros(gradient.shape, dtype=np.bool_)
        for group in self.groups:
            found[:, group] = (gradient[:, group] > 0) | (self.factuals[:, group] > 0)
        at = self.two_valued
        found[:, at] = (gradient[:, at] > 0) == (self.factuals[:, at] == 0)
        return found

    def _switched(self, points: FloatArray) -> FloatArray:
        """The points with the second largest level of each category in place of the largest, if it is large enough."""
        each = np.arange(len(points))
        for group in self.groups:
            values = points[:, group]
            second = np.argsort(values, axis=1)[:, -2]
            over = values[each, second] > self.settings.switch_above
            points[np.ix_(over, group)] = np.eye(len(group))[second[over]]
        pairs = points[:, self.two_valued]
        smaller = np.minimum(pairs, 1 - pairs)
        points[:, self.two_valued] = np.where(smaller > self.settings.switch_above, pairs < 1 - pairs, pairs)
        return points

    def _rows(self, points: FloatArray, of: IntArray) -> FloatArray:
        """The rows nearest to the points: the largest level of each category, numbers at the steps of their columns."""
        rows = points.copy()
        for group in self.groups:
            rows[:, group] = np.eye(len(group))[np.argsort(points[:, group], axis=1)[:, -1]]
        rows[:, self.two_valued] = np.rint(np.clip(points[:, self.two_valued], 0, 1))
        return self.grid.snapped(rows, of)
