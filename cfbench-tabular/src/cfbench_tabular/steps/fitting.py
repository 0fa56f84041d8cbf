"""Classifiers: trained or with given weights, and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfbench_core.config import create
from cfbench_core.lifecycle.models import State
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.adapting import adapted
from cfbench_tabular.classifiers.base import area_under_curve, probabilities
from cfbench_tabular.prepared_dataset import Part, PreparedDataset


def fit(context: TaskContext, data: PreparedDataset) -> tuple[Classifier, dict[str, Any]]:
    """Trains the classifier, or loads its weights, and evaluates it on the test rows."""
    model = adapted(create(context.parameters["model"]), data.encoding)
    model.fit(data, context.streams.generator("fit"), context.report)
    summary: dict[str, Any] = {"quality": quality(model, data)}
    if hasattr(model, "layers"):
        summary["neurons"] = sum(len(biases) for _, biases in model.layers()[:-1])
    return model, summary


def restore(component: Mapping[str, Any], state: State, data: PreparedDataset) -> Classifier:
    """A fitted classifier; a pretrained one of a user's own is created again."""
    model = adapted(create(component), data.encoding)
    model.load_state(state, data)
    return model


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
