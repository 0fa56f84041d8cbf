"""Polynomials of the graph with any weights of the layers, against the whole matrix written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.recommenders.graph_convolution import GraphConvolution
from cfbench_recsys.recommenders.graph_layers import Weights
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS, Training
from cfbench_recsys.recommenders.lightgcn import Config

TIGHT = {"rtol": 1e-10, "atol": 1e-11}


class AnyPolynomial(GraphConvolution):
    name = "any-polynomial"

    def __init__(self, weights: Weights) -> None:
        super().__init__(Config(device="cpu"))
        self.weights = weights

    def layer_weights(self) -> Weights:
        return self.weights

    def loss(self, training: Training, users: np.ndarray, items: np.ndarray) -> Any:
        raise AssertionError("it is not trained here")


def final_embeddings(model: AnyPolynomial, graph: np.ndarray) -> np.ndarray:
    """(nodes, d) the sum of w_l Ã^l E by its definition, Ã the matrix over users and items."""
    users, items = graph.shape
    adjacency = np.zeros((users + items, users + items))
    adjacency[:users, users:] = graph
    adjacency += adjacency.T
    degrees = adjacency.sum(axis=1)
    roots = np.array([degree**-0.5 if degree else 0.0 for degree in degrees])
    step = roots[:, None] * adjacency * roots
    embeddings = np.vstack([model.state()[USERS], model.state()[ITEMS]]).astype(float)
    layers = [np.linalg.matrix_power(step, power) @ embeddings for power in range(len(model.weights))]
    total = sum(weight * layer for weight, layer in zip(model.weights, layers, strict=True))
    return np.asarray(total) / sum(model.weights)


def fitted(weights: Weights, graph: np.ndarray, seed: int) -> AnyPolynomial:
    draw = np.random.default_rng(seed)
    model = AnyPolynomial(weights)
    state = {
        name: draw.normal(size=(n, 3)).astype(np.float32)
        for name, n in zip((USERS, ITEMS), graph.shape, strict=True)
    }
    model.load_state(state, sparse.csr_matrix(graph))
    return model


@st.composite
def cases(draw: st.DrawFn) -> tuple[Weights, np.ndarray, np.ndarray, int]:
    """Weights, a graph, and the graph edited; isolated nodes are among them."""
    weight = st.sampled_from([0.0, 0.0, 1.0, 0.5, 2.0, -0.25])
    weights = tuple(draw(st.lists(weight, min_size=2, max_size=5).filter(lambda w: abs(sum(w)) > 0.1)))
    users, items = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    bits = st.lists(st.sampled_from([0.0, 1.0]), min_size=users * items, max_size=users * items)
    graph, edited = (np.array(draw(bits)).reshape(users, items) for _ in range(2))
    return weights, graph, edited, draw(st.integers(0, 99))


@settings(deadline=None, max_examples=150)
@given(cases())
def test_embeddings_and_scores_are_those_of_the_polynomial(
    case: tuple[Weights, np.ndarray, np.ndarray, int],
) -> None:
    weights, graph, edited, seed = case
    model = fitted(weights, graph, seed)
    users = len(graph)
    found = np.vstack([model.user_embeddings(), model.item_embeddings()])
    np.testing.assert_allclose(found, final_embeddings(model, graph), **TIGHT)

    edge_users, edge_items = np.nonzero(edited != graph)
    ops = np.where(edited[edge_users, edge_items] > 0, ADD, REMOVE).astype(np.int8)
    all_users = np.arange(users)
    edits = Edits.concatenate(
        [
            Edits(all_users[u : u + 1], np.zeros(len(ops), dtype=np.int64), edge_users, edge_items, ops)
            for u in all_users
        ]
    )
    final = final_embeddings(model, edited)
    np.testing.assert_allclose(model.score_edits(edits), final[:users] @ final[users:].T, **TIGHT)


@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.5, 2.0)])
def test_gradients_follow_the_weights(weights: Weights) -> None:
    graph = (np.random.default_rng(3).random((4, 5)) < 0.6).astype(float)
    model = fitted(weights, graph, 0)
    edges = [torch.from_numpy(side) for side in np.nonzero(graph)]
    rows = torch.zeros(len(edges[0]), dtype=torch.int64)
    delta = torch.linspace(-0.5, -0.1, len(rows), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda d: model.score_weighted(torch.tensor([1]), rows, *edges, d), (delta,), atol=1e-7
    )
