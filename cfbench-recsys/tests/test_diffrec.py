"""DiffRec: its schedule and formulas by hand, inference written out step by step, and what training learns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.recommenders.diffrec import Config, DiffRec, Schedule, embed
from cfbench_recsys.testing.world import split, without_validation


def random_model(items: int, seed: int, **options: Any) -> tuple[DiffRec, dict[str, np.ndarray]]:
    config = Config(hidden=4, device="cpu", **options)
    draw, width = np.random.default_rng(seed), config.embedding
    state = {
        "step.weight": draw.normal(size=(width, width)),
        "step.bias": draw.normal(size=width),
        "input.weight": draw.normal(size=(4, items)),
        "input.step_weight": draw.normal(size=(4, width)),
        "input.bias": draw.normal(size=4),
        "output.weight": draw.normal(size=(items, 4)),
        "output.bias": draw.normal(size=items),
    }
    model = DiffRec(config)
    model.load_state(state, sparse.csr_matrix((1, items)))
    return model, state


def trained(seed: str, **options: Any) -> dict[str, np.ndarray]:
    model = DiffRec(Config(hidden=6, epochs=3, device="cpu", **options))
    model.fit(without_validation(split().train), lambda *names: generator(seed, *names))
    return model.state()


# The schedule


def test_three_steps_by_hand() -> None:
    """Variances 0.5 * (0.1, 0.2, 0.3)."""
    schedule = Schedule.linear_variance(3, 0.5, 0.1, 0.3)
    np.testing.assert_allclose(schedule.signal, [1.0, 0.95, 0.90, 0.85], rtol=1e-15)
    weights = schedule.loss_weights()
    assert weights[1] == 1.0
    np.testing.assert_allclose(weights[2], (0.95 / 0.05 - 0.90 / 0.10) / 2, rtol=1e-12)
    np.testing.assert_allclose(weights[3], (0.90 / 0.10 - 0.85 / 0.15) / 2, rtol=1e-12)


schedules = st.tuples(
    st.integers(1, 12), st.floats(1e-3, 1.0), st.floats(1e-3, 0.4), st.floats(0.0, 0.5)
).map(lambda given: (given[0], given[1], given[2], given[2] + given[3]))


@settings(deadline=None)
@given(schedules)
def test_the_schedule_is_that_of_the_paper_in_plain_loops(options: tuple[int, float, float, float]) -> None:
    """abar_t as a product of alphas, the posterior by completing the square of two normal densities.

    q(x_{t-1} | x_t, x_0) is proportional to N(x_t; sqrt(alpha_t) x_{t-1}, 1 - alpha_t) and
    N(x_{t-1}; sqrt(abar_{t-1}) x_0, 1 - abar_{t-1}): precisions add, and weigh the means.
    """
    steps, scale, low, high = options
    schedule = Schedule.linear_variance(*options)
    of_noised, of_start = schedule.posterior()
    product = 1.0
    for t in range(1, steps + 1):
        share = (t - 1) / (steps - 1) if steps > 1 else 0.0
        variance = scale * (low + share * (high - low))
        assert schedule.signal[t] == pytest.approx(1 - variance, rel=1e-12)
        alpha = (1 - variance) / product
        if t == 1:  # x_0 is known exactly
            assert (of_noised[t], of_start[t]) == (0.0, pytest.approx(1.0, rel=1e-12))
        elif alpha < 1:
            from_noised = alpha / (1 - alpha)
            from_start = 1 / (1 - product)
            mean_noised = from_noised / math.sqrt(alpha) / (from_noised + from_start)
            mean_start = from_start * math.sqrt(product) / (from_noised + from_start)
            assert of_noised[t] == pytest.approx(mean_noised, rel=1e-6, abs=1e-9)
            assert of_start[t] == pytest.approx(mean_start, rel=1e-6, abs=1e-9)
        product *= alpha
    assert product == pytest.approx(1 - scale * (high if steps > 1 else low), rel=1e-9)


def test_noised_profiles_have_the_mean_and_variance_of_the_forward_process() -> None:
    schedule = Schedule.linear_variance(4, 1.0, 0.1, 0.7)
    profile, draws = np.array([1.0, 0.0]), 40_000
    noise = np.random.default_rng(0).normal(size=(draws, 2))
    for t, variance in [(1, 0.1), (3, 0.5), (4, 0.7)]:
        noised = schedule.noised(np.tile(profile, (draws, 1)), np.full(draws, t), noise)
        np.testing.assert_allclose(noised.mean(axis=0), math.sqrt(1 - variance) * profile, atol=0.02)
        np.testing.assert_allclose(noised.var(axis=0), variance, atol=0.02)
        np.testing.assert_allclose(
            noised[0], math.sqrt(1 - variance) * profile + math.sqrt(variance) * noise[0]
        )


def test_steps_are_embedded_by_cosines_and_sines() -> None:
    expected = [
        [math.cos(t), math.cos(t / 10000**0.5), math.sin(t), math.sin(t / 10000**0.5), 0.0] for t in range(4)
    ]
    np.testing.assert_allclose(embed(3, 5), expected, atol=1e-15)


# Inference


def literal_scores(profile: np.ndarray, state: dict[str, np.ndarray], config: Config) -> np.ndarray:
    """The reverse process on x_t (items,) itself, one step after the other."""
    steps = config.steps

    def retained(t: int) -> float:
        if t == 0:
            return 1.0
        share = (t - 1) / (steps - 1) if steps > 1 else 0.0
        return 1 - config.noise_scale * (config.noise_min + share * (config.noise_max - config.noise_min))

    def denoise(x: np.ndarray, t: int) -> np.ndarray:
        half = config.embedding // 2
        angles = [t / 10000 ** (i / half) for i in range(half)]
        step = np.array([math.cos(a) for a in angles] + [math.sin(a) for a in angles])
        step = state["step.weight"] @ step + state["step.bias"]
        inner = state["input.weight"] @ x + state["input.step_weight"] @ step + state["input.bias"]
        return state["output.weight"] @ np.tanh(inner) + state["output.bias"]

    x = math.sqrt(retained(config.sampling_steps)) * profile
    for t in range(steps, 0, -1):
        alpha = retained(t) / retained(t - 1)
        of_noised = math.sqrt(alpha) * (1 - retained(t - 1)) / (1 - retained(t))
        of_start = math.sqrt(retained(t - 1)) * (1 - alpha) / (1 - retained(t))
        x = of_noised * x + of_start * denoise(x, t)
    return x


@settings(deadline=None)
@given(
    st.integers(2, 9),
    st.integers(1, 6),
    st.integers(0, 6),
    st.sampled_from([0.01, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_scores_are_those_of_the_reverse_process_step_by_step(
    items: int, steps: int, corrupted: int, scale: float, seed: int
) -> None:
    model, state = random_model(
        items,
        seed,
        steps=steps,
        sampling_steps=min(corrupted, steps),
        noise_scale=scale,
        noise_min=0.05,
        noise_max=0.4,
        embedding=6,
    )
    profiles = np.random.default_rng(seed).integers(0, 2, (4, items)).astype(float)
    expected = [literal_scores(profile, state, model.config) for profile in profiles]
    scores = model.score_profiles(sparse.csr_matrix(profiles))
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    dense = model.score_dense(torch.from_numpy(profiles)).numpy()
    np.testing.assert_allclose(dense, scores, rtol=1e-12, atol=1e-12)


def test_gradients_agree_with_small_changes() -> None:
    model, _ = random_model(5, seed=1, steps=4)
    profiles = torch.rand((3, 5), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(model.score_dense, profiles.requires_grad_())


def test_nothing_is_sampled_when_scoring() -> None:
    model, _ = random_model(5, seed=2)
    profiles = sparse.csr_matrix(np.eye(5))
    torch.manual_seed(0)
    np.random.seed(0)
    once = model.score_profiles(profiles)
    torch.manual_seed(1)
    np.random.seed(1)
    assert np.array_equal(once, model.score_profiles(profiles))


# Training


def test_predictions_approach_the_profiles_that_were_corrupted() -> None:
    """Two kinds of users and nothing left out: what is predicted of each is its profile."""
    train = sparse.csr_matrix(np.kron(np.eye(2), [1.0, 1.0, 1.0])[np.arange(60) % 2])
    model = DiffRec(Config(hidden=8, dropout=0.0, epochs=150, learning_rate=0.01, batch=20, device="cpu"))
    model.fit(without_validation(train), generator)
    np.testing.assert_allclose(model.score_profiles(train[:2]), train[:2].toarray(), atol=0.1)


@pytest.mark.parametrize("options", [{}, {"reweight": False}, {"importance_sampling": False}, {"steps": 1}])
def test_equal_seeds_give_equal_weights_and_others_give_others(options: dict[str, Any]) -> None:
    first, again, other = (trained(seed, **options) for seed in "aab")
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["output.weight"], other["output.weight"])


def test_weights_of_steps_and_their_sampling_matter() -> None:
    ways = [
        trained("a", batch=8, reweight=reweight, importance_sampling=importance)["output.weight"]
        for reweight in (True, False)
        for importance in (True, False)
    ]
    assert all(not np.array_equal(ways[i], ways[j]) for i in range(4) for j in range(i))


def test_each_evaluation_can_be_stored() -> None:
    retained: dict[int, dict[str, np.ndarray]] = {}
    model = DiffRec(Config(hidden=6, epochs=5, eval_every=2, device="cpu"))
    summary = model.fit(
        split(), generator, checkpoint=lambda epoch, quality, state: retained.update({epoch: dict(state())})
    )
    assert sorted(retained) == [2, 4, 5]
    best, state = retained[summary["best_epoch"]], model.state()
    assert all(np.array_equal(state[name], best[name]) for name in state)


def test_users_without_interactions_or_with_all_of_them_do_no_harm() -> None:
    train = np.zeros((4, 3))
    train[1], train[2, 0] = 1.0, 1.0
    model = DiffRec(Config(hidden=4, epochs=3, device="cpu"))
    model.fit(without_validation(sparse.csr_matrix(train)), generator)
    assert np.isfinite(model.score_profiles(sparse.csr_matrix(train))).all()


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UserError, match=r"sampling_steps must be at most steps \(5\), got 6"):
        DiffRec(Config(steps=5, sampling_steps=6))
    with pytest.raises(UserError, match=r"noise_min 0\.2 is above noise_max 0\.1"):
        DiffRec(Config(noise_min=0.2, noise_max=0.1))


def test_weights_of_other_items_or_without_a_part_are_refused_with_their_names() -> None:
    model, state = random_model(5, seed=0)
    with pytest.raises(UserError, match=r"output\.weight must be \(4, 4\), is \(5, 4\)"):
        model.load_state(state, sparse.csr_matrix((1, 4)))
    del state["step.bias"]
    with pytest.raises(UserError, match=r"step\.bias \(10,\) is missing"):
        model.load_state(state, sparse.csr_matrix((1, 5)))
