from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_explainers_native.grease import Config, Grease, lengths_between
from cfbench_recsys import soft_edits
from cfbench_recsys.answers import count_displaced
from cfbench_recsys.edits import REMOVE, Edits
from cfbench_recsys.ranking import top_k
from cfbench_recsys.recommenders.lightgcn import Config as LightGCNConfig
from cfbench_recsys.recommenders.lightgcn import LightGCN
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.scoring import score_once
from cfbench_recsys.targets import Context, Targets


def graph_of(users: int, items: int, seed: int) -> sparse.csr_matrix:
    """Two tastes: a user mostly takes items of one half."""
    draw = np.random.default_rng(seed)
    own = (np.arange(users) % 2)[:, None] == (np.arange(items) % 2)[None, :]
    taken = draw.random((users, items)) < np.where(own, 0.25, 0.03)
    taken[np.arange(users), np.arange(users) % items] = True
    return sparse.csr_matrix(taken.astype(float))


def context_of(graph: sparse.csr_matrix, layers: int = 2, seed: int = 0) -> Context:
    """LightGCN with embeddings that know the tastes a little."""
    draw = np.random.default_rng(seed)
    taste = [np.where(np.arange(n) % 2 == 0, 0.5, -0.5)[:, None] for n in graph.shape]
    model = LightGCN(LightGCNConfig(dimensions=8, layers=layers))
    state = [
        (draw.normal(size=(n, 8)) + side).astype(np.float32)
        for n, side in zip(graph.shape, taste, strict=True)
    ]
    model.load_state({"user_embedding.weight": state[0], "item_embedding.weight": state[1]}, graph)
    return Context(model, graph, graph, lambda *names: np.random.default_rng(0))


def lists_of(context: Context, users: np.ndarray, k: int, scope: str, level: str) -> Targets:
    graph = context.interactions
    all_users = Targets.of(graph, users, np.zeros((len(users), 1)), k, level, scope)
    scores = score_once(context.model, Edits.nothing(users), graph)
    lists = top_k(scores, all_users.history, all_users.padding, k)
    if level == "list":
        return Targets.of(graph, users, lists, k, level, scope)
    return Targets.of(graph, np.repeat(users, k), lists.reshape(-1, 1), k, level, scope)


@pytest.fixture(scope="module")
def shop() -> Context:
    return context_of(graph_of(40, 30, seed=1))


USERS = np.arange(12)


def displaced_by(context: Context, targets: Targets, edits: Edits) -> np.ndarray:
    return count_displaced(context.model, targets, edits, np.arange(len(targets)), context.interactions)


def single_edges_that_work(context: Context, targets: Targets) -> np.ndarray:
    """(B,) whether some edge in scope, removed alone, displaces the target: every one is tried."""
    scope = edges_in_scope(context.interactions, targets)
    rows = np.arange(len(scope.rows))
    ops = np.full(len(rows), REMOVE, dtype=np.int8)
    edits = Edits(targets.users[scope.rows], rows, scope.users, scope.items, ops)
    succeeds = count_displaced(context.model, targets, edits, scope.rows, context.interactions) > 0
    return np.bincount(scope.rows[succeeds], minlength=len(targets)) > 0


def test_the_only_edge_that_links_a_user_to_the_target_is_removed() -> None:
    # User 0 has item 0, whose other users take item 1; item 2 is liked by others. K = 1, all embeddings equal.
    graph = sparse.csr_matrix(
        np.array([[1.0, 0, 0, 1], [1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    )
    context = context_of(graph)
    state = {"user_embedding.weight": np.eye(5, 9), "item_embedding.weight": np.eye(4, 9, 5)}
    context.model.load_state(state, graph)
    targets = Targets.of(graph, np.array([0]), np.array([[1]]), 1, "item", "user-only")
    edits = Grease(Config()).counterfactuals(targets, context).edits
    assert edits.edge_items.tolist() == [0]
    assert edits.edge_users.tolist() == [0]


@pytest.mark.parametrize("scope", ["user-only", "indirect", "k-hop", "full"])
def test_an_answer_works_on_the_recommender(shop, scope) -> None:
    targets = lists_of(shop, USERS, 3, scope, "item")
    edits = Grease(Config()).counterfactuals(targets, shop).edits
    assert np.array_equal(displaced_by(shop, targets, edits) > 0, edits.counts() > 0)
    assert (edits.counts() > 0).mean() > (0.2 if scope == "user-only" else 0.5)


def test_it_finds_much_of_what_any_set_of_the_users_interactions_can_do(shop) -> None:
    targets = lists_of(shop, USERS, 3, "user-only", "item")
    found = Grease(Config()).counterfactuals(targets, shop).edits.counts() > 0
    sets = [(unit, mask) for unit, own in enumerate((~targets.padding).sum(axis=1)) for mask in range(2**own)]
    units, masks = np.array(sets).T
    removed = masks[:, None] >> np.arange(targets.history.shape[1]) & 1 > 0
    edits = Edits.removals(targets.users[units], targets.history[units], removed)
    succeeds = count_displaced(shop.model, targets, edits, units, shop.interactions) > 0
    possible = np.bincount(units[succeeds], minlength=len(targets)) > 0
    assert not (found & ~possible).any()
    assert found.sum() >= 0.5 * possible.sum()


def test_where_one_edge_suffices_it_mostly_finds_one(shop) -> None:
    targets = lists_of(shop, USERS, 3, "k-hop", "item")
    edits = Grease(Config()).counterfactuals(targets, shop).edits
    possible = single_edges_that_work(shop, targets)
    assert possible.mean() > 0.2
    assert (edits.counts()[possible] == 1).mean() > 0.7


def test_a_list_loses_more_than_one_item(shop) -> None:
    targets = lists_of(shop, USERS, 3, "k-hop", "list")
    edits = Grease(Config()).counterfactuals(targets, shop).edits
    assert displaced_by(shop, targets, edits).mean() > 2


def test_an_item_outside_the_users_reach_has_no_answer() -> None:
    # The user's own edges do not change that item 1 is liked for its own embedding.
    graph = sparse.csr_matrix(np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 1]]))
    context = context_of(graph)
    ones = np.ones((3, 1))
    context.model.load_state(
        {"user_embedding.weight": ones, "item_embedding.weight": np.array([[0.0], [100.0], [1.0]])}, graph
    )
    targets = Targets.of(graph, np.array([0]), np.array([[1]]), 1, "item", "user-only")
    assert Grease(Config()).counterfactuals(targets, context).edits.counts().tolist() == [0]


def test_fidelity_is_one_where_embeddings_are_what_neighbours_say() -> None:
    graph = graph_of(12, 10, seed=3)
    matrix = np.block([[np.zeros((12, 12)), graph.toarray()], [graph.toarray().T, np.zeros((10, 10))]])
    roots = matrix.sum(axis=1) ** -0.5
    values, vectors = np.linalg.eigh(roots[:, None] * matrix * roots)
    smooth = vectors[:, np.argsort(-values)[:4]]  # the graph only scales them

    class Smooth:
        def user_embeddings(self):
            return smooth[:12]

        def item_embeddings(self):
            return smooth[12:]

        def score_edits(self, edits):
            return smooth[edits.users] @ smooth[12:].T

    context = dataclasses.replace(context_of(graph), model=Smooth())
    targets = lists_of(context, np.arange(6), 3, "k-hop", "item")
    details = Grease(Config(ridge=1e-9)).counterfactuals(targets, context).details
    assert np.allclose(details["surrogate fidelity"], 1)
    assert (details["surrogate list"] == 1).all()


def test_fidelity_is_reported_for_each_unit(shop) -> None:
    targets = lists_of(shop, USERS, 3, "k-hop", "item")
    details = Grease(Config()).counterfactuals(targets, shop).details
    assert details["surrogate fidelity"].shape == details["surrogate list"].shape == (len(targets),)
    assert 0.7 < details["surrogate fidelity"].mean() < 1
    assert 0.3 < details["surrogate list"].mean() < 1


@settings(deadline=None, max_examples=10)
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_answers_do_not_depend_on_the_batch_bit_by_bit(data: st.DataObject, seed: int) -> None:
    """Random graphs, batches and orders, with the grid of gradients switched off: nothing may rest on it."""
    context = context_of(graph_of(40, 30, seed), layers=data.draw(st.integers(1, 3)), seed=seed)
    scope, level = data.draw(st.sampled_from([("k-hop", "item"), ("user-only", "list")]))
    targets = lists_of(context, USERS, 2, scope, level)
    order = np.array(data.draw(st.permutations(range(len(targets))))[: data.draw(st.integers(1, 8))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soft_edits, "GRID", 2.0**50)
        together = Grease(Config(steps=15)).counterfactuals(targets.take(order), context)
        for place, row in enumerate(order):
            alone = Grease(Config(steps=15)).counterfactuals(targets.take(np.array([row])), context)
            own = together.edits.take(place, place + 1)
            for name in ("edge_users", "edge_items", "ops"):
                assert np.array_equal(getattr(own, name), getattr(alone.edits, name))
            for name, values in alone.details.items():
                assert values.tobytes() == together.details[name][place : place + 1].tobytes()


def test_each_unit_stands_alone(shop) -> None:
    targets = lists_of(shop, USERS, 3, "k-hop", "item")
    together = Grease(Config()).counterfactuals(targets, shop).edits
    alone = Grease(Config(edges=1)).counterfactuals(targets, shop).edits
    for name in ("rows", "edge_users", "edge_items"):
        assert np.array_equal(getattr(together, name), getattr(alone, name))


def test_awkward_users() -> None:
    draw = np.random.default_rng(4)
    taken = draw.random((30, 900)) < 0.03
    taken[0], taken[0, 5] = False, True
    taken[1], taken[1, [2, 7]] = False, True
    taken[2] = np.arange(900) < 800
    context = context_of(sparse.csr_matrix(taken.astype(float)))
    for scope in ("user-only", "k-hop"):
        targets = lists_of(context, np.arange(3), 1, scope, "item")
        edits = Grease(Config()).counterfactuals(targets, context).edits
        assert np.array_equal(displaced_by(context, targets, edits), edits.counts() > 0)


def test_prefixes_are_all_tried_or_spread_out() -> None:
    assert lengths_between(0, 1).tolist() == []
    assert lengths_between(0, 5).tolist() == [1, 2, 3, 4]
    some = lengths_between(10, 1000)
    assert some[0] == 11
    assert some[-1] == 999
    assert len(some) <= 16
