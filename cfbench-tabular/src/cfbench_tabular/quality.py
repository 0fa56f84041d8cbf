"""How good a classifier is, by the parts of the split."""

from __future__ import annotations

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import area_under_curve, probabilities
from cfbench_tabular.prepared_dataset import Part, PreparedDataset

QUALITY_PARTS: tuple[tuple[Part, str], ...] = (
    ("test", ""),
    ("validation", " of validation rows"),
    ("train", " of training rows"),
)
"""Parts of the split, and the suffixes of the quality measures computed on them."""


def quality(model: Classifier, data: PreparedDataset) -> dict[str, float]:
    """Area under the ROC curve and accuracy on the test rows, then on validation and training rows.

    The area is left out where only one class occurs.
    """
    found: dict[str, float] = {}
    for part, suffix in QUALITY_PARTS:
        vectors, labels = data.sample(part)
        if len(labels) == 0:
            continue
        scores = probabilities(model, vectors)
        if len(np.unique(labels)) == 2:
            found[f"AUC{suffix}"] = area_under_curve(labels, scores[:, 1])
        found[f"accuracy{suffix}"] = float(((scores[:, 1] > scores[:, 0]) == labels).mean())
    return found
