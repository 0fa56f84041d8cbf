"""Scores without propagating are those of a polynomial of the edited matrix, and of the propagation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys import own_edges
from cfbench_recsys.edits import REMOVE, Edits
from cfbench_recsys.own_edges import OwnEdges
from cfbench_recsys.recommenders import lightgcn

WEIGHTS = [(1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 1.0, 1.0), (1.0, 1.0), (1.0, 1.0, 1.0), (0.5, 2.0, 0.0, 1.3)]


def _by_powers(
    graph: torch.Tensor, user: int, users: np.ndarray, items: np.ndarray, weights: tuple[float, ...]
) -> torch.Tensor:
    """Scores of the dense ``graph`` (users, items) by the definition in ``graph_convolution.py``; differentiable."""
    first, nodes = len(users), sum(graph.shape)
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    adjacency[:first, first:], adjacency[first:, :first] = graph, graph.T
    degrees = adjacency.sum(dim=1)
    connected = degrees > 1e-9
    roots = torch.where(connected, torch.where(connected, degrees, 1.0) ** -0.5, 0.0)
    layer = roots[:, None] * adjacency * roots
    powers = [torch.linalg.matrix_power(layer, place) for place in range(len(weights))]
    final = sum(w * power for w, power in zip(weights, powers, strict=True)) / sum(weights)
    final = final @ torch.from_numpy(np.concatenate([users, items]))
    return final[first:] @ final[user]


@settings(deadline=None, max_examples=60)
@given(
    weights=st.sampled_from(WEIGHTS),
    strengths=st.booleans(),
    partly=st.booleans(),
    sides=st.tuples(st.integers(2, 30), st.integers(2, 30)),
    seed=st.integers(0, 2**16),
)
def test_scores_and_gradients_are_those_of_the_edited_matrix_in_any_batch(
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
    # an edge whose change is 0 has a gradient, too
    shares = [draw.integers(0, 10, len(own)) / 10 if partly else np.ones(len(own)) for own in changed]
    deltas = [
        np.where(graph[user, own] > 0, -graph[user, own], 1.0) * share
        for user, own, share in zip(users, changed, shares, strict=True)
    ]
    of_scores = torch.from_numpy(draw.standard_normal((len(users), sides[1])))

    def scores(which: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
        lengths = [len(changed[unit]) for unit in which]
        rows = np.repeat(np.arange(len(which)), lengths)
        arrays = (np.concatenate([of[unit] for unit in which]) for of in (changed, deltas))
        items, delta = map(torch.from_numpy, arrays)
        delta.requires_grad_()
        found = prepared.scores(torch.from_numpy(users[which]), torch.from_numpy(rows), items, delta)
        (found * of_scores[which]).sum().backward()
        return found.detach().numpy(), np.split(delta.grad.numpy(), np.cumsum(lengths)[:-1])

    together, gradients = scores(list(range(len(users))))
    for unit, user in enumerate(users):
        delta = torch.from_numpy(deltas[unit]).requires_grad_()
        places = (torch.tensor(int(user)), torch.from_numpy(changed[unit]))
        expected = _by_powers(
            torch.from_numpy(graph * 1.0).index_put(places, delta, accumulate=True),
            user,
            *embeddings,
            weights,
        )
        (expected * of_scores[unit]).sum().backward()
        np.testing.assert_allclose(together[unit], expected.detach().numpy(), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gradients[unit], delta.grad.numpy(), rtol=1e-7, atol=1e-8)
    for some in (draw.permutation(len(users))[:7].tolist(), [int(draw.integers(len(users)))]):
        found, own = scores(some)
        assert found.tobytes() == together[some].tobytes()
        assert [of.tobytes() for of in own] == [gradients[unit].tobytes() for unit in some]


def test_changes_of_an_edge_that_is_named_twice_add_up() -> None:
    draw = np.random.default_rng(0)
    graph = (draw.random((6, 8)) < 0.5) * 1.0
    prepared = OwnEdges(
        sparse.csr_matrix(graph), *(draw.standard_normal((side, 3)) for side in (6, 8)), (1.0, 1.0)
    )
    users, rows = torch.tensor([2]), torch.zeros(3, dtype=torch.int64)
    there, absent = (int(np.flatnonzero(graph[2] == value)[0]) for value in (1, 0))
    for item in (there, absent):
        twice = prepared.scores(
            users, rows, torch.tensor([item, 5, item]), torch.tensor([0.1, 0.3, 0.2]).double()
        )
        once = prepared.scores(users, rows[:2], torch.tensor([item, 5]), torch.tensor([0.3, 0.3]).double())
        np.testing.assert_allclose(twice.numpy(), once.numpy(), rtol=1e-6)


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
        OwnEdges,
        "scores",
        lambda self, users, *rest: queried.extend(users.tolist()) or scores_of(self, users, *rest),
    )
    together = model.score_edits(edits)
    assert queried == ([] if layers == 4 else users[own].tolist())
    for unit in range(20):
        assert model.score_edits(edits.take(unit, unit + 1)).tobytes() == together[unit].tobytes()
    arrays = [torch.from_numpy(array) for array in (users, rows, edits.edge_users, edits.edge_items)]
    found = {}
    # by own edges where they suffice; where they never do; where they do for units of two edges alone
    for most, count in ((256, 3), (0, 3), (2, 2)):
        monkeypatch.setattr(own_edges, "MOST_EDITS", most)
        queried.clear()
        delta = -torch.ones(60, dtype=torch.float64) * torch.arange(1, 61) / 60
        delta.requires_grad_()
        named = torch.arange(60) % 3 < count
        named[:3] = True  # the first unit has three edges in any case
        scores = model.score_weighted(arrays[0], *(of[named] for of in arrays[1:]), delta[named])
        expected = [] if layers == 4 or most == 0 else users[own].tolist()
        assert queried == (expected if most > 2 or not own[0] else expected[1:])
        (scores**2).sum().backward()
        found[most] = scores.detach().numpy(), delta.grad.numpy()
    for ours, propagated in zip(found[256], found[0], strict=True):
        np.testing.assert_allclose(ours, propagated, rtol=1e-9, atol=1e-10)
    whole = model.score_weighted(*arrays, -torch.ones(60, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(together, whole, rtol=1e-10, atol=1e-12)
