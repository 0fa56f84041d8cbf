"""What holds for every graph recommender, whatever its layers do: an edit is the graph rebuilt, gradients too.

Another one joins by a line in ``MODELS``: an untrained model of random numbers for a graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.quality import evaluate
from cfbench_recsys.recommenders import gformer, lightgcn, simgcl
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.recommenders.masked_training import (
    ANCHORS,
    ITEM_NEARNESS,
    MATRICES,
    TOPOLOGY,
    USER_NEARNESS,
    nearness,
)
from cfbench_recsys.splits import Split
from cfbench_recsys.testing.world import split

TIGHT = {"rtol": 1e-10, "atol": 1e-11}
State = dict[str, np.ndarray]


def embeddings(graph: sparse.csr_matrix, seed: int) -> State:
    draw = np.random.default_rng(seed)
    return {
        name: draw.normal(size=(count, 4)).astype(np.float32)
        for name, count in zip((USERS, ITEMS), graph.shape, strict=True)
    }


def with_attention(graph: sparse.csr_matrix, seed: int) -> State:
    """Matrices large enough for the attention to differ from an even one."""
    draw = np.random.default_rng([seed, 1])
    users, nodes = graph.shape[0], sum(graph.shape)
    anchors = draw.choice(nodes, size=2, replace=False)
    near = nearness(graph, anchors, 4)
    matrices = {
        name: draw.normal(size=(8 if name == TOPOLOGY else 4, 4)).astype(np.float32) for name in MATRICES
    }
    topology = {ANCHORS: anchors, USER_NEARNESS: near[:users], ITEM_NEARNESS: near[users:]}
    return {**embeddings(graph, seed), **matrices, **topology}


MODELS: dict[str, tuple[Any, Any, Callable[[sparse.csr_matrix, int], State]]] = {
    "lightgcn": (lightgcn.LightGCN, lightgcn.Config, embeddings),
    "simgcl": (simgcl.SimGCL, simgcl.Config, embeddings),
    "gformer": (gformer.GFormer, gformer.Config, with_attention),
}
"""Class, configuration (with ``layers``), and a random state for a graph and a seed."""


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def loaded(name: str, graph: Any, layers: int = 3, state: State | None = None) -> Any:
    """The model on a graph (users, items), untrained unless there is a ``state``."""
    model_class, config, random_state = MODELS[name]
    interactions = sparse.csr_matrix(np.asarray(graph, dtype=float))
    model = model_class(config(layers=layers, device="cpu"))
    model.load_state(state or random_state(interactions, 0), interactions)
    return model


def edit(user: int, changes: dict[tuple[int, int], int]) -> Edits:
    """One edit: what happens to which edges, for the sake of ``user``."""
    edges = np.array(list(changes), dtype=np.int64).reshape(-1, 2)
    ops = np.array(list(changes.values()), dtype=np.int8)
    return Edits(np.array([user]), np.zeros(len(edges), dtype=np.int64), edges[:, 0], edges[:, 1], ops)


def masked(model: Any, graph: np.ndarray, user: int, mask: np.ndarray) -> np.ndarray:
    """(items,) scores when every edge of the graph has the weight that ``mask`` (users, items) says."""
    edges = np.nonzero(graph)
    delta = torch.from_numpy(mask[edges] - 1.0)
    rows = torch.zeros(len(edges[0]), dtype=torch.int64)
    scores = model.score_weighted(torch.tensor([user]), rows, *map(torch.from_numpy, edges), delta)
    return np.asarray(scores.numpy()[0])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int, int]:
    """A graph, the same after an edit of any kind, a user, and a number of layers."""
    users, items = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    cells = st.lists(st.sampled_from([0.0, 1.0]), min_size=users * items, max_size=users * items)
    graph, other = (np.array(draw(cells)).reshape(users, items) for _ in range(2))
    return graph, other, draw(st.integers(0, users - 1)), draw(st.integers(1, 4))


@settings(deadline=None, max_examples=30)
@given(world=worlds())
@pytest.mark.parametrize("model_name", MODELS)
def test_a_mask_that_keeps_every_edge_changes_nothing(
    model_name: str, world: tuple[np.ndarray, np.ndarray, int, int]
) -> None:
    graph, _, user, layers = world
    model = loaded(model_name, graph, layers)
    plain = model.score_edits(Edits.nothing(np.array([user])))[0]
    np.testing.assert_allclose(masked(model, graph, user, np.ones_like(graph)), plain, **TIGHT)


@settings(deadline=None, max_examples=60)
@given(world=worlds())
@pytest.mark.parametrize("model_name", MODELS)
def test_a_mask_is_the_graph_rebuilt_without_the_edges(
    model_name: str, world: tuple[np.ndarray, np.ndarray, int, int]
) -> None:
    """Anybody's edges; nodes that lose their last one too. As an edit, and as weights of 0."""
    graph, retained, user, layers = world
    model, rebuilt = loaded(model_name, graph, layers), graph * retained
    state = dict(model.state())
    expected = loaded(model_name, rebuilt, layers, state).score_edits(Edits.nothing(np.array([user])))[0]
    np.testing.assert_allclose(masked(model, graph, user, retained), expected, **TIGHT)
    removed = {
        (int(u), int(i)): REMOVE for u, i in zip(*np.nonzero((graph > 0) & (retained == 0)), strict=True)
    }
    np.testing.assert_allclose(model.score_edits(edit(user, removed))[0], expected, **TIGHT)


@settings(deadline=None, max_examples=60)
@given(world=worlds())
@pytest.mark.parametrize("model_name", MODELS)
def test_an_addition_is_the_graph_rebuilt_with_the_edges(
    model_name: str, world: tuple[np.ndarray, np.ndarray, int, int]
) -> None:
    """Nodes that had none too; and additions and removals in one edit."""
    graph, other, user, layers = world
    model = loaded(model_name, graph, layers)
    state = dict(model.state())
    for rebuilt in (np.maximum(graph, other), other):
        changes = {
            (int(u), int(i)): ADD if rebuilt[u, i] else REMOVE
            for u, i in zip(*np.nonzero(graph != rebuilt), strict=True)
        }
        expected = loaded(model_name, rebuilt, layers, state).score_edits(Edits.nothing(np.array([user])))
        np.testing.assert_allclose(model.score_edits(edit(user, changes)), expected, **TIGHT)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gradients_agree_with_finite_differences(name: str, layers: int) -> None:
    """Float64. Edges that are there and edges that are not, one's own and others', two edits at once."""
    draw = np.random.default_rng(4)
    graph = (draw.random((4, 5)) < 0.6).astype(float)
    model = loaded(name, graph, layers)
    users, rows = torch.tensor([0, 1]), torch.tensor([0, 0, 0, 0, 1, 1])
    edge_users, edge_items = torch.tensor([0, 0, 3, 2, 1, 2]), torch.tensor([0, 4, 1, 2, 2, 3])
    delta = torch.where(
        torch.from_numpy(graph)[edge_users, edge_items] > 0,
        -torch.linspace(0.1, 0.7, 6, dtype=torch.float64),
        torch.linspace(0.2, 0.8, 6, dtype=torch.float64),
    ).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda d: model.score_weighted(users, rows, edge_users, edge_items, d), (delta,), atol=1e-7
    )


def test_the_gradient_goes_through_the_degrees(name: str) -> None:
    """The edge of another user to an item that both have: for one layer only its degree matters to user 0."""
    graph = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    model = loaded(name, graph, layers=1)
    zero, one = torch.tensor([0]), torch.tensor([1])
    delta = torch.tensor([-0.3], dtype=torch.float64, requires_grad=True)
    scores = model.score_weighted(zero, zero, one, zero, delta)
    (gradient,) = torch.autograd.grad(scores[0, 1], delta)  # item 1 is no neighbour of user 1
    assert abs(float(gradient)) > 1e-6


def test_a_user_without_interactions_has_finite_scores_and_gradients(name: str) -> None:
    graph = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    model = loaded(name, graph)
    delta, zero = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True), torch.tensor([0])
    scores = model.score_weighted(zero, zero, zero, zero, delta)
    (gradient,) = torch.autograd.grad(scores.sum(), delta)
    assert torch.isfinite(scores).all() and torch.isfinite(gradient).all()


def test_edits_that_change_nothing_change_nothing(name: str) -> None:
    graph = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    model = loaded(name, graph, layers=2)
    plain = model.score_edits(Edits.nothing(np.array([0])))
    assert np.array_equal(model.score_edits(edit(0, {(0, 0): ADD, (1, 0): REMOVE})), plain)
    user, item = np.array([0, 0]), np.array([2, 2])
    twice = Edits(np.array([0]), np.array([0, 0]), user, item, np.array([REMOVE, REMOVE], dtype=np.int8))
    once = edit(0, {(0, 2): REMOVE})
    np.testing.assert_allclose(model.score_edits(twice), model.score_edits(once), **TIGHT)


def test_memory_grows_with_the_edges_not_with_users_times_items(name: str) -> None:
    """60,000 x 60,000 scores would take 29 GB; 120,000 edges and a block of edits take a small part of one."""
    nodes = 60_000
    draw = np.random.default_rng(7)
    rows, columns = np.repeat(np.arange(nodes), 2), draw.integers(0, nodes, 2 * nodes)
    graph = sparse.csr_matrix((np.ones(2 * nodes), (rows, columns)), shape=(nodes, nodes))
    graph.data[:] = 1.0
    model_class, config, random_state = MODELS[name]
    before = peak_bytes()
    model = model_class(config(device="cpu"))
    model.load_state(random_state(graph, 0), graph)
    scores = model.score_edits(edit(5, {(5, int(graph[[5]].indices[0])): REMOVE}))
    assert peak_bytes() - before < 1e9
    assert np.isfinite(scores).all()


def peak_bytes() -> int:
    """Of this process so far."""
    resource = pytest.importorskip("resource", reason="the system does not report a process's peak memory")
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def test_training_finds_what_popularity_does_not(name: str) -> None:
    data = split()
    model_class, config, _ = MODELS[name]
    model = model_class(config(dimensions=8, device="cpu"))
    summary = model.fit(data, generator)
    popular = np.asarray(data.train.sum(axis=0)).ravel()

    class Popularity:
        def score_edits(self, edits: Edits) -> np.ndarray:
            return np.tile(popular, (len(edits), 1))

    ours, theirs = (evaluate(m, data.test, data.profiles, ks=(3,)) for m in (model, Popularity()))
    assert ours["HR@3"] > theirs["HR@3"] + 0.2
    best = max(summary["history"], key=lambda look: look["NDCG@10"])
    assert summary["best_epoch"] == best["epoch"]


def test_checkpoints_are_states_of_the_training(name: str) -> None:
    """What ``checkpoint`` is given at the best evaluation is what training ends with."""
    data = split()
    model_class, config, _ = MODELS[name]
    model = model_class(config(dimensions=4, epochs=8, device="cpu"))
    retained: dict[int, State] = {}
    summary = model.fit(
        data, generator, checkpoint=lambda epoch, quality, state: retained.__setitem__(epoch, dict(state()))
    )
    assert list(retained) == [look["epoch"] for look in summary["history"]]
    final = model.state()
    assert all(np.array_equal(retained[summary["best_epoch"]][key], final[key]) for key in final)


def test_equal_seeds_give_equal_weights_and_others_give_others(name: str) -> None:
    model_class, config, _ = MODELS[name]

    def state(seed: str) -> State:
        model = model_class(config(dimensions=4, epochs=6, device="cpu"))
        model.fit(split(), lambda *names: generator(seed, *names))
        return dict(model.state())

    first, again, other = state("a"), state("a"), state("b")
    assert all(np.array_equal(first[key], again[key]) for key in first)
    assert not all(np.array_equal(first[key], other[key]) for key in first)


def test_users_whom_training_never_sees_are_refused(name: str) -> None:
    data = split()
    train = data.train.tolil()
    train[10] = 0.0
    unseen = Split(train.tocsr(), data.profiles, data.validation, data.test, data.explainable)
    model_class, config, _ = MODELS[name]
    with pytest.raises(UserError, match=f"{name}: 1 users have no training interactions"):
        model_class(config()).fit(unseen, generator)


def test_a_state_for_other_data_is_refused(name: str) -> None:
    model = loaded(name, np.eye(3), layers=1)
    with pytest.raises(UserError, match=f"{name}: weights: .* must be"):
        model.load_state(model.state(), sparse.csr_matrix(np.ones((2, 3))))
