"""Questions other than "the target class or the rest": class to class, a decision threshold, a range of numbers.

Explainers ask one question: is a row in class 0 or 1? These functions turn other predictions into probabilities p_0 and
p_1, so that class 1 is predicted (p_1 > p_0) exactly where the wanted outcome is:

- of c classes, the wanted one w is the one that the model predicts: p_1 = p_w / (p_w + max over j != w of p_j);
- its probability p is above a decision threshold t: p_1 = p (1 - t) / (p (1 - t) + (1 - p) t). The odds are divided by
  those of the threshold, so gradients of the log-odds do not change;
- a predicted number y is in the range [a, b], whose limits belong to it: p_1 = sigmoid(min(y - a, b - y) / s) with a
  scale s.

Where two classes are equally probable, or y is at a limit, p_1 is 1/2, which would count as class 0, and rounding may
put a row next to the boundary on its wrong side. There p_1 is the next number on the side that is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit

from cfbench_tabular.classifiers.base import Wrapped
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.number_range import NumberRange
from cfbench_tabular.table import BoolArray, FloatArray

ABOVE = float(np.nextafter(0.5, 1.0))
"""The smallest probability of class 1 with which it is predicted."""


def decided(probabilities: FloatArray, wanted: BoolArray) -> FloatArray:
    """The probabilities (n, 2), such that class 1 is predicted exactly where ``wanted`` (n,).

    Rows where equality or rounding would give the other class get the nearest probabilities that give the wanted one.
    NaN stays.
    """
    one = probabilities[:, 1] > probabilities[:, 0]
    wrong = (one != wanted) & ~np.isnan(probabilities).any(axis=1)
    if not wrong.any():
        return probabilities
    found = probabilities.copy()
    found[wrong] = np.where(wanted[wrong, None], [1.0 - ABOVE, ABOVE], 0.5)
    return found


def of_classes(probabilities: FloatArray, wanted: int, predicted: BoolArray | None = None) -> FloatArray:
    """(n, 2) from the probabilities (n, c) of c classes; ``wanted``: the index of the wanted one.

    predicted: (n,) where the model predicts it; None: where it is the first of the most probable ones.
    """
    own = probabilities[:, wanted]
    best = np.delete(probabilities, wanted, axis=1).max(axis=1, initial=0.0)
    total = own + best
    one = np.where(total == 0, 0.5, own / np.where(total == 0, 1.0, total))
    if predicted is None:
        predicted = probabilities.argmax(axis=1) == wanted
    return decided(np.stack([1.0 - one, one], axis=1), predicted)


def of_numbers(
    values: FloatArray, low: float | None, high: float | None, scale: float, inside: bool = True
) -> FloatArray:
    """(n, 2) from predicted numbers (n,); None: the range is open at that end.

    inside: class 1 is the range, limits included; else what is outside. Limits are rounded like the numbers: a number of
    32 bits that stands for 7.1 is at the limit 7.1.
    """
    numbers = values.astype(np.float64)
    if values.dtype.kind != "f":
        values = numbers
    room = np.full(len(numbers), np.inf)
    if low is not None:
        room = np.minimum(room, numbers - low)
    if high is not None:
        room = np.minimum(room, high - numbers)
    found = np.stack([expit(-room / scale), expit(room / scale)], axis=1)
    within = NumberRange(low, high).contains(values)
    return decided(found if inside else found[:, ::-1], within == inside)


class DecisionThreshold(Wrapped):
    """A model that predicts class 1 where its probability is above a threshold other than 1/2."""

    boundary_class = 0
    """Of rows whose probability is the threshold (see ``TreeClassifier``)."""

    def __init__(self, model: Any, threshold: float) -> None:
        self._model, self._threshold = model, threshold

    def __getattr__(self, name: str) -> Any:
        """Fitting, states and gradients are those of the model."""
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._model, name)
        return {"layers": self._layers, "ensemble": self._ensemble}.get(name, value)

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities whose odds are divided by those of the threshold."""
        found = np.asarray(self._model.predict_proba(vectors), dtype=np.float64)
        weighted = found * np.array([self._threshold, 1 - self._threshold])
        total = weighted.sum(axis=1, keepdims=True)
        return decided(weighted / np.where(total > 0, total, 1.0), found[:, 1] > self._threshold)

    def own_probabilities(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities of the model itself, which are shown to people."""
        found: FloatArray = self._model.predict_proba(vectors)
        return found

    def _layers(self) -> Sequence[tuple[FloatArray, FloatArray]]:
        """The last bias of class 0 is larger by the log-odds of the threshold."""
        *hidden, (weights, biases) = self._model.layers()
        return [*hidden, (weights, biases + np.array([logit(self._threshold), 0.0]))]

    def _ensemble(self) -> tuple[Trees, float]:
        """Boosted trees add up log-odds; of the trees of a forest a share above the threshold must agree."""
        trees, offset = self._model.ensemble()
        if votes(trees, offset):
            return trees, offset + (0.5 - self._threshold) * len(trees.roots)
        return trees, offset - float(logit(self._threshold))


def votes(trees: Trees, offset: float) -> bool:
    """Whether the trees are a forest, whose leaves are shares of class 1."""
    return bool(-len(trees.roots) <= offset <= 0 and trees.value.min() >= 0 and trees.value.max() <= 1)
