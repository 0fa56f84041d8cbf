"""Scope and budget of answers: membership against the whole scope written out, and messages that name unit and edit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_recsys.answer_limits import check_edges, check_limits, in_scope
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Targets


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scope=st.sampled_from(["user-only", "indirect", "k-hop", "full"]),
    hops=st.integers(1, 4),
    level=st.sampled_from(["item", "list"]),
)
def test_every_pair_of_a_user_and_an_item_is_in_scope_as_the_whole_scope_says(
    seed: int, scope: str, hops: int, level: str
) -> None:
    """An edge that exists is in the scope of the graph; one to be added, in that of the graph with it."""
    draw = np.random.default_rng(seed)
    dense = (draw.random((5, 7)) < 0.25).astype(float)
    dense[:, 5:] = 0.0  # two items that nobody has: the explained ones are candidates of everybody
    dense[1:, 5:] = draw.random((4, 2)) < 0.4
    graph = sparse.csr_matrix(dense)
    items = np.array([[5, 6]]) if level == "list" else np.array([[5]])
    one = Targets.of(graph, np.array([0]), items, 2, level, scope, hops=hops)  # type: ignore[arg-type]
    users, columns = np.divmod(np.arange(35), 7)
    exists = dense[users, columns] > 0
    ops = np.where(exists, REMOVE, ADD).astype(np.int8)
    edits = Edits(one.users, np.zeros(35, dtype=np.int64), users, columns, ops)
    found = in_scope(edits, one, graph)
    for user, item, inside in zip(users, columns, found, strict=True):
        if user == 0 and item in items[0] and not dense[user, item]:
            continue  # with this edge the explained item would be one of the user's
        there = dense.copy()
        there[user, item] = 1.0
        with_it = sparse.csr_matrix(there)
        around = replace(
            Targets.of(with_it, one.users, one.items, 2, level, scope),  # type: ignore[arg-type]
            hops=hops,
        )
        scoped = edges_in_scope(with_it, around)
        assert inside == ((user, item) in set(zip(scoped.users, scoped.items, strict=True)))


def shop() -> tuple[Interactions, sparse.csr_matrix, Targets]:
    """anna has a and b, bob has b and c, carl has d. Explained to anna: c."""
    dense = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    graph = sparse.csr_matrix(dense)
    names = np.array(["anna", "bob", "carl"], dtype=object), np.array(["a", "b", "c", "d"], dtype=object)
    interactions = Interactions("shop", graph, *names, names[1])
    return interactions, graph, Targets.of(graph, np.array([0]), np.array([[2]]), 1, "item", "k-hop")


def edits_of(targets: Targets, *edges: tuple[int, int]) -> Edits:
    users, items = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    rows, ops = np.zeros(len(edges), dtype=np.int64), np.full(len(edges), REMOVE, dtype=np.int8)
    return Edits(targets.users, rows, users, items, ops)


def test_an_answer_within_scope_and_budget_passes() -> None:
    interactions, graph, targets = shop()
    units = pd.Series(["anna/c"])
    check_limits(edits_of(targets, (0, 0), (1, 1)), replace(targets, max_edits=2), graph, units, interactions)
    check_limits(edits_of(targets), targets, graph, units, interactions)


def test_an_edit_outside_its_scope_is_named_with_its_unit() -> None:
    interactions, graph, targets = shop()
    message = r"unit 'anna/c' edits \(carl, d\), outside its scope k-hop-3"
    with pytest.raises(UserError, match=message):
        check_limits(edits_of(targets, (0, 0), (2, 3)), targets, graph, pd.Series(["anna/c"]), interactions)


def test_one_edit_more_than_the_protocol_allows_is_named_with_its_unit() -> None:
    interactions, graph, targets = shop()
    message = r"unit 'anna/c' has 2 edits, \(bob, b\) is one too many: 'protocol.max_edits' is 1"
    with pytest.raises(UserError, match=message):
        limited = replace(targets, max_edits=1)
        check_limits(edits_of(targets, (0, 0), (1, 1)), limited, graph, pd.Series(["anna/c"]), interactions)


def test_answers_beyond_the_budget_become_none_where_an_explainer_wants_that() -> None:
    _, _, targets = shop()
    edits = edits_of(targets, (0, 0), (1, 1))
    assert replace(targets, max_edits=1).within_budget(edits).counts().tolist() == [0]
    assert replace(targets, max_edits=2).within_budget(edits).counts().tolist() == [2]
    assert targets.within_budget(edits).counts().tolist() == [2]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_edges_pass_exactly_when_each_is_named_once_and_as_the_graph_has_it(seed: int) -> None:
    draw = np.random.default_rng(seed)
    dense = (draw.random((4, 5)) < 0.5).astype(float)
    names = np.array(list("abcd"), dtype=object), np.array(list("vwxyz"), dtype=object)
    graph = sparse.csr_matrix(dense)
    interactions = Interactions("drawn", graph, *names, names[1])
    targets = Targets.of(graph, np.array([0, 1]), np.array([[0], [1]]), 1, "item", "full", True)
    count = int(draw.integers(0, 5))
    rows = np.sort(draw.integers(0, 2, count))
    users, items = draw.integers(0, 4, count), draw.integers(0, 5, count)
    ops = np.where(draw.random(count) < 0.9, np.where(dense[users, items] > 0, REMOVE, ADD), REMOVE)
    edges = list(zip(rows.tolist(), users.tolist(), items.tolist(), strict=True))
    right = len(set(edges)) == count and all(
        (dense[user, item] > 0) == (op == REMOVE)
        for (_, user, item), op in zip(edges, ops.tolist(), strict=True)
    )
    edits = Edits(targets.users, rows, users, items, ops.astype(np.int8))
    units = pd.Series(["a/v", "b/w"])
    if right:
        check_edges(edits, targets, graph, units, interactions)
    else:
        with pytest.raises(UserError, match=r"unit '(a/v|b/w)' (names|adds|removes) an interaction "):
            check_edges(edits, targets, graph, units, interactions)
