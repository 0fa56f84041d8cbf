"""Attention over edges: by hand, against loops over the edges, and on edited graphs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.graph_attention import (
    BOUND,
    Attention,
    Heads,
    Pattern,
    attend,
    edge_products,
    edge_sums,
    shares,
    strengths,
)

CPU = torch.device("cpu")
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def pattern_of(graph: np.ndarray) -> Pattern:
    return Pattern.of(sparse.csr_matrix(graph), CPU)


def heads_of(nodes: int, seed: int, heads: int = 2, columns: int = 3, scale: float = 1.5) -> Heads:
    draw = np.random.default_rng(seed)
    return Heads(*(torch.from_numpy(scale * draw.normal(size=(heads, nodes, columns))) for _ in range(3)))


def literally(weights: np.ndarray, looking: Heads, seen: Heads) -> np.ndarray:
    """T by its definition, from the weight of every possible edge; loops and plain floats."""
    heads, rows, columns = looking.queries.shape
    found = np.zeros((rows, heads * columns))
    for head in range(heads):
        for n in range(rows):
            total, sums = 0.0, np.zeros(columns)
            for m in np.flatnonzero(weights[n]):
                logit = float(looking.queries[head, n] @ seen.keys[head, m]) / math.sqrt(columns)
                strength = weights[n, m] * math.exp(BOUND * math.tanh(logit / BOUND))
                total += strength
                sums += strength * seen.values[head, m].numpy()
            if total:
                found[n, head * columns : (head + 1) * columns] = sums / total
    return found


def test_one_node_by_hand() -> None:
    """q = 2, keys 0 and 1.5: logits 0 and 3, strengths 1 and exp(3 tanh 1). Values 10 and 20."""

    def column(*numbers: float) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.float64).reshape(1, -1, 1)

    looking = Heads(column(2.0), column(0.0), column(0.0))
    seen = Heads(column(0.0, 0.0), column(0.0, 1.5), column(10.0, 20.0))
    strong = math.exp(3 * math.tanh(1.0))
    found = attend(pattern_of(np.array([[1.0, 1.0]])), looking, seen)
    assert float(found) == pytest.approx((10 + 20 * strong) / (1 + strong), rel=1e-12)


@st.composite
def graphs(draw: st.DrawFn, count: int = 2) -> list[np.ndarray]:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    cells = st.lists(st.sampled_from([0.0, 1.0]), min_size=rows * columns, max_size=rows * columns)
    return [np.array(draw(cells)).reshape(rows, columns) for _ in range(count)]


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_every_node_has_the_mean_of_the_formula(pair: list[np.ndarray]) -> None:
    """Nodes without edges too, and the other side of the graph."""
    graph, _ = pair
    looking, seen = heads_of(graph.shape[0], 0), heads_of(graph.shape[1], 1)
    pattern = pattern_of(graph)
    np.testing.assert_allclose(attend(pattern, looking, seen), literally(graph, looking, seen), **TIGHT)
    back = attend(pattern.transposed(), seen, looking)
    np.testing.assert_allclose(back, literally(graph.T, seen, looking), **TIGHT)


@settings(deadline=None, max_examples=60)
@given(graphs(3))
def test_edits_change_it_as_if_the_graph_were_made_anew(triple: list[np.ndarray]) -> None:
    """Two versions at once, of removals, additions and fractions; what is not named does not change."""
    graph, first, second = triple
    versions = [first, 0.3 * first + 0.7 * second]
    looking, seen = heads_of(graph.shape[0], 2), heads_of(graph.shape[1], 3)
    edges = [(b, n, m) for b, v in enumerate(versions) for n, m in zip(*np.nonzero(v != graph), strict=True)]
    rows, nodes, others = (torch.tensor(part) for part in np.array(edges, dtype=np.int64).reshape(-1, 3).T)
    delta = torch.tensor([versions[b][n, m] - graph[n, m] for b, n, m in edges], dtype=torch.float64)
    attention = Attention(pattern_of(graph), looking, seen)
    changes = attention.edited(2, rows, nodes, others, delta)
    assert set(zip(changes.node.tolist(), changes.version.tolist(), strict=True)) == {
        (int(n), int(b)) for b, n, _ in edges
    }
    for b, version in enumerate(versions):
        output = attention.output.clone()
        mine = changes.version == b
        output[changes.node[mine]] += changes.change[mine]
        np.testing.assert_allclose(output, literally(version, looking, seen), **TIGHT)


def test_changed_rows_multiply_like_the_changed_matrices() -> None:
    """H_b^T x and H_b y with two versions of a matrix of three rows, the second one unchanged in row 0."""
    draw = np.random.default_rng(0)
    graph = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    attention = Attention(pattern_of(graph), heads_of(3, 4), heads_of(2, 5))
    rows, nodes, others = torch.tensor([0, 0, 1]), torch.tensor([0, 2, 1]), torch.tensor([1, 1, 0])
    changes = attention.edited(2, rows, nodes, others, torch.tensor([-1.0, 1.0, 0.5], dtype=torch.float64))
    matrices = torch.stack([attention.output, attention.output])
    for node, version, change in zip(changes.node, changes.version, changes.change, strict=True):
        matrices[version, node] += change
    there, back = torch.from_numpy(draw.normal(size=(3, 2))), torch.from_numpy(draw.normal(size=(6, 2)))
    product = changes.add_transposed_product(attention.output.T @ there, there)
    np.testing.assert_allclose(product, torch.einsum("bnd,nb->db", matrices, there), **TIGHT)
    product = changes.add_product(attention.output @ back, back)
    np.testing.assert_allclose(product, torch.einsum("bnd,db->nb", matrices, back), **TIGHT)


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
    looking, seen = heads_of(4, 6, scale=1e3), heads_of(4, 7, scale=1e3)
    found = strengths(pattern_of(np.ones((4, 4))), looking.queries[0], seen.keys[0])
    assert float(found.max()) <= math.exp(BOUND) and float(found.min()) >= math.exp(-BOUND)


def test_shares_are_one_on_average_over_the_edges_of_a_node() -> None:
    """And exactly one where all its edges are equal."""
    graph = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    pattern, looking, seen = pattern_of(graph), heads_of(3, 8), heads_of(3, 9)
    found = shares(pattern, looking, seen).numpy()
    assert found[:3].mean() == pytest.approx(1.0) and found[3:].mean() == pytest.approx(1.0)
    assert np.ptp(found) > 0.1
    equal = Heads(torch.zeros_like(looking.queries), looking.keys, looking.values)
    np.testing.assert_allclose(shares(pattern, equal, seen), 1.0)
