"""ALIBIC as in the code of its authors, the class CounterfactualProto of alibi: ``loop: published``.

The loss is that of :mod:`prototypes <.prototypes>` with the probabilities themselves in the hinge, at y_t:

    cost max(0, P(class of x) - P(other class) + kappa) + ||y - x||_2^2 + theta ||y - p||_2^2

A step of the size learning_rate sqrt(1 - t / iterations) on y gives y'; c_{t+1} is y' moved by ``beta`` towards x in
each coordinate (not by the step size times beta), and y_{t+1} = c_{t+1} + (t + 1) / (t + 4) (c_{t+1} - c_t), cut at the
range. Of all c_t in the other class, of all costs, the one with the smallest beta ||c - x||_1 + ||c - x||_2^2 is
returned. The cost is bisected where one was found, and else multiplied by ten until one is found.

A category is a coordinate of its own; the gradient of the class with respect to it is the sum of the gradients with respect
to all of its levels, as the authors let gradients pass through the choice of a level. Each coordinate of the gradient of the
loss is cut at 1,000. Numbers are not rounded to the steps of their columns. Departures: levels are placed on their line,
and limited to it, as in :mod:`levels <.levels>`; y_{t+1} always has its momentum, where the order of two updates, and with
it the momentum, is left to TensorFlow in their code (``benchmarks/authors_prototypes.py``).
"""

from __future__ import annotations

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, gradient_model, margin_gradients, margins
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.prototypes import Search
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

LARGEST = 1000.0
"""Of each coordinate of the gradient, as in the authors' code."""


class PublishedSearch(Search):
    """The search for the counterfactuals of factuals, as points (n, M)."""

    def _fista(self, cost: FloatArray) -> BoolArray:
        options, starts = self.options, self.starts
        met = np.zeros(len(starts), dtype=bool)
        point = ahead = starts
        for step in range(options.iterations):
            rate = options.learning_rate * np.sqrt(1 - step / options.iterations)
            gradient = cost[:, None] * hinge_gradient(
                self.model, self.space, ahead, self.classes, options.kappa
            )
            gradient += 2 * (ahead - starts) + 2 * options.theta * np.nan_to_num(ahead - self.prototypes)
            gradient = np.clip(gradient, -LARGEST, LARGEST)
            moved = self._shrunk(ahead - rate * gradient)
            ahead = np.clip(moved + (step + 1) / (step + 4) * (moved - point), self.low, self.high)
            point = moved
            flipped = self._flipped(self.space.rows(point))
            self._update_best(point, flipped)
            met |= flipped
        return met

    def _shrunk(self, points: FloatArray) -> FloatArray:
        """The points moved by beta towards the factual, within the range; those nearer than beta are at the factual."""
        away, beta = points - self.starts, self.options.beta
        smaller = np.minimum(points - beta, self.high)
        larger = np.maximum(points + beta, self.low)
        return np.where(away > beta, smaller, np.where(away < -beta, larger, self.starts))

    def _flipped(self, rows: FloatArray) -> BoolArray:
        """(n,) whether P(other class) exceeds P(class of x) by kappa."""
        lead = np.tanh(margins(self.model, rows, self.classes) / 2)
        found: BoolArray = lead > max(self.options.kappa, np.tanh(CLEAR_MARGIN / 2))
        return found

    def _update_best(self, rows: FloatArray, flipped: BoolArray) -> None:
        away = rows - self.starts
        merit = self.options.beta * np.abs(away).sum(axis=1) + (away**2).sum(axis=1)
        better = flipped & (merit < self.merit)
        self.best[better], self.merit[better] = rows[better], merit[better]


def hinge_gradient(
    model: Classifier, space: Space, points: FloatArray, classes: IntArray, kappa: float
) -> FloatArray:
    """(n, M) the gradient of max(0, P(class) - P(other class) + kappa); for a category the sum over its levels.

    The difference of the probabilities is -tanh(margin / 2).
    """
    rows = space.rows(points)
    lead = np.tanh(margins(model, rows, classes) / 2)
    slope = np.where(lead < kappa, -(1 - lead**2) / 2, 0.0)
    found = np.zeros_like(points)
    gradients = margin_gradients(gradient_model(model), rows, classes)
    found[:, space.numbers] = slope[:, None] * gradients[:, space.number_positions]
    sums = (space.values * gradients[:, space.positions]).sum(axis=2)
    found[:, space.categories] = slope[:, None] * sums
    return found
