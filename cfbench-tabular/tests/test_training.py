"""Training of networks: the gradient, the step, the start, and that networks do not touch each other."""

from itertools import islice

import numpy as np
import pytest

from cfbench_tabular.classifiers.training import (
    NAMES,
    epochs,
    forward,
    gradients,
    initial,
    log_losses,
    one_of,
)


@pytest.fixture
def case():
    draw = np.random.default_rng(0)
    weights = initial(3, [2, 5], draw)
    weights = {
        name: array + 0.1 * draw.normal(size=array.shape) * (array != 0) for name, array in weights.items()
    }
    return weights, draw.normal(size=(8, 3)), draw.integers(2, size=8)


def test_a_step_by_hand():
    """One row x = 1 of class 1, one neuron, all weights 1 and -1: p = softmax(1, -1)."""
    weights = {
        "W1": np.ones((1, 1, 1)),
        "b1": np.zeros((1, 1, 1)),
        "W2": np.array([[[1.0, -1.0]]]),
        "b2": np.zeros((1, 1, 2)),
    }
    p = 1 / (1 + np.exp(-2.0))  # of class 0; the error is (p, -p)
    sample = (np.array([[1.0]]), np.array([1]))
    after = next(epochs(weights, sample, np.array([0.01]), 32, np.random.default_rng(0)))
    moved = 0.01 / np.sqrt(0.1)  # of every weight with a gradient far above the epsilon
    assert after["W2"][0, 0].tolist() == pytest.approx([1.0 - moved, -1.0 + moved], abs=1e-7)
    assert after["b2"][0, 0].tolist() == pytest.approx([-moved, moved], abs=1e-7)
    assert after["W1"].item() == pytest.approx(1.0 - 0.01 * 2 * p / np.sqrt(0.1 * (2 * p) ** 2 + 1e-7))
    assert weights["W1"].item() == 1.0


def test_the_gradients_are_those_of_finite_differences(case):
    weights, vectors, labels = case
    found, step = gradients(weights, vectors, labels), 1e-6
    for name in NAMES:
        for place in np.ndindex(weights[name].shape):
            near = [dict(weights), dict(weights)]
            for side, sign in enumerate((1, -1)):
                near[side][name] = weights[name].copy()
                near[side][name][place] += sign * step
            up, down = (log_losses(moved, (vectors, labels)) for moved in near)
            slope = (up - down) / (2 * step)
            assert found[name][place] == pytest.approx(slope[place[0]], abs=1e-7)
            other = 1 - place[0]
            assert slope[other] == 0.0, "a weight of one network moves the other"


def test_twenty_steps_agree_with_autograd_and_keras_rule(case):
    torch = pytest.importorskip("torch")
    weights, vectors, labels = case
    course = epochs(weights, (vectors, labels), np.array([1e-3, 1e-2]), 8, np.random.default_rng(0))
    ours = one_of(next(islice(course, 19, 20)), 1, 5)
    own = one_of(weights, 1, 5)
    theirs = [torch.tensor(own[name], requires_grad=True) for name in NAMES]
    squares = [torch.zeros_like(tensor) for tensor in theirs]
    x, y = torch.tensor(vectors), torch.tensor(labels)
    for _ in range(20):
        hidden = torch.relu(x @ theirs[0] + theirs[1])
        loss = torch.nn.functional.cross_entropy(hidden @ theirs[2] + theirs[3], y)
        with torch.no_grad():
            for tensor, square, slope in zip(theirs, squares, torch.autograd.grad(loss, theirs), strict=True):
                square.mul_(0.9).add_(0.1 * slope**2)
                tensor.sub_(1e-2 * slope / torch.sqrt(square + 1e-7))
    for name, tensor in zip(NAMES, theirs, strict=True):
        assert np.allclose(ours[name], tensor.detach().numpy(), rtol=0, atol=1e-9), name


def test_the_start_is_glorots_and_padding_stays_nothing(case):
    start = initial(100, [1, 400], np.random.default_rng(1))
    bound = np.sqrt(6 / 500)
    assert np.abs(start["W1"][1]).max() == pytest.approx(bound, rel=1e-2)
    assert start["W1"][1].std() == pytest.approx(bound / np.sqrt(3), rel=1e-2)
    assert not start["b1"].any() and not start["b2"].any()
    weights, vectors, labels = initial(3, [2, 5], np.random.default_rng(0)), *case[1:]
    course = epochs(weights, (vectors, labels), np.array([0.1, 0.1]), 3, np.random.default_rng(0))
    trained = next(islice(course, 30, 31))
    assert not trained["W1"][0, :, 2:].any() and not trained["W2"][0, 2:].any()
    alone = one_of(trained, 0, 2)
    stacked = {name: array[None] if name[0] == "W" else array[None, None] for name, array in alone.items()}
    assert np.allclose(forward(stacked, vectors)[1][0], forward(trained, vectors)[1][0], atol=1e-12)


def test_rates_are_those_of_each_network(case):
    weights, vectors, labels = case
    after = next(epochs(weights, (vectors, labels), np.array([0.0, 0.01]), 32, np.random.default_rng(0)))
    assert all(np.array_equal(after[name][0], weights[name][0]) for name in NAMES)
    assert not np.array_equal(after["W1"][1], weights["W1"][1])
