"""Features of a factual that are known before it is explained, from which the analysis ``advice`` learns.

Stored with the explanations (``details.parquet``). The first three are those of CF-tabular, appendix C:

- factual score: the probability of the predicted class of the factual, 0.5 to 1.
- misclassified: 1 if the true class of the row differs from the predicted one, else 0.
- factual share: the share of the rows of the table that have the predicted class.
- enemy distance: the distance to the nearest training row that the classifier puts into the other class, in
  standard deviations; missing if there is none.
"""

from __future__ import annotations

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray, IntArray

SCORE, MISCLASSIFIED, SHARE, ENEMY = "factual score", "misclassified", "factual share", "enemy distance"


def instance_features(
    model: Classifier, data: PreparedDataset, factuals: Factuals, rows: IntArray
) -> dict[str, FloatArray]:
    """(B,) values of each feature, by name; rows: (B,) the indices of the factuals."""
    if len(factuals) == 0:
        return {name: np.empty(0) for name in (SCORE, MISCLASSIFIED, SHARE, ENEMY)}
    share = np.array([(data.labels == 0).mean(), (data.labels == 1).mean()])
    return {
        SCORE: probabilities(model, factuals.vectors)[np.arange(len(factuals)), factuals.classes],
        MISCLASSIFIED: (data.labels[rows] != factuals.classes).astype(np.float64),
        SHARE: share[factuals.classes],
        ENEMY: _to_enemies(model, data.sample("train")[0], factuals),
    }


def _to_enemies(model: Classifier, background: FloatArray, factuals: Factuals) -> FloatArray:
    from scipy.spatial.distance import cdist

    classes, found = predicted_classes(model, background), np.full(len(factuals), np.nan)
    for label in (0, 1):
        own, enemies = factuals.classes == label, background[classes != label]
        if own.any() and len(enemies):
            found[own] = cdist(factuals.vectors[own], enemies).min(axis=1)
    return found
