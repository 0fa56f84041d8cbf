"""Questions other than "the target class or the rest": class to class, a decision threshold, a range of numbers.

Explainers ask one question: is a row in class 0 or 1? These functions turn other predictions into probabilities p_0 and
p_1, so that class 1 is predicted (p_1 > p_0) exactly where the wanted outcome is:

- of c classes, the wanted one w is the most probable: p_1 = p_w / (p_w + max over j != w of p_j);
- its probability p is above a decision threshold t: p_1 = p (1 - t) / (p (1 - t) + (1 - p) t). The odds are divided by
  those of the threshold, so gradients of the log-odds do not change;
- a predicted number y is in the range [a, b]: p_1 = sigmoid(min(y - a, b - y) / s) with a scale s. At the ends of the range
  p_1 = 1/2, which counts as outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit

from cfbench_tabular.classifiers.base import Wrapped
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.table import FloatArray


def of_classes(probabilities: FloatArray, wanted: int) -> FloatArray:
    """(n, 2) from the probabilities (n, c) of c classes; ``wanted``: the index of the wanted one."""
    own = probabilities[:, wanted]
    best = np.delete(probabilities, wanted, axis=1).max(axis=1, initial=0.0)
    total = own + best
    one = np.where(total > 0, own / np.where(total > 0, total, 1.0), 0.5)
    return np.stack([1.0 - one, one], axis=1)


def of_numbers(values: FloatArray, low: float | None, high: float | None, scale: float) -> FloatArray:
    """(n, 2) from predicted numbers (n,); None: the range is open at that end."""
    room = np.full(len(values), np.inf)
    if low is not None:
        room = np.minimum(room, values - low)
    if high is not None:
        room = np.minimum(room, high - values)
    return np.stack([expit(-room / scale), expit(room / scale)], axis=1)


class DecisionThreshold(Wrapped):
    """A model that predicts class 1 where its probability is above a threshold other than 1/2."""

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
        shifted: FloatArray = weighted / np.where(total > 0, total, 1.0)
        return shifted

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
