"""Training of networks with one hidden layer as in Keras, several networks at once.

P = softmax(relu(x W1 + b1) W2 + b2). Weights are initialised uniformly in +-sqrt(6 / (inputs + outputs)) (Glorot),
biases with 0. The loss is the mean cross entropy of a batch; a step of RMSprop with the defaults of Keras is

    v <- 0.9 v + 0.1 g^2,   w <- w - learning_rate g / sqrt(v + 1e-7).

K networks that differ in size and learning rate see the same batches. Their weights are stacked, and narrower ones
are padded with neurons of weight 0, whose gradients are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.special import softmax

from cfbench_tabular.table import FloatArray, IntArray

Weights = Mapping[str, FloatArray]
"""Of K networks: W1 (K, d, h), b1 (K, 1, h), W2 (K, h, 2), b2 (K, 1, 2)."""

NAMES = ("W1", "b1", "W2", "b2")
DECAY = 0.9
EPSILON = 1e-7


def initial(inputs: int, sizes: Sequence[int], generator: np.random.Generator) -> dict[str, FloatArray]:
    """K untrained networks with ``sizes`` (K) hidden neurons."""
    count, widest = len(sizes), max(sizes)
    first, last = np.zeros((count, inputs, widest)), np.zeros((count, widest, 2))
    for place, size in enumerate(sizes):
        bound = np.sqrt(6.0 / (inputs + size))
        first[place, :, :size] = generator.uniform(-bound, bound, (inputs, size))
        bound = np.sqrt(6.0 / (size + 2))
        last[place, :size] = generator.uniform(-bound, bound, (size, 2))
    return {"W1": first, "b1": np.zeros((count, 1, widest)), "W2": last, "b2": np.zeros((count, 1, 2))}


def forward(weights: Weights, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(K, n, h) the activations of the hidden neurons for rows (n, d), and (K, n, 2) the probabilities."""
    hidden = np.maximum(vectors @ weights["W1"] + weights["b1"], 0.0)
    found: FloatArray = softmax(hidden @ weights["W2"] + weights["b2"], axis=-1)
    return hidden, found


def gradients(weights: Weights, vectors: FloatArray, labels: IntArray) -> dict[str, FloatArray]:
    """Of the mean cross entropy of the rows (n, d) with ``labels`` (n,), for each network."""
    hidden, error = forward(weights, vectors)
    error[:, np.arange(len(labels)), labels] -= 1.0
    error /= len(labels)
    back = (error @ weights["W2"].transpose(0, 2, 1)) * (hidden > 0)
    return {
        "W1": vectors.T @ back,
        "b1": back.sum(axis=1, keepdims=True),
        "W2": hidden.transpose(0, 2, 1) @ error,
        "b2": error.sum(axis=1, keepdims=True),
    }


def epochs(
    weights: Weights,
    sample: tuple[FloatArray, IntArray],
    rates: FloatArray,
    batch: int,
    generator: np.random.Generator,
) -> Iterator[dict[str, FloatArray]]:
    """The weights after one epoch, two, ... of RMSprop with ``rates`` (K,), indefinitely.

    Each yielded dictionary is a copy.
    """
    vectors, labels = sample
    now = {name: weights[name].copy() for name in NAMES}
    squares = {name: np.zeros_like(array) for name, array in now.items()}
    step = np.asarray(rates)[:, None, None]
    while True:
        order = generator.permutation(len(labels))
        for start in range(0, len(labels), batch):
            rows = order[start : start + batch]
            for name, slope in gradients(now, vectors[rows], labels[rows]).items():
                squares[name] *= DECAY
                squares[name] += (1.0 - DECAY) * slope**2
                now[name] -= step * slope / np.sqrt(squares[name] + EPSILON)
        yield {name: array.copy() for name, array in now.items()}


def log_losses(weights: Weights, sample: tuple[FloatArray, IntArray]) -> FloatArray:
    """(K,) mean cross entropy of the rows."""
    vectors, labels = sample
    right = forward(weights, vectors)[1][:, np.arange(len(labels)), labels]
    losses: FloatArray = -np.log(np.maximum(right, 1e-15)).mean(axis=1)
    return losses


def one_of(weights: Weights, place: int, size: int) -> dict[str, FloatArray]:
    """W1 (d, size), b1 (size,), W2 (size, 2), b2 (2,) of one network, without padding."""
    return {
        "W1": weights["W1"][place, :, :size].copy(),
        "b1": weights["b1"][place, 0, :size].copy(),
        "W2": weights["W2"][place, :size].copy(),
        "b2": weights["b2"][place, 0].copy(),
    }
