"""What is known of a factual before anybody explains it: is it a hard one?

Kept with the explanations (``details.parquet``), for the advisor (paper 003, appendix C). The study's three, and
how far the other class is, which they leave to the classifier's certainty:

- factual score: the probability that the classifier gives the factual's predicted class, 0.5 to 1.
- misclassified: 1 if the table gives the row another class than the classifier does, else 0.
- factual share: the share of the table's rows that have the predicted class.
- enemy distance: to the nearest training row that the classifier puts into the other class, in standard
  deviations; missing where there is none.
"""

from __future__ import annotations

import numpy as np

from cfbench_tabular.classifiers.base import Classifier, predicted_classes, probabilities
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray, IntArray

SCORE, MISCLASSIFIED, SHARE, ENEMY = "factual score", "misclassified", "factual share", "enemy distance"


def facts(model: Classifier, problem: Problem, factuals: Factuals, rows: IntArray) -> dict[str, FloatArray]:
    """(B,) numbers by name. rows: (B,) the factuals' places in the table."""
    if len(factuals) == 0:
        return {name: np.empty(0) for name in (SCORE, MISCLASSIFIED, SHARE, ENEMY)}
    share = np.array([(problem.labels == 0).mean(), (problem.labels == 1).mean()])
    return {
        SCORE: probabilities(model, factuals.vectors)[np.arange(len(factuals)), factuals.classes],
        MISCLASSIFIED: (problem.labels[rows] != factuals.classes).astype(np.float64),
        SHARE: share[factuals.classes],
        ENEMY: _to_enemies(model, problem.sample("train")[0], factuals),
    }


def _to_enemies(model: Classifier, background: FloatArray, factuals: Factuals) -> FloatArray:
    from scipy.spatial.distance import cdist

    classes, found = predicted_classes(model, background), np.full(len(factuals), np.nan)
    for label in (0, 1):
        own, enemies = factuals.classes == label, background[classes != label]
        if own.any() and len(enemies):
            found[own] = cdist(factuals.vectors[own], enemies).min(axis=1)
    return found
