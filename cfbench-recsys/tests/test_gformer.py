"""GFormer: by hand, against the model written out densely, and what its training hides.

What holds for every graph recommender is in ``test_graph_recommenders.py``; the attention by itself in
``test_graph_attention.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

from cfbench_core.devices.training_steps import TrainingSteps
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.recommenders.gformer import Config, GFormer
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.recommenders.lightgcn import Config as LightConfig
from cfbench_recsys.recommenders.lightgcn import LightGCN
from cfbench_recsys.recommenders.masked_training import (
    ANCHORS,
    ITEM_NEARNESS,
    KEY,
    QUERY,
    TOPOLOGY,
    USER_NEARNESS,
    MaskedTraining,
    draw_weighted,
    nearness,
)
from cfbench_recsys.testing.world import split

TIGHT = {"rtol": 1e-10, "atol": 1e-11}
State = dict[str, np.ndarray]
GRAPH = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 0]], dtype=float)


def random_state(graph: np.ndarray, seed: int, d: int = 4, anchors: int = 2) -> State:
    draw = np.random.default_rng(seed)
    users, items = graph.shape
    chosen = draw.choice(users + items, size=anchors, replace=False)
    near = nearness(sparse.csr_matrix(graph), chosen, 4)
    shapes = {USERS: (users, d), ITEMS: (items, d), QUERY: (d, d), KEY: (d, d)}
    shapes[TOPOLOGY] = (2 * d, d)
    state = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return {**state, ANCHORS: chosen, USER_NEARNESS: near[:users], ITEM_NEARNESS: near[users:]}


def loaded(graph: np.ndarray, state: State, **options: Any) -> GFormer:
    model = GFormer(Config(device="cpu", **options))
    model.load_state(state, sparse.csr_matrix(graph))
    return model


def all_scores(model: GFormer | LightGCN, users: int) -> np.ndarray:
    return model.score_edits(Edits.nothing(np.arange(users)))


def dense_strengths(state: State, heads: int) -> np.ndarray:
    """(nodes, nodes) a of all pairs by the docstrings of ``gformer.py`` and ``graph_attention.py``; float64."""
    own = np.vstack([state[USERS], state[ITEMS]]).astype(float)
    near = np.vstack([state[USER_NEARNESS], state[ITEM_NEARNESS]]).astype(float)
    inputs, anchors = own.copy(), state[ANCHORS]
    for n in range(len(own)):
        for a, anchor in enumerate(anchors):
            both = np.concatenate([own[n], own[anchor]])
            inputs[n] += near[n, a] * (both @ state[TOPOLOGY]) / len(anchors)
    columns = own.shape[1] // heads
    total = np.zeros((len(own),) * 2)
    for head in range(heads):
        part = slice(head * columns, (head + 1) * columns)
        query, key = (inputs @ state[name][:, part] for name in (QUERY, KEY))
        total += np.exp(3.0 * np.tanh(query @ key.T / math.sqrt(columns) / 3.0))
    mean: np.ndarray = (total + total.T) / (2 * heads)
    return mean


def dense_scores(
    weights: np.ndarray, state: State, heads: int, layers: int, uniform: bool = False
) -> np.ndarray:
    """(users, items) the docstring of ``gformer.py``, equation by equation, on the matrix over all nodes."""
    users = len(weights)
    adjacency = np.zeros((sum(weights.shape),) * 2)
    adjacency[:users, users:] = weights
    adjacency += adjacency.T
    if not uniform:
        adjacency *= dense_strengths(state, heads)
    degrees = adjacency.sum(axis=1)
    roots = np.array([degree**-0.5 if degree > 0 else 0.0 for degree in degrees])
    step = roots[:, None] * adjacency * roots
    of_layers = [np.vstack([state[USERS], state[ITEMS]]).astype(float)]
    for _ in range(layers):
        of_layers.append(step @ of_layers[-1])
    final = np.mean(of_layers, axis=0)
    return np.asarray(final[:users] @ final[users:].T)


def test_one_user_one_layer_by_hand() -> None:
    """User 0 has items 0 and 1; one number for each node, all matrices 1, no anchors.

    The user's embedding is 0, so every product of a query and a key is 0 and every strength 1. Degrees 2, 1, 1:
    F_user = (0 + (2 + 4)/sqrt 2)/2, F_item0 = 2/2.
    """
    one = np.ones((1, 1), dtype=np.float32)
    state = {
        USERS: 0 * one,
        ITEMS: np.array([[2.0], [4.0]], dtype=np.float32),
        **dict.fromkeys((QUERY, KEY), one),
        TOPOLOGY: np.ones((2, 1), dtype=np.float32),
        ANCHORS: np.empty(0, dtype=np.int64),
        USER_NEARNESS: np.empty((1, 0), dtype=np.float32),
        ITEM_NEARNESS: np.empty((2, 0), dtype=np.float32),
    }
    graph = np.array([[1.0, 1.0]])
    root = 2**0.5
    assert all_scores(loaded(graph, state, layers=1, heads=1), 1)[0, 0] == pytest.approx(3 / root, rel=1e-12)

    # With a user of 1, strengths are exp(3 tanh(2/3)) and exp(3 tanh(4/3)).
    a, b = (math.exp(3 * math.tanh(number / 3)) for number in (2.0, 4.0))
    model = loaded(graph, {**state, USERS: one}, layers=1, heads=1)
    user = (1 + (2 * a / math.sqrt(a) + 4 * b / math.sqrt(b)) / math.sqrt(a + b)) / 2
    item = (2 + a / math.sqrt(a * (a + b))) / 2
    assert all_scores(model, 1)[0, 0] == pytest.approx(user * item, rel=1e-12)

    without = Edits(np.array([0]), np.array([0]), np.array([0]), np.array([1]), np.array([REMOVE], np.int8))
    expected = (1 + 2) / 2 * (2 + 1) / 2  # the only edge: it counts 1 however strong it is
    assert model.score_edits(without)[0, 0] == pytest.approx(expected, rel=1e-12)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A graph and weights in [0, 1] of all possible edges, nodes without any among them."""
    users, items = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    weight = st.sampled_from([0.0, 0.0, 0.25, 0.7, 1.0])
    cells = st.lists(weight, min_size=users * items, max_size=users * items)
    graph, weights = (np.array(draw(cells)).reshape(users, items) for _ in range(2))
    return (graph > 0.5).astype(float), weights


@settings(deadline=None, max_examples=80)
@given(worlds(), st.sampled_from([1, 2, 4]), st.integers(1, 3))
def test_any_weights_of_edges_score_as_the_dense_model(
    world: tuple[np.ndarray, np.ndarray], heads: int, layers: int
) -> None:
    """The graph as it is, and with weights: existing edges lowered, others raised, each user's own version."""
    graph, weights = world
    state = random_state(graph, 0)
    model = loaded(graph, state, heads=heads, layers=layers)
    expected = dense_scores(graph, state, heads, layers)
    np.testing.assert_allclose(all_scores(model, len(graph)), expected, **TIGHT)

    users = torch.arange(len(graph))
    rows = users.repeat_interleave(graph.size)
    edges = [torch.from_numpy(np.tile(part.ravel(), len(graph))) for part in np.indices(graph.shape)]
    delta = torch.from_numpy(np.tile((weights - graph).ravel(), len(graph)))
    found = model.score_weighted(users, rows, *edges, delta).numpy()
    np.testing.assert_allclose(found, dense_scores(weights, state, heads, layers), **TIGHT)


def test_the_attention_reaches_the_score() -> None:
    """Queries, keys, and the distances to anchors: each changes the scores. With uniform weights it is LightGCN."""
    state = random_state(GRAPH, 1)
    model = loaded(GRAPH, state)
    plain = all_scores(model, 3)
    for name in (QUERY, KEY, TOPOLOGY, USER_NEARNESS, ITEM_NEARNESS):
        changed = {**state, name: 2 * state[name]}
        assert np.abs(all_scores(loaded(GRAPH, changed), 3) - plain).max() > 1e-3, name

    light = LightGCN(LightConfig(device="cpu"))
    light.load_state({name: state[name] for name in (USERS, ITEMS)}, sparse.csr_matrix(GRAPH))
    uniform = model.with_uniform_attention()
    np.testing.assert_allclose(all_scores(uniform, 3), all_scores(light, 3), **TIGHT)
    np.testing.assert_allclose(
        all_scores(uniform, 3), dense_scores(GRAPH, state, 4, 3, uniform=True), **TIGHT
    )
    edits = Edits(np.array([0]), np.array([0]), np.array([1]), np.array([1]), np.array([ADD], np.int8))
    np.testing.assert_allclose(uniform.score_edits(edits), light.score_edits(edits), **TIGHT)
    np.testing.assert_array_equal(all_scores(model, 3), plain)


def test_training_moves_the_attention_and_lists_depend_on_it() -> None:
    """All matrices learn, the anchors stay; without the attention the lists of many users differ."""
    model, training = training_of()
    start = training.state()
    for _ in range(60):
        training.epoch(model.loss, TrainingSteps("gformer", ""))
    learned, train = training.state(), split().train
    for name in (QUERY, KEY, TOPOLOGY):
        assert np.abs(learned[name] - start[name]).max() > 1e-2, name
    for name in (ANCHORS, USER_NEARNESS, ITEM_NEARNESS):
        assert np.array_equal(learned[name], start[name])

    model.load_state(learned, train)
    users = np.flatnonzero(np.diff(train.indptr))
    ways = []
    for each in (model, model.with_uniform_attention()):
        scores = np.where(train[users].toarray() > 0, -np.inf, each.score_edits(Edits.nothing(users)))
        ways.append(np.argsort(-scores, axis=1)[:, :5])
    assert (ways[0] != ways[1]).any(axis=1).mean() > 0.2


def test_nearness_is_the_inverse_distance_in_edges() -> None:
    """A path 0-a-1-b-2 with an island (user 3, item c), by hand; then a random graph by another's shortest paths."""
    path = sparse.csr_matrix(np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=float))
    from_user_0 = nearness(path, np.array([0]), 3)[:, 0]
    np.testing.assert_allclose(from_user_0, [1, 1 / 3, 0, 0, 1 / 2, 1 / 4, 0], rtol=1e-6)

    graph = (np.random.default_rng(2).random((12, 15)) < 0.12).astype(float)
    whole = sparse.bmat([[None, graph], [graph.T, None]], format="csr")
    anchors = np.array([3, 14, 26])
    distances = csgraph.shortest_path(whole, unweighted=True, indices=anchors).T
    expected = np.where(distances <= 5, 1 / (distances + 1), 0.0)
    np.testing.assert_allclose(nearness(sparse.csr_matrix(graph), anchors, 5), expected, rtol=1e-6)


def test_anchors_are_part_of_the_model_and_not_measured_anew() -> None:
    """On another graph the distances are those of the training graph."""
    state = random_state(GRAPH, 3)
    other = GRAPH.copy()
    other[0, 1] = 0.0
    expected = dense_scores(other, state, 4, 3)
    np.testing.assert_allclose(all_scores(loaded(other, state), 3), expected, **TIGHT)


def training_of(**options: Any) -> tuple[GFormer, MaskedTraining]:
    model = GFormer(Config(dimensions=8, device="cpu", **options))
    return model, model.training(split().train, generator("gformer", "test"))


def test_an_epoch_hides_the_configured_share_of_edges() -> None:
    """What is hidden and what is shown make up the graph, and it is another part in the next epoch."""
    model, training = training_of(masked=0.25, independence=0.1)
    edges = split().train.nnz
    parts = []
    for _ in range(2):
        training.epoch(model.loss, TrainingSteps("gformer", ""))
        assert training.hidden is not None
        shown, hidden = (
            view.by_user.matrix(torch.ones(len(view.by_user))).to_dense().numpy()
            for view in (training.shown, training.hidden)
        )
        assert hidden.sum() == int(0.25 * edges)
        assert np.array_equal(shown + hidden, split().train.toarray())
        parts.append(hidden)
    assert not np.array_equal(*parts)


def test_hidden_edges_are_ranked_but_not_encoded() -> None:
    """Final embeddings of the batch come from the shown edges; the loss pulls on hidden pairs all the same."""
    model, training = training_of(masked=0.0, l2=0.0)
    train = split().train
    user = 5
    items = train[[user]].indices
    rest = train.tolil()
    rest[user] = 0.0
    training.shown = type(training.whole).of(rest.tocsr(), training.device)
    model.loss(training, np.full(len(items), user), items)(slice(0, len(items))).backward()
    with_pairs = training.users.grad[user].norm()
    assert with_pairs > 1e-4
    seen = training.encoded(training.over(training.shown))
    torch.testing.assert_close(seen[0][user], training.users[user] / 4)  # nothing reaches it over an edge


def test_the_contrast_adds_the_likeness_of_the_two_views() -> None:
    """independence times log mean exp cos of one layer over either part, 0 of a node without edges there."""
    losses = []
    for independence in (0.0, 0.5):
        model, training = training_of(independence=independence)
        train = split().train
        half = np.arange(train.nnz) % 2 == 0
        parts = []
        for retained in (half, ~half):
            part = train.tocoo()
            shape = train.shape
            parts.append(
                sparse.csr_matrix(
                    (part.data[retained], (part.row[retained], part.col[retained])), shape=shape
                )
            )
        training.shown, training.hidden = (type(training.whole).of(part, training.device) for part in parts)
        users, items = train.nonzero()
        losses.append(float(model.loss(training, users, items)(slice(0, len(users))).detach()))
    both = [training.over(view) for view in (training.shown, training.hidden)]
    views = [(layer.to_users(training.items), layer.to_items(training.users)) for layer in both]
    cosines = []
    for first, second in zip(
        *(torch.cat(view).detach().numpy().astype(float) for view in views), strict=True
    ):
        length = np.linalg.norm(first) * np.linalg.norm(second)
        cosines.append(first @ second / length if length else 0.0)
    expected = 0.5 * np.log(np.mean(np.exp(cosines)))
    assert losses[1] - losses[0] == pytest.approx(expected, rel=1e-3)


def test_the_rationale_follows_the_attention() -> None:
    """The mean over both ends of an edge's share of the strengths there, times the number of edges."""
    _, training = training_of(heads=2)
    graph = split().train.toarray()
    strengths = graph * dense_strengths(training.state(), 2)[: len(graph), len(graph) :]
    expected = np.zeros(graph.shape)
    for axis in (0, 1):
        total = strengths.sum(axis, keepdims=True)
        share = np.divide(strengths, total, where=total > 0, out=np.zeros_like(strengths))
        expected += share * graph.sum(axis, keepdims=True) / 2
    np.testing.assert_allclose(training.rationale(), expected[graph.nonzero()], rtol=1e-4)


def test_edges_of_more_weight_are_drawn_more_often() -> None:
    """Odds 6:3:1, two of three drawn: the chances of sampling without replacement, from 4,000 draws."""
    random = np.random.default_rng(5)
    weights = np.array([6.0, 3.0, 1.0])
    counts = sum(draw_weighted(weights, 2, random).astype(float) for _ in range(4000))
    share = weights / 10
    left_out = [
        sum(share[a] * share[b] / (1 - share[a]) for a in range(3) for b in range(3) if len({a, b, c}) == 3)
        for c in range(3)
    ]
    np.testing.assert_allclose(counts / 4000, 1 - np.array(left_out), atol=0.03)
    assert draw_weighted(weights, 0, random).sum() == 0


def test_a_loaded_model_scores_as_the_fitted_one() -> None:
    data = split()
    model, again = (GFormer(Config(dimensions=4, epochs=4, device="cpu")) for _ in range(2))
    model.fit(data, generator)
    again.load_state(model.state(), data.profiles)
    ops = np.array([ADD, REMOVE, REMOVE], dtype=np.int8)
    edges = np.array([8, 9, 7]), np.array([0, 1, int(data.profiles[[7]].indices[0])])
    edits = Edits(np.array([7, 8]), np.array([0, 0, 1]), *edges, ops)
    assert np.array_equal(model.score_edits(edits), again.score_edits(edits))


def test_no_anchors_at_all() -> None:
    data = split()
    model = GFormer(Config(dimensions=4, epochs=2, anchors=0, device="cpu"))
    model.fit(data, generator)
    assert model.state()[USER_NEARNESS].shape == (90, 0)
    assert np.isfinite(all_scores(model, 90)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({QUERY: np.zeros((3, 4))}, r"query.weight must be \(4, 4\), is \(3, 4\)"),
        ({ANCHORS: np.array([0, 7])}, r"anchors must be in 0..6"),
        ({USER_NEARNESS: np.zeros((3, 5))}, r"user_nearness must be \(3, 2\), is \(3, 5\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused(change: State, message: str) -> None:
    with pytest.raises(UserError, match=message):
        loaded(GRAPH, {**random_state(GRAPH, 0), **change})


def test_heads_must_share_the_dimensions() -> None:
    with pytest.raises(UserError, match="dimensions 6 cannot be divided among 4 heads"):
        GFormer(Config(dimensions=6))
    with pytest.raises(UserError, match="4 dimensions for 3 heads"):
        loaded(GRAPH, random_state(GRAPH, 0), heads=3, dimensions=6)
