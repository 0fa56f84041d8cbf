"""VAE: by hand, the forward pass and the loss written literally, its gradients, and what it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import check_component
from cfbench_recsys.plugin import cfbench_recommenders
from cfbench_recsys.recommenders.vae import VAE, Config
from cfbench_recsys.testing import checks
from cfbench_recsys.testing.world import split, without_validation

SMALL = Config(hidden=24, dimensions=8, epochs=60, learning_rate=5e-3, device="cpu")


def random_state(items: int, hidden: int, dimensions: int, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)

    def layer(out: int, into: int) -> tuple[np.ndarray, np.ndarray]:
        return draw.normal(size=(out, into)).astype(np.float32), draw.normal(size=out).astype(np.float32)

    layers = {
        "encoder.hidden": layer(hidden, items),
        "encoder.mean": layer(dimensions, hidden),
        "encoder.log_variance": layer(dimensions, hidden),
        "decoder.hidden": layer(hidden, dimensions),
        "decoder.output": layer(items, hidden),
    }
    pairs = [
        (f"{name}.{part}", array)
        for name, both in layers.items()
        for part, array in zip(("weight", "bias"), both, strict=True)
    ]
    return dict(pairs)


def loaded(state: dict[str, np.ndarray]) -> VAE:
    model = VAE(Config(device="cpu"))
    model.load_state(state, sparse.csr_matrix((1, state["decoder.output.bias"].size)))
    return model


def literal_logits(state: dict[str, np.ndarray], profile: np.ndarray) -> np.ndarray:
    """The docstring's formula for one profile, a line for each of its lines."""
    w = {name: array.astype(np.float64) for name, array in state.items()}
    norm = np.sqrt((profile**2).sum()) or 1.0
    e = np.tanh(w["encoder.hidden.weight"] @ (profile / norm) + w["encoder.hidden.bias"])
    mu = w["encoder.mean.weight"] @ e + w["encoder.mean.bias"]
    hidden = np.tanh(w["decoder.hidden.weight"] @ mu + w["decoder.hidden.bias"])
    return w["decoder.output.weight"] @ hidden + w["decoder.output.bias"]


def test_one_unit_by_hand() -> None:
    """Profile {0, 1} has length sqrt 2: e = tanh((3 + 1)/sqrt 2), z = 2 e, s = (1, -1, 0) tanh(z + 1) + 5.

    The log-variance says 100 and must not matter.
    """
    state = {
        "encoder.hidden.weight": [[3.0, 1.0, 7.0]],
        "encoder.hidden.bias": [0.0],
        "encoder.mean.weight": [[2.0]],
        "encoder.mean.bias": [0.0],
        "encoder.log_variance.weight": [[0.0]],
        "encoder.log_variance.bias": [100.0],
        "decoder.hidden.weight": [[1.0]],
        "decoder.hidden.bias": [1.0],
        "decoder.output.weight": [[1.0], [-1.0], [0.0]],
        "decoder.output.bias": [5.0, 5.0, 5.0],
    }
    model = loaded({name: np.array(value, dtype=np.float32) for name, value in state.items()})
    t = np.tanh(2 * np.tanh(4 / np.sqrt(2)) + 1)
    scores = model.score_profiles(sparse.csr_matrix([[1.0, 1.0, 0.0]]))
    np.testing.assert_allclose(scores, [[5 + t, 5 - t, 5]], rtol=1e-15)


def test_the_activation_may_be_the_rectifier() -> None:
    """Of the same unit, with the encoder's bias -10: its rectifier is 0, and z = 0, s = (1, -1) relu(1) = (1, -1)."""
    state = {
        "encoder.hidden.weight": [[3.0, 1.0]],
        "encoder.hidden.bias": [-10.0],
        "encoder.mean.weight": [[2.0]],
        "encoder.mean.bias": [0.0],
        "encoder.log_variance.weight": [[0.0]],
        "encoder.log_variance.bias": [0.0],
        "decoder.hidden.weight": [[1.0]],
        "decoder.hidden.bias": [1.0],
        "decoder.output.weight": [[1.0], [-1.0]],
        "decoder.output.bias": [0.0, 0.0],
    }
    model = VAE(Config(device="cpu", activation="relu"))
    model.load_state({name: np.array(value) for name, value in state.items()}, sparse.csr_matrix((1, 2)))
    np.testing.assert_allclose(model.score_profiles(sparse.csr_matrix([[1.0, 1.0]])), [[1.0, -1.0]])
    dense = torch.ones((1, 2), dtype=torch.float64)
    np.testing.assert_allclose(model.score_dense(dense), [[1.0, -1.0]])


sizes = st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))


@settings(deadline=None, max_examples=40)
@given(sizes, st.integers(0, 70))
def test_scores_are_those_of_the_formula(size: tuple[int, int, int, int], count: int) -> None:
    state = random_state(*size)
    profiles = np.random.default_rng(size[-1]).integers(0, 2, (count, size[0])).astype(float)
    scores = loaded(state).score_profiles(sparse.csr_matrix(profiles))
    expected = [literal_logits(state, profile) for profile in profiles]
    np.testing.assert_allclose(scores, np.reshape(expected, scores.shape), atol=1e-12)
    assert scores.dtype == np.float64


def test_empty_and_full_profiles_have_finite_scores_of_the_formula() -> None:
    state = random_state(7, 5, 3, seed=1)
    profiles = np.array([np.zeros(7), np.ones(7)])
    scores = loaded(state).score_profiles(sparse.csr_matrix(profiles))
    np.testing.assert_allclose(scores, [literal_logits(state, p) for p in profiles], atol=1e-12)
    assert np.isfinite(scores).all()


def test_scores_are_to_the_bit_the_same_in_any_batch() -> None:
    model = loaded(random_state(300, 40, 8, seed=2))
    profiles = sparse.random(150, 300, density=0.05, random_state=0, format="csr")
    profiles.data[:] = 1.0
    together = model.score_profiles(profiles)
    order = np.random.default_rng(1).permutation(150)
    assert np.array_equal(model.score_profiles(profiles[order]), together[order])
    for row in (0, 77, 149):
        assert np.array_equal(model.score_profiles(profiles[row]), together[row : row + 1])


def test_differentiable_scores_are_the_same_and_their_slopes_are_true() -> None:
    state = random_state(8, 6, 3, seed=3)
    model, draw = loaded(state), np.random.default_rng(4)
    binary = draw.integers(0, 2, (5, 8)).astype(float)
    binary[0] = 0.0
    same = model.score_dense(torch.from_numpy(binary))
    assert same.dtype == torch.float64
    np.testing.assert_allclose(same.numpy(), model.score_profiles(sparse.csr_matrix(binary)), atol=1e-12)

    inside = torch.from_numpy(draw.uniform(0.1, 0.9, (3, 8))).requires_grad_()
    np.testing.assert_allclose(
        model.score_dense(inside).detach().numpy(),
        [literal_logits(state, row) for row in inside.detach().numpy()],
        atol=1e-12,
    )
    assert torch.autograd.gradcheck(model.score_dense, inside)
    at_nothing = torch.zeros(1, 8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.score_dense(at_nothing).sum(), at_nothing)
    assert torch.isfinite(gradient).all()


def test_logits_are_products_of_the_embeddings() -> None:
    model = loaded(random_state(9, 5, 3, seed=5))
    profiles = sparse.csr_matrix(np.eye(9))
    products = model.profile_embeddings(profiles) @ model.item_embeddings().T
    np.testing.assert_allclose(model.score_profiles(profiles), products, atol=1e-12)


def literal_loss(
    state: dict[str, np.ndarray], profiles: np.ndarray, noise: float, beta: float, scale: float
) -> float:
    """Mean over the users of minus (multinomial log-likelihood - beta KL); the KL by its integral.

    KL(N(mu, v) | N(0, 1)) is integrated numerically, so no formula for it is repeated here.
    """
    w = {name: array.astype(np.float64) for name, array in state.items()}
    total = 0.0
    for profile in profiles:
        x = scale * profile / np.linalg.norm(profile)
        e = np.tanh(w["encoder.hidden.weight"] @ x + w["encoder.hidden.bias"])
        mu = w["encoder.mean.weight"] @ e + w["encoder.mean.bias"]
        variance = np.exp(w["encoder.log_variance.weight"] @ e + w["encoder.log_variance.bias"])
        z = mu + np.sqrt(variance) * noise
        hidden = np.tanh(w["decoder.hidden.weight"] @ z + w["decoder.hidden.bias"])
        logits = w["decoder.output.weight"] @ hidden + w["decoder.output.bias"]
        probabilities = np.exp(logits) / np.exp(logits).sum()
        likelihood = np.log(probabilities[profile > 0]).sum()
        divergence = sum(integrated_kl(m, v) for m, v in zip(mu, variance, strict=True))
        total += beta * divergence - likelihood
    return total / len(profiles)


def integrated_kl(mean: float, variance: float) -> float:
    x, step = np.linspace(mean - 12 * np.sqrt(variance), mean + 12 * np.sqrt(variance), 20001, retstep=True)
    log_p = -((x - mean) ** 2) / (2 * variance) - 0.5 * np.log(2 * np.pi * variance)
    log_q = -(x**2) / 2 - 0.5 * np.log(2 * np.pi)
    return float((np.exp(log_p) * (log_p - log_q)).sum() * step)


class Unrandom:
    """A stream whose normal numbers are all the same, and with which nothing is dropped; else as any."""

    def __init__(self, noise: float) -> None:
        self.noise, self.draw = noise, np.random.default_rng(0)

    def standard_normal(self, shape: Any, dtype: Any) -> np.ndarray:
        return np.full(shape, self.noise, dtype=dtype)

    def random(self, size: Any, dtype: Any) -> np.ndarray:
        drawn: np.ndarray = self.draw.random(size, dtype=dtype)
        return (
            drawn if isinstance(size, tuple) else np.full_like(drawn, 0.99)
        )  # a tuple: weights at the start

    def __getattr__(self, name: str) -> Any:
        return getattr(self.draw, name)


@pytest.mark.parametrize(
    ("beta", "noise", "dropout"), [(0.0, 0.0, 0.0), (0.7, 0.0, 0.0), (0.7, -1.3, 0.0), (0.7, -1.3, 0.6)]
)
def test_the_loss_of_a_tiny_case_is_the_evidence_bound_by_hand(
    beta: float, noise: float, dropout: float
) -> None:
    """A step that changes nothing (a learning rate of nearly 0): its loss is reported.

    What dropout leaves, here everything, is scaled up as if the rest had been dropped.
    """
    profiles = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    config = Config(
        hidden=3, dimensions=2, dropout=dropout, beta=beta, anneal_epochs=0, epochs=1, learning_rate=1e-12
    )
    model = VAE(config)
    data = without_validation(sparse.csr_matrix(profiles))
    summary = model.fit(data, lambda *names: Unrandom(noise))  # type: ignore[arg-type, return-value]
    expected = literal_loss(model.state(), profiles, noise, beta, 1 / (1 - dropout))
    assert summary["history"][0]["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_divergence_counts_more_from_epoch_to_epoch_up_to_its_weight() -> None:
    """A batch an epoch and weights that stand still: what beta_t adds to the loss is beta * t / 4, t = 0.."""
    train = split().train

    def losses(beta: float) -> np.ndarray:
        config = Config(
            hidden=4, dimensions=2, dropout=0.0, beta=beta, anneal_epochs=4, epochs=7, learning_rate=1e-12
        )
        summary = VAE(config).fit(without_validation(train), lambda *names: Unrandom(0.5))  # type: ignore[arg-type, return-value]
        return np.array([look["loss"] for look in summary_of(summary)])

    def summary_of(summary: dict[str, Any]) -> list[dict[str, float]]:
        evaluations: list[dict[str, float]] = summary["history"]
        return evaluations

    added = losses(8.0) - losses(0.0)
    np.testing.assert_allclose(added / added[-1], [0, 0.25, 0.5, 0.75, 1, 1, 1], atol=1e-4)


def test_the_input_is_dropped_in_training_and_never_in_scoring() -> None:
    """With everything but a hair dropped, training never sees what the first weight could learn from."""
    train = split().train
    config = Config(hidden=4, dimensions=2, dropout=1 - 1e-7, epochs=1)
    early = fitted(train, config)
    late = fitted(train, Config(hidden=4, dimensions=2, dropout=1 - 1e-7, epochs=4))
    assert np.array_equal(early.state()["encoder.hidden.weight"], late.state()["encoder.hidden.weight"])
    assert not np.array_equal(early.state()["decoder.output.weight"], late.state()["decoder.output.weight"])
    assert len(np.unique(late.score_profiles(train), axis=0)) > 10


def fitted(train: sparse.csr_matrix, config: Config) -> VAE:
    model = VAE(config)
    model.fit(without_validation(train), generator)
    return model


def test_equal_seeds_give_equal_weights_and_others_give_others() -> None:
    def state(seed: str) -> dict[str, np.ndarray]:
        model = VAE(Config(hidden=6, dimensions=3, epochs=3, device="cpu"))
        model.fit(split(), lambda *names: generator(seed, *names))
        return model.state()

    first, again, other = state("a"), state("a"), state("b")
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["encoder.mean.weight"], other["encoder.mean.weight"])


def test_users_without_interactions_or_with_all_of_them_do_no_harm() -> None:
    train = np.zeros((4, 3))
    train[1], train[2, 0] = 1.0, 1.0
    state = fitted(sparse.csr_matrix(train), Config(hidden=4, dimensions=2, epochs=3)).state()
    assert all(np.isfinite(array).all() for array in state.values())


def test_a_training_that_diverges_is_reported() -> None:
    with pytest.raises(UserError, match="learning_rate"):
        fitted(split().train, Config(hidden=4, dimensions=2, learning_rate=1e30, epochs=20))


def test_weights_of_other_items_or_without_a_part_are_refused_with_their_names() -> None:
    state = random_state(5, 3, 2, seed=0)
    with pytest.raises(UserError, match=r"decoder\.output\.bias must be \(4,\), is \(5,\)"):
        VAE(Config()).load_state(state, sparse.csr_matrix((1, 4)))
    del state["encoder.mean.bias"]
    with pytest.raises(UserError, match=r"encoder\.mean\.bias \(2,\) is missing"):
        VAE(Config(dimensions=2)).load_state(state, sparse.csr_matrix((1, 5)))


def test_it_passes_the_conformance_kit() -> None:
    (spec,) = [one for one in cfbench_recommenders() if one.id == "recsys/recommender/vae"]
    report = check_component(spec, options=SMALL, checks=checks["recommender"])
    assert report.passed, str(report)
