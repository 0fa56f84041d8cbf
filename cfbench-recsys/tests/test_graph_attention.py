"""Attention over edges: by hand, against loops over the edges, and as a propagation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.bipartite_graph import normalized
from cfbench_recsys.graph_attention import (
    BOUND,
    AttentivePropagation,
    Heads,
    Pattern,
    edge_products,
    edge_strengths,
    edge_sums,
    pair_strengths,
)

CPU = torch.device("cpu")
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def pattern_of(graph: np.ndarray) -> Pattern:
    return Pattern.of(sparse.csr_matrix(graph), CPU)


def heads_of(nodes: int, seed: int, heads: int = 2, columns: int = 3, scale: float = 1.5) -> Heads:
    draw = np.random.default_rng(seed)
    return Heads(*(torch.from_numpy(scale * draw.normal(size=(heads, nodes, columns))) for _ in range(2)))


def literally(users: Heads, items: Heads) -> np.ndarray:
    """(users, items) a_ui of all pairs by the formula: loops and plain floats."""
    heads, rows, columns = users.queries.shape
    found = np.zeros((rows, items.queries.shape[1]))
    for u, i in np.ndindex(*found.shape):
        for h in range(heads):
            for product in (users.queries[h, u] @ items.keys[h, i], items.queries[h, i] @ users.keys[h, u]):
                found[u, i] += math.exp(BOUND * math.tanh(float(product) / BOUND / math.sqrt(columns)))
    return found / (2 * heads)


def test_one_edge_by_hand() -> None:
    """One head of one column: q_u k_i = 3 and q_i k_u = 0, so the mean of exp(3 tanh 1) and 1."""

    def column(number: float) -> torch.Tensor:
        return torch.tensor(number, dtype=torch.float64).reshape(1, 1, 1)

    found = edge_strengths(
        pattern_of(np.ones((1, 1))), Heads(column(2.0), column(5.0)), Heads(column(0.0), column(1.5))
    )
    assert float(found) == pytest.approx((math.exp(3 * math.tanh(1.0)) + 1) / 2, rel=1e-12)


@st.composite
def graphs(draw: st.DrawFn) -> np.ndarray:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    cells = st.lists(st.sampled_from([0.0, 1.0]), min_size=rows * columns, max_size=rows * columns)
    return np.array(draw(cells)).reshape(rows, columns)


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_every_edge_has_the_strength_of_the_formula_and_so_has_every_other_pair(graph: np.ndarray) -> None:
    users, items = heads_of(graph.shape[0], 0), heads_of(graph.shape[1], 1)
    expected = literally(users, items)
    found = edge_strengths(pattern_of(graph), users, items)
    np.testing.assert_allclose(found, expected[graph.nonzero()], **TIGHT)
    rows, columns = (torch.from_numpy(part.ravel()) for part in np.indices(graph.shape))
    np.testing.assert_allclose(pair_strengths(rows, columns, users, items), expected.ravel(), **TIGHT)


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_the_propagation_is_that_of_the_weighted_graph(graph: np.ndarray) -> None:
    """D^-1/2 A D^-1/2 on dense matrices, nodes without edges too; and the constant form of the same."""
    users, items = heads_of(graph.shape[0], 2), heads_of(graph.shape[1], 3)
    weighted = graph * literally(users, items)
    of_users, of_items = weighted.sum(1, keepdims=True), weighted.sum(0, keepdims=True)
    expected = np.divide(weighted, np.sqrt(of_users * of_items), where=graph > 0, out=np.zeros_like(graph))
    pattern = pattern_of(graph)
    strengths = edge_strengths(pattern, users, items)
    propagation = AttentivePropagation(pattern, pattern.transposed(), strengths)
    for found, wanted in (
        (propagation.to_users(torch.eye(graph.shape[1], dtype=torch.float64)), expected),
        (propagation.to_items(torch.eye(graph.shape[0], dtype=torch.float64)), expected.T),
        (normalized(sparse.csr_matrix(graph), strengths.numpy()).toarray(), expected),
    ):
        np.testing.assert_allclose(found, wanted, **TIGHT)


def test_the_propagation_is_differentiable_in_the_strengths() -> None:
    graph = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    pattern = pattern_of(graph)
    draw = torch.Generator().manual_seed(1)
    strengths = (0.5 + torch.rand(4, dtype=torch.float64, generator=draw)).requires_grad_()
    values = torch.randn(3, 2, dtype=torch.float64, generator=draw).requires_grad_()

    def both_ways(strengths: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        propagation = AttentivePropagation(pattern, pattern.transposed(), strengths)
        return propagation.to_items(propagation.to_users(values))

    assert torch.autograd.gradcheck(both_ways, (strengths, values))


def test_products_and_sums_over_edges_have_true_gradients() -> None:
    graph = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    pattern = pattern_of(graph)
    draw = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=draw).requires_grad_()

    left, right, weights = random(3, 2), random(3, 2), random(4)
    assert torch.autograd.gradcheck(lambda a, b: edge_products(pattern, a, b), (left, right))
    assert torch.autograd.gradcheck(lambda w, b: edge_sums(pattern, w, b), (weights, right))
    expected = [left[n] @ right[m] for n, m in zip(*np.nonzero(graph), strict=True)]
    torch.testing.assert_close(edge_products(pattern, left, right), torch.stack(expected))


def test_an_edge_named_twice_counts_twice() -> None:
    """Row 0 has column 1 twice."""
    pattern = Pattern(torch.tensor([0, 2, 3]), torch.tensor([1, 1, 0]), (2, 2))
    weights = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    values = torch.tensor([[10.0], [100.0]], dtype=torch.float64)
    assert edge_sums(pattern, weights, values).tolist() == [[300.0], [50.0]]
    ones = torch.ones(2, 1, dtype=torch.float64)
    assert edge_products(pattern, ones, values).tolist() == [100.0, 100.0, 10.0]


def test_no_edge_counts_for_more_than_the_bound_allows() -> None:
    """However long the queries are, and without a number that is not finite."""
    users, items = heads_of(4, 6, scale=1e3), heads_of(4, 7, scale=1e3)
    found = edge_strengths(pattern_of(np.ones((4, 4))), users, items)
    assert float(found.max()) <= math.exp(BOUND) and float(found.min()) >= math.exp(-BOUND)
