"""What may be added is not there yet, is few, and is in scope once it is there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_explainers_gnn.possible_edits import AdditionsConfig, possible_additions, possible_edits
from cfbench_recsys.edits import ADD, REMOVE
from cfbench_recsys.scopes import edges_in_scope

GRAPH = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
MakeWorld = Callable[..., Any]


def added(world: Any, scope: str, user: int, item: int, **options: int) -> set[tuple[int, int]]:
    targets = world.targets(1, "item", scope, additions=True)
    row = targets.users.tolist().index(user)
    assert targets.items[row].tolist() == [item]
    one = targets.take(np.array([row]))
    edits = possible_additions(one, world.context, AdditionsConfig(**options))
    return set(zip(edits.edge_users.tolist(), edits.edge_items.tolist(), strict=True))


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("user-only", {(0, 2), (0, 3)}),  # never the explained item 1
        ("indirect", set()),  # no user of item 1 has item 2 or 3; user 1, who shares item 0, has item 1
        ("k-hop", {(0, 2), (0, 3), (1, 2), (1, 3)}),
        ("full", {(0, 2), (0, 3), (1, 2), (1, 3)}),  # user 2 has no neighbour
    ],
)
def test_the_additions_of_a_graph_that_fits_on_a_line(
    scope: str, expected: set[tuple[int, int]], lightgcn_with: MakeWorld
) -> None:
    world = lightgcn_with(GRAPH, users=[[1], [1], [0]], items=[[1], [1], [0.2], [0.1]])
    assert added(world, scope, 0, 1) == expected


def test_the_next_in_the_ranking_come_first(lightgcn_with: MakeWorld) -> None:
    world = lightgcn_with(GRAPH, users=[[1], [1], [0]], items=[[1], [1], [0.1], [0.2]])
    assert added(world, "full", 0, 1, own=1, rivals=0, neighbours=0) == {(0, 3)}
    assert added(world, "full", 0, 1, own=0, rivals=1) == {(1, 3)}


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    scope=st.sampled_from(["user-only", "indirect", "k-hop", "full"]),
    level=st.sampled_from(["item", "list"]),
    hops=st.integers(1, 3),
)
def test_each_addition_is_in_scope_once_it_is_there(
    seed: int, scope: str, level: str, hops: int, graph_world: MakeWorld
) -> None:
    world = graph_world("lightgcn", seed, users=6, items=9, density=0.2)
    targets = dataclasses.replace(world.targets(2, level, scope, additions=True), hops=hops)
    few = AdditionsConfig(own=4, rivals=2, neighbours=3)
    edits = possible_additions(targets, world.context, few)
    assert (np.diff(edits.rows) >= 0).all()
    assert (edits.counts() <= 4 + 3 * (2 + targets.items.shape[1])).all()
    for row, user, item in zip(edits.rows, edits.edge_users, edits.edge_items, strict=True):
        assert not world.graph[user, item]
        assert user != targets.users[row] or item not in targets.items[row]
        graph = world.graph.tolil()
        graph[user, item] = 1.0
        one = targets.take(np.array([row]))
        if scope == "user-only":
            assert user == targets.users[row]
            continue
        there = edges_in_scope(graph.tocsr(), one)
        assert (user, item) in set(zip(there.users.tolist(), there.items.tolist(), strict=True))


def test_removals_come_first_and_are_the_scope(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 8)
    targets = world.targets(2, "item", "k-hop", additions=True)
    scope = edges_in_scope(world.graph, targets)
    edits = possible_edits(targets, world.context, AdditionsConfig())
    removals = edits.where(edits.ops == REMOVE)
    assert np.array_equal(removals.rows, scope.rows) and np.array_equal(removals.edge_items, scope.items)
    assert (edits.ops == ADD).any()
    alone = dataclasses.replace(targets, additions=False)
    assert np.array_equal(possible_edits(alone, world.context).edge_users, scope.users)
