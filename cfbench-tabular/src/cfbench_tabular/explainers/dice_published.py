"""DiCE as in the code of its authors, the gradient method of dice-ml: ``loop: published``.

The loss is that of :mod:`dice <.dice>`, between levels of categories, with every number from 0 to 1 over its range (so
that the step of Adam is a share of the range). The sets begin at x, x + 0.01, x + 0.02, ... in every coordinate and are
cut at the range after each step. The descent ends when the loss changes by at most ``LOSS_CHANGE`` from one step to the
next, at least ``FIRST_STEPS`` steps were taken, and all k rows that the points round to are in the other class; or after
``iterations`` steps, and then the rounded set nearest to the boundary, of all steps whose whole set was in the other
class, is returned if the last one is not. Rows in the class of x are not returned. Afterwards numbers are reset
by their linear search (:class:`LinearReset`; with another ``sparsity`` as in :mod:`dice <.dice>`).

The log-odds of the hinge are those of |P(class 1) - 1e-6|, which change their direction below 1e-6.

Departures: a two-valued column is one coordinate without a penalty, where the authors have two; numbers without steps are
not rounded to the decimals of their column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cfbench_tabular.classifier_contracts import DifferentiableClassifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.counterfactual_sets import distances, diversity, diversity_gradient
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, Adam, margin_gradients, margins
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

FIRST_STEPS = 500
LOSS_CHANGE = 1e-5
SHIFT = 1e-6
QUANTILE, NEAR, MOST_STEPS = 0.1, 1e-3, 10_000
"""Of the reset of numbers."""
TRIED = 250
"""Steps of the reset that are predicted at once."""
ROUNDING = 1e-9
APART = 0.01
"""Between the starting points of two counterfactuals of a set, in each coordinate."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of DiCE that count in this loop."""

    proximity: float
    diversity: float
    categories: float
    learning_rate: float
    iterations: int


class PublishedSearch:
    """The search for the sets of some factuals (n, d)."""

    def __init__(
        self,
        settings: Settings,
        model: DifferentiableClassifier,
        encoding: Encoding,
        background: FloatArray,
        factuals: FloatArray,
        classes: IntArray,
    ) -> None:
        self.settings, self.model, self.encoding = settings, model, encoding
        self.factuals, self.classes = factuals, classes
        self.limits = encoding.limits(factuals)
        low, high = encoding.bounds
        self.low, high = np.where(encoding.numeric, low, 0.0), np.where(encoding.numeric, high, 1.0)
        self.scale = np.where(high > self.low, high - self.low, 1.0)
        self.weights = self._weights(background)
        self.starts = (factuals - self.low) / self.scale

    def run(self, k: int) -> tuple[FloatArray, FloatArray]:
        """(n, k, d) rows or NaN, and (n,) the steps taken."""
        n, d = self.factuals.shape
        rows, steps = np.full((n, k, d), np.nan), np.zeros(n)
        backup, nearness = np.full((n, k, d), np.nan), np.full(n, np.inf)
        active, free = np.arange(n), ~self.encoding.immutable
        points = self.starts[:, None] + np.where(free, APART, 0.0) * np.arange(k)[:, None]
        adam, before = Adam(self.settings.learning_rate, n, k, d), np.zeros(n)
        for step in range(1, self.settings.iterations + 1):
            loss, gradient = self._loss(points, active)
            points = points - np.where(free, adam.step(gradient), 0.0)
            points = np.where(free, np.clip(points, 0.0, 1.0), points)
            tried, margin = self._rounded(points, active)
            whole: BoolArray = np.asarray((margin > CLEAR_MARGIN).all(axis=1))
            near = np.abs(np.tanh(margin / 2)).mean(axis=1)
            better = whole & (near < nearness[active])
            backup[active[better]], nearness[active[better]] = tried[better], near[better]
            done = (step >= FIRST_STEPS) & (np.abs(loss - before[active]) <= LOSS_CHANGE) & whole
            done = done | (step == self.settings.iterations)
            before[active], steps[active] = loss, step
            if done.any():
                rows[active[done]] = self._results(tried, margin, whole, backup[active])[done]
                active, points = active[~done], points[~done]
                adam.select(~done)
            if len(active) == 0:
                break
        return rows, steps

    def sparse(self, sets: FloatArray, reset: LinearReset) -> FloatArray:
        """(n, k, d) the sets with their numbers reset."""
        sets = sets.copy()
        for row, place in np.argwhere(~np.isnan(sets[:, :, 0])):
            own = self.classes[row : row + 1]

            def valid(rows: FloatArray, own: IntArray = own) -> BoolArray:
                found: BoolArray = margins(self.model, rows, np.repeat(own, len(rows))) > CLEAR_MARGIN
                return found

            sets[row, place] = reset.reset(sets[row, place], self.factuals[row], valid)
        return sets

    def _results(
        self, rows: FloatArray, margin: FloatArray, whole: BoolArray, backup: FloatArray
    ) -> FloatArray:
        """(a, k, d) the rows if all of a set are in the other class, else the backup, else those that are."""
        stored = ~np.isnan(backup[:, 0, 0])
        valid = np.where((margin > CLEAR_MARGIN)[:, :, None], rows, np.nan)
        return np.where((~whole & stored)[:, None, None], backup, valid)

    def _weights(self, background: FloatArray) -> FloatArray:
        """(d,) 1 / MAD of numbers from 0 to 1, to two decimals; 1 where it is 0, and for categories."""
        if len(background) == 0:
            return np.ones(self.encoding.width)
        deviations = np.median(np.abs(background - np.median(background, axis=0)), axis=0) / self.scale
        given = self.encoding.numeric & (deviations > 0)
        return np.where(given, np.round(1 / np.where(given, deviations, 1.0), 2), 1.0)

    def _rounded(self, points: FloatArray, active: IntArray) -> tuple[FloatArray, FloatArray]:
        """(a, k, d) the rows nearest to the points, and (a, k) their margins."""
        rows = self.limits.projected(self.low + points * self.scale, active)
        return rows, self._margins(rows, active)

    def _margins(self, rows: FloatArray, active: IntArray) -> FloatArray:
        a, k, d = rows.shape
        return margins(self.model, rows.reshape(a * k, d), np.repeat(self.classes[active], k)).reshape(a, k)

    def _loss(self, points: FloatArray, active: IntArray) -> tuple[FloatArray, FloatArray]:
        """(a,) the loss at points (a, k, d), and its gradient (a, k, d)."""
        (a, k, d), settings = points.shape, self.settings
        vectors = self.low + points * self.scale
        margin, starts = self._margins(vectors, active), self.starts[active, None]
        slopes = margin_gradients(self.model, vectors.reshape(a * k, d), np.repeat(self.classes[active], k))
        slopes = slopes.reshape(a, k, d) * self.scale
        toward, slope = shifted_log_odds(margin, self.classes[active, None])
        loss = np.maximum(1 - toward, 0.0).mean(axis=1)
        gradient = np.where((toward < 1)[:, :, None], -slope[:, :, None] * slopes / k, 0.0)
        loss = loss + settings.proximity / (d * k) * distances(points, starts, self.weights).sum(axis=1)
        gradient += settings.proximity / (d * k) * self.weights * np.sign(points - starts)
        if k > 1:
            loss = loss - settings.diversity * diversity(points, self.weights)
            gradient -= settings.diversity * diversity_gradient(points, self.weights)
        for group in self.encoding.groups:
            excess = points[:, :, group].sum(axis=2, keepdims=True) - 1
            loss = loss + settings.categories * (excess**2).sum(axis=(1, 2))
            gradient[:, :, group] += 2 * settings.categories * excess
        return loss, gradient


class LinearReset:
    """The authors' reset of numbers, ``linear``, in the raw units of the columns.

    A number whose change is at most its limit, the smaller of its MAD (1 if that is 0) and the ``QUANTILE`` of the
    deviations of its different values from their median, moves towards x by the smallest decimal of its column as long as
    the class stays, until it is within ``NEAR`` of x, for ``MOST_STEPS`` steps at most. The columns with the largest limits
    come first.
    """

    def __init__(self, encoding: Encoding, background: FloatArray) -> None:
        self.places: list[int] = []
        self.steps: list[float] = []
        self.limits: list[float] = []
        values = encoding.decode(background)
        for column, block in zip(encoding.columns, encoding.blocks, strict=True):
            if column.scalar and column.kind == "numeric" and len(background):
                numbers = values[column.name].astype(np.float64)
                different = np.unique(numbers)
                limit = float(np.quantile(np.abs(different - np.median(different)), QUANTILE))
                deviation = float(np.median(np.abs(numbers - np.median(numbers))))
                self.places.append(block.start)
                self.limits.append(min(limit, deviation if deviation > 0 else 1.0))
                self.steps.append(column.step or smallest_decimal(numbers))
        self.scales = encoding.scale[encoding.column_of]
        self.order = sorted(range(len(self.places)), key=lambda place: -self.limits[place])

    def reset(
        self, row: FloatArray, factual: FloatArray, valid: Callable[[FloatArray], BoolArray]
    ) -> FloatArray:
        """(d,) the counterfactual ``row`` of the ``factual`` after the reset; ``valid`` of rows (m, d)."""
        row = row.copy()
        for place in self.order:
            at, step = self.places[place], self.steps[place]
            away = (factual[at] - row[at]) * self.scales[at]
            if NEAR < abs(away) <= self.limits[place] * (1 + ROUNDING):
                steps = min(MOST_STEPS, int(np.ceil((abs(away) - NEAR) / step)))
                row[at] = self._moved(row, at, np.sign(away) * step / self.scales[at], steps, valid)
                if abs(row[at] - factual[at]) < ROUNDING:
                    row[at] = factual[at]
        return row

    def _moved(
        self, row: FloatArray, at: int, step: float, steps: int, valid: Callable[[FloatArray], BoolArray]
    ) -> float:
        """The number at ``at`` after as many of the ``steps`` as are valid without a gap."""
        for first in range(1, steps + 1, TRIED):
            turns = np.arange(first, min(first + TRIED, steps + 1))
            tried = np.repeat(row[None], len(turns), axis=0)
            tried[:, at] += turns * step
            wrong = ~valid(tried)
            if wrong.any():
                return float(row[at] + (turns[wrong.argmax()] - 1) * step)
        return float(row[at] + steps * step)


def smallest_decimal(values: FloatArray) -> float:
    """10 to the power of minus the decimals of the most frequent values, of those with the most."""
    different, counts = np.unique(values.astype(np.float32), return_counts=True)
    texts = (np.format_float_positional(value, trim="-") for value in different[counts == counts.max()])
    return 10.0 ** -max(len(text.partition(".")[2]) for text in texts)


def shifted_log_odds(margin: FloatArray, classes: IntArray) -> tuple[FloatArray, FloatArray]:
    """The log-odds of the other class from |P(class 1) - SHIFT|, as in the authors' code, and their slopes in ``margin``.

    Where P(class 1) is smaller than the shift, they decrease in the margin towards class 1.
    """
    sign = np.where(classes == 0, 1.0, -1.0)
    chance = 1 / (1 + np.exp(np.clip(-sign * margin, -700, 700)))
    away = np.abs(chance - SHIFT)
    slope = np.sign(chance - SHIFT) * chance * (1 - chance) / (away * (1 - away))
    return sign * (np.log(away) - np.log(1 - away)), slope
