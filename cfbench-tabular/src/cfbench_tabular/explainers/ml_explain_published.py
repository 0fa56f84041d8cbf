"""ML-Explain as in its author's code: ``loop: published``.

The code that comes with Afonichkin 2019 takes ``iterations`` gradient steps of the size ``learning_rate`` on

    P(class of the factual | c) + distance_weight ||c - x||_2

from c = x, and returns the last point, whatever its class; here only one in the other class is an answer. The
distance pulls with a gradient of length 1 from the first step on, so that points swing about x unless the gradient of the
probability is longer than ``distance_weight``. There are neither ranges nor categories.
"""

from __future__ import annotations

import numpy as np

from cfbench_tabular.classifier_contracts import DifferentiableClassifier
from cfbench_tabular.explainers.descent import flips, margin_gradients, margins
from cfbench_tabular.table import FloatArray, IntArray


def last_points(
    model: DifferentiableClassifier,
    factuals: FloatArray,
    classes: IntArray,
    *,
    iterations: int,
    learning_rate: float,
    distance_weight: float,
) -> FloatArray:
    """(n, d) the points after all steps, NaN for those in the class of their factual (n, d)."""
    points = factuals.copy()
    for _ in range(iterations):
        away = points - factuals
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        pull = np.divide(away, lengths, out=np.zeros_like(away), where=lengths > 0)
        points = points - learning_rate * (
            _probability_gradient(model, points, classes) + distance_weight * pull
        )
    return np.where(flips(model, points, classes)[:, None], points, np.nan)


def _probability_gradient(
    model: DifferentiableClassifier, points: FloatArray, classes: IntArray
) -> FloatArray:
    """(n, d) of P(class of the factual), which is the logistic function of minus the margin."""
    margin = np.clip(margins(model, points, classes), -700, 700)
    own = 1 / (1 + np.exp(margin))
    return -(own * (1 - own))[:, None] * margin_gradients(model, points, classes)
