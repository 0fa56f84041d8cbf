"""MF: by hand, its linearity, the golden weights, and what training may and may not see."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.recommenders.mf import MF, Config
from cfbench_recsys.testing.world import split, without_validation

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CFBENCH_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
GOLDEN = DATA.parent / "reference" / "golden_ml1m_mf" / "two_tower_mf_32.safetensors"

SMALL = Config(dimensions=8, device="cpu")


def random_model(items: int, dimensions: int, seed: int) -> tuple[MF, dict[str, np.ndarray]]:
    draw = np.random.default_rng(seed)
    state = {
        "profile.weight": draw.normal(size=(dimensions, items)).astype(np.float32),
        "profile.bias": draw.normal(size=dimensions).astype(np.float32),
        "item.weight": draw.normal(size=(dimensions, items)).astype(np.float32),
        "item.bias": draw.normal(size=dimensions).astype(np.float32),
    }
    model = MF(Config())
    model.load_state(state, sparse.csr_matrix((1, items)))
    return model, state


def fitted_state(train: sparse.csr_matrix, config: Config) -> dict[str, np.ndarray]:
    model = MF(config)
    model.fit(without_validation(train), generator)
    return model.state()


def test_one_dimension_by_hand() -> None:
    """Profile {0, 2}: (2 + 3) + 1 = 6, times the item embeddings (10, 20, 30) + 5."""
    model = MF(Config())
    state = {
        "profile.weight": np.array([[2.0, 7.0, 3.0]], dtype=np.float32),
        "profile.bias": np.array([1.0], dtype=np.float32),
        "item.weight": np.array([[10.0, 20.0, 30.0]], dtype=np.float32),
        "item.bias": np.array([5.0], dtype=np.float32),
    }
    profile = sparse.csr_matrix([[1.0, 0.0, 1.0]])
    model.load_state(state, profile)
    assert model.score_profiles(profile).tolist() == [[90.0, 150.0, 210.0]]
    assert model.weights(np.array([0, 2]), np.array([1, 1])).tolist() == [50.0, 75.0]


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_the_logit_is_the_empty_profiles_plus_a_sum_of_weights(
    items: int, dimensions: int, seed: int
) -> None:
    model, _ = random_model(items, dimensions, seed)
    profiles = np.random.default_rng(seed).integers(0, 2, (4, items)).astype(float)
    empty = model.score_profiles(sparse.csr_matrix((1, items)))
    rows, columns = np.arange(items)[None, :, None], np.arange(items)[None, None, :]
    contributions = profiles[:, :, None] * model.weights(rows, columns)
    scores = model.score_profiles(sparse.csr_matrix(profiles))
    np.testing.assert_allclose(scores, empty + contributions.sum(axis=1), atol=1e-10)
    assert scores.dtype == np.float64


def test_weights_broadcast_like_numpy_indexing() -> None:
    model, state = random_model(12, 3, seed=1)
    whole = state["profile.weight"].T.astype(float) @ (state["item.weight"] + state["item.bias"][:, None])
    draw = np.random.default_rng(2)
    rows, columns = draw.integers(0, 12, (5, 4, 1)), draw.integers(0, 12, (5, 1, 3))
    np.testing.assert_allclose(model.weights(rows, columns), whole[rows, columns], rtol=1e-5)


def test_gradients_of_dense_profiles_are_the_weights() -> None:
    model, _ = random_model(7, 3, seed=4)
    profiles = torch.full((1, 7), 0.5, dtype=torch.float64, requires_grad=True)
    scores = model.score_dense(profiles)[0]
    gradients = torch.cat([torch.autograd.grad(score, profiles, retain_graph=True)[0] for score in scores])
    items = np.arange(7)
    np.testing.assert_allclose(gradients.T, model.weights(items[:, None], items[None, :]), rtol=1e-12)


def test_logits_are_products_of_the_embeddings() -> None:
    model, _ = random_model(6, 4, seed=3)
    profiles = sparse.csr_matrix(np.eye(6))
    products = model.profile_embeddings(profiles) @ model.item_embeddings().T
    np.testing.assert_allclose(model.score_profiles(profiles), products, rtol=1e-12)


@pytest.mark.skipif(not GOLDEN.is_file(), reason=f"no {GOLDEN.name} in the reference folder")
def test_the_golden_weights_give_the_logits_of_plain_numpy() -> None:
    state = load_file(GOLDEN)
    model = MF(Config(dimensions=32))
    profiles = np.random.default_rng(0).random((50, 3381)) < 0.03
    profiles[0] = False
    model.load_state(state, sparse.csr_matrix(profiles))
    wide = {name: array.astype(np.float64) for name, array in state.items()}
    towers = [wide["profile.weight"][:, row].sum(axis=1) + wide["profile.bias"] for row in profiles]
    expected = np.array(towers) @ (wide["item.weight"] + wide["item.bias"][:, None])
    np.testing.assert_allclose(model.score_profiles(sparse.csr_matrix(profiles)), expected, atol=1e-9)
    assert all(np.array_equal(model.state()[name], state[name]) for name in state)


def test_a_positive_is_not_part_of_its_own_input() -> None:
    """Users with one interaction: it is the positive, so nothing ever enters the user tower.

    Were it left in the input, its column of ``profile.weight`` would be trained to recommend it.
    """
    train = sparse.csr_matrix(np.eye(6)[np.arange(40) % 6])
    early = fitted_state(train, Config(dimensions=4, epochs=1))
    late = fitted_state(train, Config(dimensions=4, epochs=5))
    assert np.array_equal(early["profile.weight"], late["profile.weight"])
    assert not np.array_equal(early["item.weight"], late["item.weight"])


def test_an_item_predicts_its_partner_and_not_itself() -> None:
    """Pairs (0, 1), (2, 3), ...: no user has one without the other."""
    train = sparse.csr_matrix(np.kron(np.eye(5), [1.0, 1.0])[np.arange(60) % 5])
    state = fitted_state(train, Config(dimensions=16, epochs=60))
    model = MF(Config())
    model.load_state(state, train)
    scores = model.score_profiles(sparse.csr_matrix(np.eye(10)))
    scores[np.arange(10), np.arange(10)] = -np.inf
    assert scores.argmax(axis=1).tolist() == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]


def test_equal_seeds_give_equal_weights_and_others_give_others() -> None:
    def state(seed: str) -> dict[str, np.ndarray]:
        model = MF(SMALL)
        model.fit(split(), lambda *names: generator(seed, *names))
        return model.state()

    first, again, other = state("a"), state("a"), state("b")
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["item.weight"], other["item.weight"])


def test_users_without_interactions_or_with_all_of_them_do_no_harm() -> None:
    train = np.zeros((4, 3))
    train[1], train[2, 0] = 1.0, 1.0
    state = fitted_state(sparse.csr_matrix(train), Config(dimensions=2, epochs=3))
    assert all(np.isfinite(array).all() for array in state.values())


def test_a_training_that_diverges_is_reported() -> None:
    with pytest.raises(UserError, match="learning_rate"):
        fitted_state(split().train, Config(learning_rate=1e30, epochs=20))


def test_weights_of_other_items_or_without_a_part_are_refused_with_their_names() -> None:
    model, state = random_model(5, 2, seed=0)
    with pytest.raises(UserError, match=r"item\.weight must be \(2, 4\), is \(2, 5\)"):
        model.load_state(state, sparse.csr_matrix((1, 4)))
    del state["item.bias"]
    with pytest.raises(UserError, match=r"item\.bias \(2,\) is missing"):
        model.load_state(state, sparse.csr_matrix((1, 5)))
