"""A network with one hidden layer: P = softmax(relu(x W1 + b1) W2 + b2); class 1 is the target class.

x: (n, d), W1: (d, hidden), b1: (hidden,), W2: (hidden, 2), b2: (2,). It is the network of the study (paper
    003, section 2.3 and table A1), whose own weights (``.npz`` files with these names) can be given as
    ``weights``.

Training departs from the study: scikit-learn's ``MLPClassifier`` has Adam, not RMSprop, and one logistic
output z; its weights w, b become the two outputs -+w/2, -+b/2, which give the same probabilities. It stops
when the log loss of the validation rows has not fallen for ``patience`` epochs, and keeps the best epoch. One
size instead of a grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from scipy.special import softmax

from cfbench_core.config import Help, InputFile, Range
from cfbench_core.errors import UserError
from cfbench_tabular.classifiers.base import Report
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray

NAMES = ("W1", "b1", "W2", "b2")


@dataclass(frozen=True, kw_only=True)
class Config:
    hidden: Annotated[int, Range(minimum=1), Help("neurons of the hidden layer")] = 16
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.01
    penalty: Annotated[float, Range(minimum=0), Help("weight of the L2 penalty")] = 1e-4
    batch: Annotated[int, Range(minimum=1), Help("rows per step")] = 32
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 200
    patience: Annotated[int, Range(minimum=1), Help("epochs without progress on the validation rows")] = 10
    weights: Annotated[
        str | None, InputFile(), Help("W1, b1, W2, b2 as .npz or .safetensors, instead of training")
    ] = None


class MLP:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.weights: dict[str, FloatArray] = {}

    def fit(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        if self.config.weights is not None:
            self.load_state(read_weights(Path(self.config.weights)))
            self._check(problem)
            return
        from sklearn.neural_network import MLPClassifier

        vectors, labels = problem.sample("train")
        watched = problem.sample("validation")
        network = MLPClassifier(
            hidden_layer_sizes=(self.config.hidden,),
            learning_rate_init=self.config.learning_rate,
            alpha=self.config.penalty,
            batch_size=min(self.config.batch, len(vectors)),
            random_state=int(generator.integers(2**31)),
        )
        best, since = np.inf, 0
        for epoch in range(self.config.epochs):
            network.partial_fit(vectors, labels, classes=[0, 1])
            weights = _two_outputs(network)
            loss = _log_loss(weights, *(watched if len(watched[1]) else (vectors, labels)))
            best, since, kept = (loss, 0, weights) if loss < best else (best, since + 1, self.weights)
            self.weights = kept
            report(epoch + 1, self.config.epochs)
            if since >= self.config.patience:
                break

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        return _forward(self.weights, vectors)

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        active = vectors @ self.weights["W1"] + self.weights["b1"] > 0
        outgoing = self.weights["W2"][:, 1] - self.weights["W2"][:, 0]
        gradient: FloatArray = (active * outgoing) @ self.weights["W1"].T
        return gradient

    def layers(self) -> Sequence[tuple[FloatArray, FloatArray]]:
        return [(self.weights["W1"], self.weights["b1"]), (self.weights["W2"], self.weights["b2"])]

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return self.weights

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.weights = {name: np.asarray(state[name], dtype=np.float64) for name in NAMES}

    def _check(self, problem: Problem) -> None:
        inputs, hidden = self.weights["W1"].shape
        shapes = {name: self.weights[name].shape for name in NAMES}
        if shapes != {"W1": (inputs, hidden), "b1": (hidden,), "W2": (hidden, 2), "b2": (2,)}:
            raise UserError(f"{self.config.weights}: shapes do not fit together: {shapes}")
        if inputs != problem.encoding.width:
            raise UserError(
                f"{self.config.weights}: is for {inputs} encoded columns, "
                f"but {problem.table.name} has {problem.encoding.width}"
            )


def read_weights(path: Path) -> Mapping[str, np.ndarray[Any, Any]]:
    """The arrays of a ``.npz`` or ``.safetensors`` file. Nothing in it is executed.

    Raises:
        UserError: when the file is neither, or lacks one of W1, b1, W2, b2.
    """
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    elif path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        arrays = load_file(path)
    else:
        raise UserError(f"{path}: weights must be a .npz or a .safetensors file")
    lacking = [name for name in NAMES if name not in arrays]
    if lacking:
        raise UserError(f"{path}: lacks {', '.join(lacking)} (it has {', '.join(arrays)})")
    return arrays


def _forward(weights: Mapping[str, FloatArray], vectors: FloatArray) -> FloatArray:
    hidden = np.maximum(vectors @ weights["W1"] + weights["b1"], 0.0)
    result: FloatArray = softmax(hidden @ weights["W2"] + weights["b2"], axis=1)
    return result


def _two_outputs(network: Any) -> dict[str, FloatArray]:
    (first, last), (first_bias, last_bias) = network.coefs_, network.intercepts_
    half = np.array([-0.5, 0.5])
    return {"W1": first.copy(), "b1": first_bias.copy(), "W2": last * half, "b2": last_bias * half}


def _log_loss(weights: Mapping[str, FloatArray], vectors: FloatArray, labels: Any) -> float:
    right = _forward(weights, vectors)[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(right, 1e-15)).mean())
