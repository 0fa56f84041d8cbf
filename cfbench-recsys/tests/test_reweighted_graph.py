"""Units that edit very many edges get a matrix of their own; scores and gradients are those of the shared one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_core.isolation.fingerprints import freeze
from cfbench_recsys import reweighted_graph
from cfbench_recsys.recommenders import lightgcn, simgcl
from cfbench_recsys.reweighted_graph import EdgePattern, ReweightedGraph, edited_weights

MODELS = {
    "lightgcn": (lightgcn.LightGCN, lightgcn.Config),
    "simgcl": (simgcl.SimGCL, simgcl.Config),
}


def random_graph(seed: int, shape: tuple[int, int] = (12, 9)) -> sparse.csr_matrix:
    graph = (np.random.default_rng(seed).random(shape) < 0.4).astype(float)
    graph[0, 0] = 1.0
    return sparse.csr_matrix(graph)


def model_on(graph: sparse.csr_matrix, name: str, layers: int):  # type: ignore[no-untyped-def]
    draw = np.random.default_rng(1)
    model_class, config = MODELS[name]
    model = model_class(config(device="cpu", layers=layers))
    model.load_state(
        {
            f"{side}_embedding.weight": draw.standard_normal((count, 5))
            for side, count in zip(("user", "item"), graph.shape, strict=True)
        },
        graph,
    )
    return model


def batch_of(graph: sparse.csr_matrix, sizes: list[int], seed: int) -> tuple[torch.Tensor, ...]:
    """Users, rows, edge users, edge items and changes of units that edit so many edges of the graph."""
    draw = np.random.default_rng(seed)
    users, items = graph.nonzero()
    chosen = [np.sort(draw.permutation(len(users))[:size]) for size in sizes]
    edges = np.concatenate(chosen)
    arrays = (
        draw.integers(0, graph.shape[0], len(sizes)),
        np.repeat(np.arange(len(sizes)), sizes),
        users[edges].astype(np.int64),
        items[edges].astype(np.int64),
        -draw.random(len(edges)),
    )
    return tuple(torch.from_numpy(array) for array in arrays)


def scores_and_gradient(model, users, rows, edge_users, edge_items, delta):  # type: ignore[no-untyped-def]
    delta = delta.clone().requires_grad_()
    scores = model.score_weighted(users, rows, edge_users, edge_items, delta)
    seed = torch.linspace(-1, 1, scores.shape[1], dtype=torch.float64)
    (gradient,) = torch.autograd.grad((scores * seed).sum(), delta)
    return scores.detach(), gradient


def test_the_layers_of_a_reweighted_graph_are_products_with_its_normalised_matrix() -> None:
    graph = random_graph(0)
    draw = np.random.default_rng(2)
    weights = draw.random(graph.nnz)
    dense = sparse.csr_matrix((weights, graph.indices, graph.indptr), shape=graph.shape).toarray()
    user_degrees, item_degrees = dense.sum(axis=1), dense.sum(axis=0)
    normalised = dense / np.sqrt(np.outer(np.where(user_degrees, user_degrees, 1), item_degrees))
    found = ReweightedGraph(EdgePattern(graph), torch.from_numpy(weights))
    users, items = (draw.random((count, 1)) for count in graph.shape)
    np.testing.assert_allclose(found.to_items(torch.from_numpy(users)), normalised.T @ users, rtol=1e-12)
    np.testing.assert_allclose(found.to_users(torch.from_numpy(items)), normalised @ items, rtol=1e-12)
    np.testing.assert_allclose(found.to_items_from(torch.tensor([3]))[:, 0], normalised[3], rtol=1e-12)


def test_its_gradients_are_those_of_finite_differences() -> None:
    graph = random_graph(3, (5, 4))
    pattern, edges = EdgePattern(graph), graph.nnz
    strengths = torch.ones(edges, dtype=torch.float64)
    places = torch.arange(0, edges, 2)

    def twice_there(delta: torch.Tensor) -> torch.Tensor:
        found = ReweightedGraph(pattern, edited_weights(strengths, places, delta))
        items = found.to_items_from(torch.tensor([0]))
        return found.to_items(found.to_users(items))

    delta = torch.full((len(places),), -0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(twice_there, (delta,))


def test_a_user_who_loses_all_edges_gets_the_scores_and_gradients_of_the_shared_matrix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = random_graph(4)
    _, rows, edge_users, edge_items, delta = batch_of(graph, [graph.nnz], seed=4)
    delta[edge_users == 2] = -1.0
    batch = (torch.tensor([2]), rows, edge_users, edge_items, delta)
    shared = scores_and_gradient(model_on(graph, "lightgcn", 3), *batch)
    monkeypatch.setattr(reweighted_graph, "MANY_EDGES", 20)
    own = scores_and_gradient(model_on(graph, "lightgcn", 3), *batch)
    for found, expected in zip(own, shared, strict=True):
        assert torch.isfinite(found).all()
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_scores_and_gradients_equal_those_of_the_shared_matrix(
    name: str, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(5)
    batch = batch_of(graph, [20, 2, 30, 0], seed=6)
    shared = scores_and_gradient(model_on(graph, name, layers), *batch)
    monkeypatch.setattr(reweighted_graph, "MANY_EDGES", 20)
    model = model_on(graph, name, layers)
    freeze(model)  # as in a run, where a task may not write into arrays of the model
    own = scores_and_gradient(model, *batch)
    for found, expected in zip(own, shared, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_a_unit_with_many_edges_gets_the_same_bits_alone_and_in_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reweighted_graph, "MANY_EDGES", 20)
    graph = random_graph(7)
    model = model_on(graph, "lightgcn", 3)
    users, rows, *edges = batch_of(graph, [25, 3, 22, 4], seed=8)
    scores, gradient = scores_and_gradient(model, users, rows, *edges)
    for unit in range(4):
        own = rows == unit
        alone = scores_and_gradient(
            model,
            users[unit : unit + 1],
            torch.zeros(int(own.sum()), dtype=torch.int64),
            *(e[own] for e in edges),
        )
        assert torch.equal(alone[0][0], scores[unit])
        assert torch.equal(alone[1], gradient[own])


def test_scoring_other_edges_in_between_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up of a unit's edges is stored between the steps of a search."""
    monkeypatch.setattr(reweighted_graph, "MANY_EDGES", 20)
    graph = random_graph(9)
    model = model_on(graph, "lightgcn", 3)
    first, second = (batch_of(graph, [25], seed=seed) for seed in (10, 11))
    before = scores_and_gradient(model, *first)
    other = scores_and_gradient(model, *second)
    first[2].copy_(second[2])  # the same tensors with other edges
    first[3].copy_(second[3])
    again = scores_and_gradient(model, first[0], *first[1:4], first[4])
    expected = scores_and_gradient(model_on(graph, "lightgcn", 3), first[0], *second[1:4], first[4])
    assert torch.equal(again[0], expected[0]) and torch.equal(again[1], expected[1])
    assert not torch.equal(before[0], other[0])


def test_an_edge_that_is_not_in_the_graph_has_no_place() -> None:
    graph = random_graph(12)
    pattern = EdgePattern(graph)
    users, items = graph.nonzero()
    assert pattern.places(users, items) is not None
    missing_user, missing_item = np.argwhere(graph.toarray() == 0)[-1]
    assert pattern.places(np.array([missing_user]), np.array([missing_item])) is None
