"""A network with one hidden layer: P = softmax(relu(x W1 + b1) W2 + b2); class 1 is the target class.

x: (n, d), W1: (d, hidden), b1: (hidden,), W2: (hidden, 2), b2: (2,). The architecture is that of CF-tabular, section
2.3 and table A1, whose published weights (``.npz`` files with these names) can be loaded as ``weights``.

Trained as in CF-tabular, by RMSprop with the defaults of Keras on the cross entropy (``training.py``). ``hidden: grid``
is its hyperparameter search: 1/5 to 5/5 of 2 d + 1 neurons, learning rates .01, .001 and .0001, 50, 100 and 500
epochs, selected by the area under the ROC curve on the validation rows; ties, which are common on small data sets,
are broken by the smallest log loss there. It takes 15 trainings of 500 epochs. Without the grid, training stops when
the log loss of the validation rows has not decreased for ``patience`` epochs, and the best epoch is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import expit

from cfbench_core.config import Help, InputFile, Range
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.classifiers.base import area_under_curve
from cfbench_tabular.classifiers.training import NAMES, epochs, forward, initial, log_losses, one_of
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/classifier/mlp",
    summary="Network with one hidden ReLU layer; trained here or loaded from a file",
    target=f"{__name__}:MLP",
    config=f"{__name__}:Config",
    provides={"access": {"gradients", "layers", "scores"}},
)


RATES = (0.01, 0.001, 0.0001)
EPOCHS = (50, 100, 500)
"""The grid of CF-tabular."""


@dataclass(frozen=True, kw_only=True)
class Config:
    hidden: Annotated[
        int | Literal["grid"],
        Range(minimum=1),
        Help(
            "neurons of the hidden layer; grid: the search of CF-tabular, also over learning rates and epochs"
        ),
    ] = 16
    learning_rate: Annotated[float, Range(above=0), Help("of RMSprop")] = 0.01
    batch: Annotated[int, Range(minimum=1), Help("rows per step")] = 32
    epochs: Annotated[int, Range(minimum=1), Help("maximum number of epochs")] = 200
    patience: Annotated[int, Range(minimum=1), Help("epochs without improvement on the validation rows")] = 10
    weights: Annotated[
        str | None, InputFile(), Help("W1, b1, W2, b2 as .npz or .safetensors, instead of training")
    ] = None


class MLP:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.weights: dict[str, FloatArray] = {}

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        if self.config.weights is not None:
            self.load_state(read_weights(Path(self.config.weights)), data)
            check_weights(self.weights, data, self.config.weights)
            return
        train, validation = data.sample("train"), data.sample("validation")
        if len(np.unique(validation[1])) < 2:
            validation = train
        if self.config.hidden == "grid":
            self.weights = self._search(train, validation, generator, report)
        else:
            self.weights = self._train(self.config.hidden, train, validation, generator, report)

    def _train(
        self,
        hidden: int,
        train: tuple[FloatArray, IntArray],
        validation: tuple[FloatArray, IntArray],
        generator: np.random.Generator,
        report: Report,
    ) -> dict[str, FloatArray]:
        """The weights of the epoch with the smallest log loss of the validation rows."""
        start = initial(train[0].shape[1], [hidden], generator)
        course = epochs(start, train, np.array([self.config.learning_rate]), self.config.batch, generator)
        best, since, selected = np.inf, 0, start
        for epoch, weights in enumerate(islice(course, self.config.epochs), start=1):
            loss = float(log_losses(weights, validation)[0])
            best, since, selected = (loss, 0, weights) if loss < best else (best, since + 1, selected)
            report(epoch, self.config.epochs)
            if since >= self.config.patience:
                break
        return one_of(selected, 0, hidden)

    def _search(
        self,
        train: tuple[FloatArray, IntArray],
        validation: tuple[FloatArray, IntArray],
        generator: np.random.Generator,
        report: Report,
    ) -> dict[str, FloatArray]:
        """The best network of the grid by the area under the curve, then by the log loss."""
        recipes = list(product(grid_sizes(train[0].shape[1]), RATES))
        start = initial(train[0].shape[1], [size for size, _ in recipes], generator)
        rates = np.array([rate for _, rate in recipes])
        best, selected = (-np.inf, -np.inf), {}
        course = epochs(start, train, rates, self.config.batch, generator)
        for epoch, weights in enumerate(islice(course, max(EPOCHS)), start=1):
            report(epoch, max(EPOCHS))
            if epoch not in EPOCHS:
                continue
            losses, found = log_losses(weights, validation), forward(weights, validation[0])[1]
            for place, (size, _) in enumerate(recipes):
                merit = (area_under_curve(validation[1], found[place, :, 1]), -float(losses[place]))
                if merit > best:
                    best, selected = merit, one_of(weights, place, size)
        return selected

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """By the log-odds: the softmax of two outputs is the logistic function of their difference."""
        hidden = vectors @ self.weights["W1"]
        hidden += self.weights["b1"]
        np.maximum(hidden, 0.0, out=hidden)
        (zero, one), (zero_bias, one_bias) = self.weights["W2"].T, self.weights["b2"]
        log_odds = hidden @ (one - zero) + (one_bias - zero_bias)
        found = np.empty((len(vectors), 2))
        found[:, 0], found[:, 1] = expit(-log_odds), expit(log_odds)
        return found

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        hidden = vectors @ self.weights["W1"]
        hidden += self.weights["b1"]
        outgoing = self.weights["W2"][:, 1] - self.weights["W2"][:, 0]
        np.multiply(hidden > 0, outgoing, out=hidden)
        gradient: FloatArray = hidden @ self.weights["W1"].T
        return gradient

    def layers(self) -> Sequence[tuple[FloatArray, FloatArray]]:
        return [(self.weights["W1"], self.weights["b1"]), (self.weights["W2"], self.weights["b2"])]

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return self.weights

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        self.weights = {name: np.asarray(state[name], dtype=np.float64) for name in NAMES}


def from_weights(weights: Mapping[str, np.ndarray[Any, Any]]) -> MLP:
    """The network with the given W1, b1, W2, b2."""
    model = MLP(Config())
    model.weights = {name: np.asarray(weights[name], dtype=np.float64) for name in NAMES}
    return model


def grid_sizes(inputs: int) -> list[int]:
    """1/5, 2/5, ..., 5/5 of twice the inputs plus one, rounded down, as in table A1."""
    return sorted({max(1, (2 * inputs + 1) * share // 5) for share in range(1, 6)})


def check_weights(weights: Mapping[str, FloatArray], data: PreparedDataset, source: str) -> None:
    """Checks the shapes of weights.

    Raises:
        UserError: if the shapes of the weights do not match each other or the columns of the data.
    """
    shapes = {name: weights[name].shape for name in NAMES}
    inputs, hidden = shapes["W1"] if len(shapes["W1"]) == 2 else (-1, -1)
    if shapes != {"W1": (inputs, hidden), "b1": (hidden,), "W2": (hidden, 2), "b2": (2,)}:
        raise UserError(f"{source}: shapes do not match: {shapes}")
    if inputs != data.encoding.width:
        raise UserError(
            f"{source}: is for {inputs} encoded columns, but {data.table.name} has {data.encoding.width}"
        )


def read_weights(path: Path) -> Mapping[str, np.ndarray[Any, Any]]:
    """The arrays of a ``.npz`` or ``.safetensors`` file. Nothing in it is executed.

    Raises:
        UserError: if the file is neither, or lacks one of W1, b1, W2, b2.
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
