"""DiCE as in the code of its authors, the gradient method of dice-ml: ``loop: published``.

The loss is that of :mod:`dice <.dice>`, between levels of categories, with every number from 0 to 1 over its range (so
that the step of Adam is a share of the range). The sets begin at x, x + 0.01, x + 0.02, ... in every coordinate and are
cut at the range after each step. The descent ends when the loss changes by at most ``LOSS_CHANGE`` from one step to the
next, at least ``FIRST_STEPS`` steps were taken, and all k rows that the points round to are in the other class; or after
``iterations`` steps, and then the rounded set nearest to the boundary, of all steps whose whole set was in the other
class, is returned if the last one is not. Rows in the class of x are not returned. Afterwards numbers are reset
(``sparsity``, ``restored``).

Departures: a two-valued column is one coordinate without a penalty, where the authors have two; numbers are reset in
tenths of their change, where the authors take steps of the smallest decimal; the weights 1 / MAD are not rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_tabular.classifier_contracts import DifferentiableClassifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.counterfactual_sets import distances, diversity, diversity_gradient
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, Adam, margin_gradients, margins
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

FIRST_STEPS = 500
LOSS_CHANGE = 1e-5
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
        weights: FloatArray,
        factuals: FloatArray,
        classes: IntArray,
    ) -> None:
        self.settings, self.model, self.encoding = settings, model, encoding
        self.factuals, self.classes = factuals, classes
        self.limits = encoding.limits(factuals)
        low, high = encoding.bounds
        self.low, high = np.where(encoding.numeric, low, 0.0), np.where(encoding.numeric, high, 1.0)
        self.scale = np.where(high > self.low, high - self.low, 1.0)
        self.weights = weights * self.scale
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

    def _results(
        self, rows: FloatArray, margin: FloatArray, whole: BoolArray, backup: FloatArray
    ) -> FloatArray:
        """(a, k, d) the rows if all of a set are in the other class, else the backup, else those that are."""
        stored = ~np.isnan(backup[:, 0, 0])
        valid = np.where((margin > CLEAR_MARGIN)[:, :, None], rows, np.nan)
        return np.where((~whole & stored)[:, None, None], backup, valid)

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
        loss = np.maximum(1 - margin, 0.0).mean(axis=1)
        gradient = np.where((margin < 1)[:, :, None], -slopes / k, 0.0)
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
