"""What a classifier must offer, and what it may offer to explainers that need more than scores.

This module imports neither NumPy nor pandas at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from cfbench_tabular.classifiers.trees import Trees
    from cfbench_tabular.prepared_dataset import PreparedDataset
    from cfbench_tabular.table import FloatArray

    State: TypeAlias = Mapping[str, np.ndarray[Any, Any]]

Report: TypeAlias = Callable[[int, int], None]
"""``report(done, total)`` updates a progress bar."""


class Classifier(Protocol):
    """A binary classifier of encoded rows (access ``scores``)."""

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        """Learns from ``data.sample("train")``; may select hyperparameters on ``"validation"``, never on ``"test"``."""

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities of class 0 and class 1 for encoded rows (n, d)."""

    def state(self) -> State:
        """Everything that was learned, as named arrays (stored as safetensors)."""

    def load_state(self, state: State, data: PreparedDataset) -> None:
        """Restores a model from its state and the data set that it was fitted on."""


class PretrainedClassifier(Protocol):
    """A classifier of a user's own that is not trained by the suite."""

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities of class 0 and class 1 for encoded rows (n, d)."""


class DifferentiableClassifier(Classifier, Protocol):
    """A classifier with gradients (access ``gradients``)."""

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        """(n, d) derivative of log(p1 / p0) with respect to the encoded rows (n, d)."""


class LayeredClassifier(DifferentiableClassifier, Protocol):
    """A network of fully connected layers with ReLU between them (access ``layers``); a linear model has one layer."""

    def layers(self) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Weights (inputs, outputs) and biases (outputs,) of each layer, in order.

        The last layer has two outputs; class 1 is predicted if the second is larger.
        """


class TreeClassifier(Classifier, Protocol):
    """A sum of decision trees (access ``trees``).

    It may have an attribute ``boundary_class``: the class where the sum of all trees plus the offset is 0 (else it is 0).
    """

    def ensemble(self) -> tuple[Trees, float]:
        """The trees and an offset: class 1 is predicted if the sum of all trees plus the offset is positive."""
