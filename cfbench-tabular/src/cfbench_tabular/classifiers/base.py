"""What the suite asks of a classifier. Protocols, not base classes: any object with these methods will do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray, IntArray

Report = Callable[[int, int], None]


class Classifier(Protocol):
    """A component of kind "classifier": ``Name(config)``, then ``fit`` or ``load_state``, then predictions.

    Access ``scores`` is ``predict_proba``. Access ``gradients`` is ``log_odds_gradient`` as well, see below.
    """

    def fit(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        """Learn from ``problem.sample("train")``; choose with ``"validation"``, never with ``"test"``."""

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities of class 0 and class 1 for encoded rows (n, d)."""

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Everything that was learned, as named arrays (kept as safetensors)."""

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Take up what ``state`` gave."""


class DifferentiableClassifier(Classifier, Protocol):
    """A classifier with gradients (access gradients)."""

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        """(n, d) derivative of log(p1 / p0) with respect to the encoded row."""


class LayeredClassifier(DifferentiableClassifier, Protocol):
    """A network of fully connected layers with ReLU between them (access layers); a linear model has one."""

    def layers(self) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Weights (inputs, outputs) and biases (outputs,) of each layer, in order.

        The last has two outputs; class 1 is predicted where the second is larger.
        """


class Wrapped:
    """What stands around a model; messages name the model itself."""

    _model: Any


class Counted(Wrapped):
    """A classifier that counts the rows it was asked about; gradients count as the prediction that they need."""

    def __init__(self, model: Any) -> None:
        self.evaluations = 0
        self._model = model

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        if name not in ("predict_proba", "log_odds_gradient"):
            return value

        def counted(vectors: FloatArray) -> FloatArray:
            self.evaluations += len(vectors)
            found: FloatArray = value(vectors)
            return found

        return counted


def probabilities(model: Classifier, vectors: FloatArray) -> FloatArray:
    """``model.predict_proba``, checked: (n, 2) float64, all finite.

    Raises:
        UserError: when the model returns something else.
    """
    if len(vectors) == 0:
        return np.empty((0, 2))
    found = np.asarray(model.predict_proba(vectors), dtype=np.float64)
    if found.shape != (len(vectors), 2):
        raise UserError(
            f"{_name(model)}: predict_proba gave shape {found.shape} for {len(vectors)} rows and 2 classes"
        )
    bad = ~np.isfinite(found).all(axis=1)
    if bad.any():
        raise UserError(
            f"{_name(model)}: predict_proba gave NaN or infinity for {bad.sum()} of {len(vectors)} rows"
        )
    return found


def predicted_classes(model: Classifier, vectors: FloatArray) -> IntArray:
    """(n,) class 1 where its probability is larger, else class 0."""
    found = probabilities(model, vectors)
    return (found[:, 1] > found[:, 0]).astype(np.int64)


def area_under_curve(labels: IntArray, scores: FloatArray) -> float:
    """Area under the ROC curve: the share of pairs of a row of class 1 and one of class 0 that ``scores`` (n,)
    put in the right order, ties half. NaN where there is one class only.
    """
    from scipy.stats import rankdata

    positive = labels == 1
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if ones == 0 or zeros == 0:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _name(model: Any) -> str:
    while isinstance(model, Wrapped):
        model = model._model
    return type(model).__name__
