"""Checked predictions and the quality of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.counting import CountedModel
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.table import FloatArray, IntArray


class Wrapped:
    """Base of the wrappers of a model; error messages name the wrapped model."""

    _model: Any


def probabilities(model: Classifier, vectors: FloatArray) -> FloatArray:
    """``model.predict_proba``, checked: (n, 2) float64, all finite.

    Raises:
        UserError: if the model returns something else.
    """
    if len(vectors) == 0:
        return np.empty((0, 2))
    found = np.asarray(model.predict_proba(vectors), dtype=np.float64)
    if found.shape != (len(vectors), 2):
        raise UserError(
            f"{_name(model)}: predict_proba returned shape {found.shape} for {len(vectors)} rows and 2 classes"
        )
    if not np.isfinite(found).all():
        bad = ~np.isfinite(found).all(axis=1)
        raise UserError(
            f"{_name(model)}: predict_proba returned NaN or infinity for {bad.sum()} of {len(vectors)} rows"
        )
    return found


def predicted_classes(model: Classifier, vectors: FloatArray) -> IntArray:
    """(n,) class 1 where its probability is larger, else class 0."""
    found = probabilities(model, vectors)
    return (found[:, 1] > found[:, 0]).astype(np.int64)


def area_under_curve(labels: IntArray, scores: FloatArray) -> float:
    """Area under the ROC curve: the share of pairs of a row of class 1 and one of class 0 that ``scores`` (n,)
    put in the right order, ties counting half. NaN where there is one class only.
    """
    from scipy.stats import rankdata

    positive = labels == 1
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if ones == 0 or zeros == 0:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _name(model: Any) -> str:
    while isinstance(model, (Wrapped, CountedModel)):
        model = model._model
    return type(model).__name__
