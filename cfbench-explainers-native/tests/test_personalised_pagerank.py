from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_explainers_native.personalised_pagerank import ItemProximity, Walks, all_pairs


def random_graph(users: int, items: int, seed: int) -> sparse.csr_matrix:
    """Few edges, so that some nodes have none."""
    draw = np.random.default_rng(seed)
    return sparse.csr_matrix((draw.random((users, items)) < draw.uniform(0.05, 0.6)).astype(float))


def by_power_iteration(graph: sparse.csr_matrix, alpha: float) -> np.ndarray:
    """(items, items): walkers one step at a time on the graph of all nodes."""
    users, items = graph.shape
    adjacency = np.block(
        [[np.zeros((users, users)), graph.toarray()], [graph.toarray().T, np.zeros((items,) * 2)]]
    )
    step = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    walkers, stopped = np.eye(users + items), np.zeros((users + items,) * 2)
    while walkers.max() > 1e-15:
        stopped += alpha * walkers
        walkers = (1 - alpha) * walkers @ step
    return stopped[users:, users:]


def test_two_items_of_one_user() -> None:
    graph = sparse.csr_matrix(np.ones((1, 2)))
    # From an item it continues twice with probability 0.25, and then half of the walks are at either item.
    back = 0.25 / (1 - 0.25) / 2
    assert np.allclose(all_pairs(graph, 0.5), 0.5 * np.array([[1 + back, back], [back, 1 + back]]))


graphs = st.builds(random_graph, st.integers(1, 8), st.integers(1, 9), st.integers(0, 10**6))


@given(graph=graphs, alpha=st.floats(0.05, 0.9))
@settings(max_examples=50, deadline=None)
def test_all_pairs_are_those_of_power_iteration(graph, alpha) -> None:
    assert np.allclose(all_pairs(graph, alpha), by_power_iteration(graph, alpha), atol=1e-12)


@given(graph=graphs, alpha=st.floats(0.05, 0.9), eps=st.sampled_from([1e-2, 1e-4, 1e-8]))
@settings(max_examples=50, deadline=None)
def test_push_is_below_power_iteration_by_at_most_eps(graph, alpha, eps) -> None:
    items = np.arange(graph.shape[1])
    error = by_power_iteration(graph, alpha) - Walks.of(graph, alpha).push(items, eps)
    assert error.min() >= -1e-12
    assert error.max() <= eps + 1e-12


def test_a_column_does_not_depend_on_the_others_of_the_batch() -> None:
    graph = random_graph(30, 40, seed=1)
    walks = Walks.of(graph, 0.15)
    together = walks.push(np.arange(40), 1e-6)
    assert all(np.array_equal(together[:, [v]], walks.push(np.array([v]), 1e-6)) for v in range(40))


def test_pushed_for_what_is_wanted_it_is_the_same_within_the_error() -> None:
    graph, wanted = random_graph(30, 150, seed=2), np.arange(0, 150, 2)
    exact = ItemProximity.exact(graph, 0.15)
    pushed = ItemProximity.pushed(graph, wanted, 0.15, 1e-7)
    sources, targets = np.array([3, 1, 149]), np.array([148, 4])
    assert np.allclose(pushed.between(sources, targets), exact.between(sources, targets), atol=1e-7, rtol=0)
    assert pushed.values.shape == (150, 75)
