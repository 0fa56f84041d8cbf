"""LightGCN: by hand, and against the dense graph rebuilt for every edit.

What holds for every graph recommender is in ``test_graph_recommenders.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.recommenders.lightgcn import Config, LightGCN
from cfbench_recsys.testing.world import split

TIGHT = {"rtol": 1e-11, "atol": 1e-12}
Edit = tuple[int, dict[tuple[int, int], int]]
"""The scored user, and what happens to which edge."""


def model_of(graph: Any, layers: int, seed: int = 0, dimensions: int = 3) -> LightGCN:
    """Untrained, with random embeddings."""
    interactions = sparse.csr_matrix(np.asarray(graph, dtype=float))
    draw = np.random.default_rng(seed)
    users, items = interactions.shape
    model = LightGCN(Config(layers=layers, device="cpu"))
    state = {
        USERS: draw.normal(size=(users, dimensions)).astype(np.float32),
        ITEMS: draw.normal(size=(items, dimensions)).astype(np.float32),
    }
    model.load_state(state, interactions)
    return model


def packed(edits: list[Edit]) -> Edits:
    rows = [(b, *edge, op) for b, (_, edges) in enumerate(edits) for edge, op in edges.items()]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    users = np.array([user for user, _ in edits], dtype=np.int64)
    return Edits(users, columns[0], columns[1], columns[2], columns[3].astype(np.int8))


def dense_scores(model: LightGCN, weights: np.ndarray, user: int) -> np.ndarray:
    """F_user . F_items with F the mean of E, Ã E, Ã² E, ..., Ã the whole matrix over users and items."""
    users, items = weights.shape
    adjacency = np.zeros((users + items, users + items))
    adjacency[:users, users:] = weights
    adjacency += adjacency.T
    degrees = adjacency.sum(axis=1)
    roots = np.array([degree**-0.5 if degree > 0 else 0.0 for degree in degrees])
    step = np.diag(roots) @ adjacency @ np.diag(roots)
    layer = np.vstack([model.state()[USERS], model.state()[ITEMS]]).astype(float)
    layers = [layer]
    for _ in range(model.config.layers):
        layer = step @ layer
        layers.append(layer)
    final = np.mean(layers, axis=0)
    return final[users:] @ final[user]


def after(graph: np.ndarray, edit: Edit) -> np.ndarray:
    edited = np.array(graph, dtype=float)
    for edge, op in edit[1].items():
        edited[edge] = 1.0 if op == ADD else 0.0
    return edited


def test_one_layer_by_hand() -> None:
    """Users 0: {0, 1}, 1: {1}. Degrees 2, 1 and 1, 2; one number for each node.

    F_user0 = (1 + 10/sqrt(2) + 100/2) / 2, F_item0 = (10 + 1/sqrt(2)) / 2.
    Without the edge (0, 1): F_user0 = (1 + 10) / 2, F_item0 = (10 + 1) / 2.
    """
    model = LightGCN(Config(layers=1))
    state = {
        USERS: np.array([[1.0], [2.0]], dtype=np.float32),
        ITEMS: np.array([[10.0], [100.0]], dtype=np.float32),
    }
    model.load_state(state, sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]]))
    whole = (1 + 10 / 2**0.5 + 100 / 2) / 2 * (10 + 1 / 2**0.5) / 2
    scores = model.score_edits(packed([(0, {}), (0, {(0, 1): REMOVE})]))
    assert scores[0, 0] == pytest.approx(whole, rel=1e-12)
    assert scores[1, 0] == pytest.approx((1 + 10) / 2 * (10 + 1) / 2, rel=1e-12)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[np.ndarray, int, list[Edit]]:
    users, items = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    cells = st.lists(st.sampled_from([0.0, 1.0]), min_size=users * items, max_size=users * items)
    edges = st.tuples(st.integers(0, users - 1), st.integers(0, items - 1))
    edit = st.tuples(
        st.integers(0, users - 1),
        st.dictionaries(edges, st.sampled_from([REMOVE, ADD]), max_size=users * items),
    )
    graph = np.array(draw(cells)).reshape(users, items)
    return graph, draw(st.integers(1, 4)), draw(st.lists(edit, min_size=1, max_size=5))


@settings(deadline=None, max_examples=200)
@given(worlds())
def test_an_edit_scores_as_the_graph_rebuilt(world: tuple[np.ndarray, int, list[Edit]]) -> None:
    """Removals and additions, anybody's edges, isolated nodes, edits that change nothing."""
    graph, layers, edits = world
    model = model_of(graph, layers)
    scores = model.score_edits(packed(edits))
    assert scores.dtype == np.float64
    expected = [dense_scores(model, after(graph, edit), edit[0]) for edit in edits]
    np.testing.assert_allclose(scores, expected, **TIGHT)


@settings(deadline=None, max_examples=50)
@given(worlds(), st.integers(0, 2**32 - 1))
def test_fractional_weights_score_as_the_weighted_graph(
    world: tuple[np.ndarray, int, list[Edit]], seed: int
) -> None:
    """Edges named twice add up."""
    graph, layers, edits = world
    model, packed_edits = model_of(graph, layers), packed(edits)
    delta = np.random.default_rng(seed).uniform(-0.9, 0.9, len(packed_edits.rows))
    weighted = [graph.copy() for _ in edits]
    for row, user, item, change in zip(
        packed_edits.rows, packed_edits.edge_users, packed_edits.edge_items, delta, strict=True
    ):
        weighted[row][user, item] += change
    arrays = (packed_edits.users, packed_edits.rows, packed_edits.edge_users, packed_edits.edge_items, delta)
    scores = model.score_weighted(*map(torch.from_numpy, arrays)).numpy()
    expected = [dense_scores(model, w, user) for w, (user, _) in zip(weighted, edits, strict=True)]
    far_from_isolated = [bool((np.abs(np.r_[w.sum(0), w.sum(1)]) > 1e-6).all()) for w in weighted]
    for row in np.flatnonzero(far_from_isolated):
        np.testing.assert_allclose(scores[row], expected[row], rtol=1e-8, atol=1e-8)


def test_the_untouched_graph_scores_as_the_final_embeddings() -> None:
    graph = (np.random.default_rng(5).random((6, 9)) < 0.4).astype(float)
    model = model_of(graph, layers=3)
    expected = model.user_embeddings() @ model.item_embeddings().T
    np.testing.assert_allclose(model.score_edits(Edits.nothing(np.arange(6))), expected, **TIGHT)
    everything = np.nonzero(np.ones_like(graph))
    rows = torch.zeros(graph.size, dtype=torch.int64)
    retained = model.score_weighted(
        torch.tensor([2]),
        rows,
        *map(torch.from_numpy, everything),
        torch.zeros(graph.size, dtype=torch.float64),
    )
    np.testing.assert_allclose(retained.numpy(), expected[[2]], **TIGHT)


def test_who_loses_the_only_interaction_is_left_with_the_own_embedding() -> None:
    graph = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    model = model_of(graph, layers=3)
    edit = (0, {(0, 0): REMOVE})
    own = model.state()[USERS][0].astype(float) / 4
    without = model_of(after(graph, edit), layers=3)
    np.testing.assert_allclose(model.score_edits(packed([edit]))[0], without.item_embeddings() @ own, **TIGHT)

    delta = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    zero = torch.tensor([0])
    model.score_weighted(zero, zero, zero, zero, delta).sum().backward()
    assert delta.grad is not None
    assert torch.isfinite(delta.grad).all()


def test_scores_do_not_depend_on_the_rest_of_the_batch() -> None:
    data = split()
    model = model_of(data.profiles.toarray(), layers=3, dimensions=8)
    draw = np.random.default_rng(6)
    edits = packed(
        [
            (
                int(user),
                {
                    (int(draw.integers(90)), int(draw.integers(18))): int(draw.choice([REMOVE, ADD]))
                    for _ in range(draw.integers(0, 9))
                },
            )
            for user in draw.integers(0, 90, 64)
        ]
    )
    together = model.score_edits(edits)
    order = draw.permutation(64)
    np.testing.assert_allclose(model.score_edits(edits.choose(order)), together[order], **TIGHT)
    for b in range(0, 64, 7):
        np.testing.assert_allclose(model.score_edits(edits.take(b, b + 1))[0], together[b], **TIGHT)


def test_a_loaded_model_scores_as_the_fitted_one() -> None:
    data = split()
    model, loaded = (LightGCN(Config(dimensions=4, epochs=4)) for _ in range(2))
    model.fit(data, generator)
    loaded.load_state(model.state(), data.profiles)
    edits = packed([(7, {}), (8, {(8, 0): ADD, (9, 1): REMOVE})])
    assert np.array_equal(model.score_edits(edits), loaded.score_edits(edits))
