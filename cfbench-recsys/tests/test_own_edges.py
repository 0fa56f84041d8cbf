"""Scores without propagating are those of a polynomial of the edited matrix, and of the propagation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.edits import REMOVE, Edits
from cfbench_recsys.own_edges import OwnEdges
from cfbench_recsys.recommenders import lightgcn

WEIGHTS = [(1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 1.0, 1.0), (1.0, 1.0), (1.0, 1.0, 1.0), (0.5, 2.0, 0.0, 1.3)]


def _by_powers(
    graph: np.ndarray, user: int, users: np.ndarray, items: np.ndarray, weights: tuple[float, ...]
) -> np.ndarray:
    """Scores of the dense ``graph`` (users, items) by the definition in ``graph_convolution.py``."""
    first, nodes = len(users), sum(graph.shape)
    adjacency = np.zeros((nodes, nodes))
    adjacency[:first, first:], adjacency[first:, :first] = graph, graph.T
    degrees = adjacency.sum(axis=1)
    roots = np.array([degree**-0.5 if degree > 1e-9 else 0.0 for degree in degrees])
    layer = roots[:, None] * adjacency * roots
    powers = [np.linalg.matrix_power(layer, place) for place in range(len(weights))]
    final = sum(w * power for w, power in zip(weights, powers, strict=True)) / sum(weights)
    final = final @ np.concatenate([users, items])
    return np.asarray(final[first:] @ final[user])


@settings(deadline=None, max_examples=60)
@given(
    weights=st.sampled_from(WEIGHTS),
    strengths=st.booleans(),
    partly=st.booleans(),
    sides=st.tuples(st.integers(2, 30), st.integers(2, 30)),
    seed=st.integers(0, 2**16),
)
def test_scores_are_those_of_the_edited_matrix_in_any_batch(
    weights: tuple[float, ...], strengths: bool, partly: bool, sides: tuple[int, int], seed: int
) -> None:
    """Removals, all of a history among them, and additions; whole edges or a part of their weight; isolated nodes."""
    draw = np.random.default_rng(seed)
    graph = (draw.random(sides) < 0.25) * (draw.random(sides) + 0.1 if strengths else 1.0)
    embeddings = [draw.standard_normal((side, 5)) for side in sides]
    prepared = OwnEdges(sparse.csr_matrix(graph), *embeddings, weights)
    users = draw.integers(0, sides[0], 30)
    changed = [draw.permutation(sides[1])[: draw.integers(1, sides[1] + 1)] for _ in users]
    changed[0] = np.flatnonzero(graph[users[0]]) if graph[users[0]].any() else changed[0]
    shares = [draw.random(len(own)) if partly else np.ones(len(own)) for own in changed]
    deltas = [
        np.where(graph[user, own] > 0, -graph[user, own], 1.0) * share
        for user, own, share in zip(users, changed, shares, strict=True)
    ]

    def scores(which: list[int]) -> np.ndarray:
        rows = np.repeat(np.arange(len(which)), [len(changed[unit]) for unit in which])
        arrays = (np.concatenate([of[unit] for unit in which]) for of in (changed, deltas))
        return prepared.scores(users[which], rows, *arrays)

    together = scores(list(range(len(users))))
    for unit, user in enumerate(users):
        edited = graph.copy()
        edited[user, changed[unit]] += deltas[unit]
        np.testing.assert_allclose(
            together[unit], _by_powers(edited, user, *embeddings, weights), rtol=1e-9, atol=1e-11
        )
    some = draw.permutation(len(users))[:7].tolist()
    assert scores(some).tobytes() == together[some].tobytes()
    assert scores(some[:1]).tobytes() == together[some[0]].tobytes()


@pytest.mark.parametrize("layers", [1, 3, 4])
def test_a_model_scores_edits_of_own_and_other_edges(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of both kinds; each edit has the bits that it has alone, and the scores of the propagation."""
    draw = np.random.default_rng(3)
    graph = sparse.csr_matrix((draw.random((40, 50)) < 0.15).astype(float))
    model = lightgcn.LightGCN(lightgcn.Config(device="cpu", layers=layers))
    sides = {"user_embedding.weight": (40, 8), "item_embedding.weight": (50, 8)}
    model.load_state({name: draw.standard_normal(shape) for name, shape in sides.items()}, graph)
    of_users, of_items = (side.astype(np.int64) for side in graph.nonzero())
    edges = np.sort(draw.permutation(graph.nnz)[:60]).reshape(20, 3)  # neighbouring ones, mostly of one user
    users = np.where(np.arange(20) % 2, of_users[edges[:, 0]], draw.integers(0, 40, 20))
    rows, ops = np.repeat(np.arange(20), 3), np.full(60, REMOVE, dtype=np.int8)
    edits = Edits(users, rows, of_users[edges].ravel(), of_items[edges].ravel(), ops)
    own = edits.of_own_edges()
    assert own.tolist() == [(of_users[row] == user).all() for row, user in zip(edges, users, strict=True)]
    assert 0 < own.sum() < 20
    queried = []
    scores_of = OwnEdges.scores
    monkeypatch.setattr(
        OwnEdges, "scores", lambda self, users, *rest: queried.extend(users) or scores_of(self, users, *rest)
    )
    together = model.score_edits(edits)
    assert queried == ([] if layers == 4 else users[own].tolist())
    for unit in range(20):
        assert model.score_edits(edits.take(unit, unit + 1)).tobytes() == together[unit].tobytes()
    arrays = (torch.from_numpy(array) for array in (users, rows, edits.edge_users, edits.edge_items))
    propagated = model.score_weighted(*arrays, -torch.ones(60, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(together, propagated, rtol=1e-10, atol=1e-12)
