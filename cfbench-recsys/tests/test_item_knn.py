"""ItemKNN: by hand, against the formulas written out pair by pair, and its choice on validation data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.quality import evaluate
from cfbench_recsys.recommenders import item_knn
from cfbench_recsys.recommenders.item_knn import NEIGHBOURS, SHRINKS, Config, ItemKNN
from cfbench_recsys.splits import Holdout, Split
from cfbench_recsys.testing.world import split


def fitted(interactions: Any, **options: Any) -> ItemKNN:
    train = sparse.csr_matrix(np.asarray(interactions, dtype=float))
    nothing = sparse.csr_matrix((0, train.shape[1]))
    no_users = Holdout(np.empty(0, dtype=np.int64), nothing, nothing)
    model = ItemKNN(Config(**options))
    model.fit(Split(train, train, no_users, no_users, np.arange(train.shape[0])), generator)
    return model


def all_weights(model: ItemKNN, items: int) -> np.ndarray:
    return model.weights(np.arange(items)[:, None], np.arange(items)[None, :])


def literal_weights(x: np.ndarray, similarity: str, neighbours: int, shrink: float) -> np.ndarray:
    """W as the docstring has it, with sets of users and sorted lists."""
    items = x.shape[1]
    users = [set(np.flatnonzero(x[:, item])) for item in range(items)]

    def sim(i: int, j: int) -> float:
        both = len(users[i] & users[j])
        if not both:
            return 0.0
        if similarity == "cosine":
            return both / (math.sqrt(len(users[i]) * len(users[j])) + shrink)
        return both / (len(users[i] | users[j]) + shrink)

    weight = np.zeros((items, items))
    for j in range(items):
        others = sorted((i for i in range(items) if i != j), key=lambda i: (-sim(i, j), i))
        for i in others[:neighbours]:
            weight[i, j] = sim(i, j)
    return weight


def test_three_items_by_hand() -> None:
    """Item 0 has users {0, 1}, item 1 {0, 1, 2, 3}, item 2 {3}: cosines 2 / sqrt(8), 0 and 1 / 2."""
    x = [[1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1]]
    root = 2 / math.sqrt(8)
    two = all_weights(fitted(x, neighbours=2, shrink=0.0), 3)
    np.testing.assert_allclose(two, [[0, root, 0], [root, 0, 0.5], [0, 0.5, 0]], rtol=1e-15)
    one = all_weights(fitted(x, neighbours=1, shrink=0.0), 3)
    np.testing.assert_allclose(one, [[0, root, 0], [root, 0, 0.5], [0, 0, 0]], rtol=1e-15)
    shrunk = fitted(x, neighbours=1, shrink=2.0, similarity="jaccard")
    assert shrunk.weights(np.array([0]), np.array([1])).tolist() == [2 / (4 + 2)]


binary = arrays(
    np.float64, st.tuples(st.integers(1, 8), st.integers(1, 7)), elements=st.sampled_from([0.0, 1.0])
)


@settings(deadline=None)
@given(binary, st.sampled_from(["cosine", "jaccard"]), st.integers(1, 8), st.sampled_from([0.0, 0.5, 20.0]))
def test_weights_are_those_of_sets_of_users(
    x: np.ndarray, similarity: str, neighbours: int, shrink: float
) -> None:
    model = fitted(x, similarity=similarity, neighbours=neighbours, shrink=shrink)
    expected = literal_weights(x, similarity, neighbours, shrink)
    np.testing.assert_allclose(all_weights(model, x.shape[1]), expected, rtol=1e-14)
    scores = model.score_profiles(sparse.csr_matrix(x))
    np.testing.assert_allclose(scores, x @ expected, atol=1e-12)
    dense = model.score_dense(torch.from_numpy(x))
    assert dense.dtype == torch.float64
    np.testing.assert_allclose(dense.numpy(), scores, atol=1e-12)


def test_more_items_than_one_block_holds() -> None:
    x = (np.random.default_rng(0).random((40, item_knn.BLOCK + 30)) < 0.1).astype(float)
    model = fitted(x, neighbours=7, shrink=3.0)
    expected = literal_weights(x, "cosine", 7, 3.0)
    np.testing.assert_allclose(all_weights(model, x.shape[1]), expected, rtol=1e-14)
    assert ((expected > 0).sum(axis=0) <= 7).all()


def test_an_item_is_recommended_for_its_neighbours_and_not_for_whose_neighbour_it_is() -> None:
    """Item 0 goes with everything, item 3 only with item 0: with one neighbour each, 3 needs 0, not 0 needs 3."""
    x = [[1, 1, 1, 0]] * 3 + [[1, 1, 1, 1]] + [[0, 1, 1, 0]] * 2 + [[1, 0, 0, 1]]
    weight = all_weights(fitted(x, neighbours=1, shrink=0.0), 4)
    assert weight[0, 3] > 0
    assert weight[3, 0] == 0


def test_gradients_are_the_weights() -> None:
    x = (np.random.default_rng(1).random((30, 9)) < 0.4).astype(float)
    model = fitted(x, neighbours=3, shrink=1.0)
    profile = torch.full((1, 9), 0.5, dtype=torch.float64, requires_grad=True)
    rows = [torch.autograd.grad(model.score_dense(profile)[0, item], profile)[0] for item in range(9)]
    np.testing.assert_allclose(torch.cat(rows).numpy().T, all_weights(model, 9), rtol=1e-14)


def test_weights_broadcast_like_numpy_indexing() -> None:
    x = (np.random.default_rng(2).random((30, 9)) < 0.4).astype(float)
    model = fitted(x, neighbours=4, shrink=0.0)
    draw = np.random.default_rng(3)
    rows, columns = draw.integers(0, 9, (5, 4, 1)), draw.integers(0, 9, (5, 1, 3))
    assert np.array_equal(model.weights(rows, columns), all_weights(model, 9)[rows, columns])
    assert model.weights(np.empty((0, 1), dtype=np.int64), np.array([[1, 2]])).shape == (0, 2)


def test_neighbours_and_shrink_are_chosen_by_ndcg_on_validation() -> None:
    data = split()
    model = ItemKNN(Config())
    summary = model.fit(data, generator)
    ndcg = {}
    for shrink in SHRINKS:
        for neighbours in NEIGHBOURS:
            candidate = ItemKNN(Config(neighbours=neighbours, shrink=shrink))
            candidate.fit(data, generator)
            ndcg[neighbours, shrink] = evaluate(candidate, data.validation, data.profiles)["NDCG@10"]
    best = max(ndcg, key=lambda choice: ndcg[choice])
    assert (summary["neighbours"], summary["shrink"]) == best
    assert summary["validation"] == evaluate(model, data.validation, data.profiles)
    assert len({round(value, 6) for value in ndcg.values()}) > 1


def test_given_options_are_not_searched() -> None:
    data = split()
    summary = ItemKNN(Config(shrink=7.0)).fit(data, generator)
    assert [(look["neighbours"], look["shrink"]) for look in summary["history"]] == [
        (n, 7.0) for n in NEIGHBOURS
    ]


def test_a_loaded_model_scores_as_the_fitted_one() -> None:
    data = split()
    model, loaded = ItemKNN(Config(neighbours=5)), ItemKNN(Config())
    model.fit(data, generator)
    loaded.load_state(model.state(), data.profiles)
    assert np.array_equal(model.score_profiles(data.profiles), loaded.score_profiles(data.profiles))


def test_items_without_users_and_users_without_items_are_handled() -> None:
    model = fitted([[0, 0, 0], [1, 0, 1]], neighbours=2, shrink=0.0)
    assert model.score_profiles(sparse.csr_matrix((1, 3))).tolist() == [[0.0, 0.0, 0.0]]
    assert model.state()["neighbours"].tolist() == [[2, -1], [-1, -1], [0, -1]]


def test_weights_of_other_items_are_refused() -> None:
    model = fitted(np.eye(4), neighbours=2, shrink=0.0)
    with pytest.raises(UserError, match=r"neighbours must be \(3, 2\), is \(4, 2\)"):
        model.load_state(model.state(), sparse.csr_matrix((1, 3)))
    state = {"neighbours": np.full((4, 2), 9), "similarity": np.ones((4, 2))}
    for neighbours in (state["neighbours"], np.full((4, 2), 0.5)):
        with pytest.raises(UserError, match=r"neighbours must be items 0\.\.3"):
            model.load_state({**state, "neighbours": neighbours}, sparse.csr_matrix((1, 4)))
