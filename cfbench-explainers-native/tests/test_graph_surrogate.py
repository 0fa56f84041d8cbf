from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_explainers_native.graph_surrogate import Neighbourhood
from cfbench_recsys.targets import Targets

USERS, ITEMS, D = 9, 7, 3


@pytest.fixture
def graph() -> sparse.csr_matrix:
    """Some nodes have no edge."""
    matrix = (np.random.default_rng(1).random((USERS, ITEMS)) < 0.3).astype(float)
    matrix[4] = 0.0
    return sparse.csr_matrix(matrix)


@pytest.fixture
def embeddings() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(2)
    return draw.normal(size=(USERS, D)), draw.normal(size=(ITEMS, D))


def dense_links(weights: np.ndarray) -> np.ndarray:
    """(nodes, nodes) the normalised graph, users before items."""
    matrix = np.block([[np.zeros((USERS, USERS)), weights], [weights.T, np.zeros((ITEMS, ITEMS))]])
    degrees = matrix.sum(axis=1)
    roots = np.array([degree**-0.5 if degree > 1e-12 else 0.0 for degree in degrees])
    return roots[:, None] * matrix * roots


def features(weights: np.ndarray, embeddings, layers: int) -> list[np.ndarray]:
    links, nodes = dense_links(weights), np.vstack(embeddings)
    return [np.linalg.matrix_power(links, layer) @ nodes for layer in range(1, layers + 1)]


def targets_of(graph: sparse.csr_matrix, users: list[int], items: list[int]) -> Targets:
    return Targets.of(graph, np.array(users), np.array(items)[:, None], 2, "item", "full")


def test_near_are_the_nodes_that_a_search_by_hand_reaches(embeddings) -> None:
    # user 0 - item 0 - user 1 - item 1 - user 2 - item 2
    path = np.zeros((USERS, ITEMS))
    for user, item in [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]:
        path[user, item] = 1
    graph = sparse.csr_matrix(path)
    neighbourhood = Neighbourhood(graph, *embeddings, layers=1)
    users, items = neighbourhood.within(targets_of(graph, [0, 0], [5, 2]), hops=2)
    assert [np.flatnonzero(row).tolist() for row in users] == [[0, 1], [0, 1, 2]]
    assert [np.flatnonzero(row).tolist() for row in items] == [[0, 5], [0, 1, 2]]


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_weights_are_the_least_squares_of_the_penalised_problem(graph, embeddings, layers) -> None:
    targets, ridge = targets_of(graph, [0, 3], [1, 2]), 0.5
    neighbourhood = Neighbourhood(graph, *embeddings, layers)
    surrogate = neighbourhood.fit(targets, hops=2, ridge=ridge)
    near = np.hstack(neighbourhood.within(targets, hops=2))
    for unit in range(2):
        known = np.hstack(features(graph.toarray(), embeddings, layers))[near[unit]]
        penalty = np.sqrt(ridge * (known**2).sum() / known.shape[1])
        stacked = np.vstack([known, penalty * np.eye(known.shape[1])])
        wanted = np.vstack([np.vstack(embeddings)[near[unit]], np.zeros((known.shape[1], D))])
        literal = np.linalg.lstsq(stacked, wanted, rcond=None)[0]
        assert np.allclose(surrogate.weights[unit].numpy().reshape(-1, D), literal, atol=1e-9)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_scores_are_those_of_the_masked_graph_written_out(graph, embeddings, layers) -> None:
    users, items = [0, 3, 4], [1, 2, 0]
    surrogate = Neighbourhood(graph, *embeddings, layers).fit(targets_of(graph, users, items), 2, 0.1)
    edges = np.argwhere(graph.toarray())
    delta = -np.random.default_rng(3).random((3, len(edges)))
    rows = np.repeat(np.arange(3), len(edges))
    named = [np.array(users), rows, np.tile(edges[:, 0], 3), np.tile(edges[:, 1], 3), delta.ravel()]
    scores = surrogate.score_weighted(*map(torch.from_numpy, named)).numpy()
    for unit, user in enumerate(users):
        masked = graph.toarray()
        masked[edges[:, 0], edges[:, 1]] += delta[unit]
        layered = features(masked, embeddings, layers)
        final = sum(f @ w for f, w in zip(layered, surrogate.weights[unit].numpy(), strict=True))
        assert np.allclose(scores[unit], final[USERS:] @ final[user], atol=1e-9)
