"""Edges in scope, against paths written out and a search level by level."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Targets

Edge = tuple[int, int]


def graph_of(edges: set[Edge], users: int, items: int) -> sparse.csr_matrix:
    dense = np.zeros((users, items))
    for user, item in edges:
        dense[user, item] = 1.0
    return sparse.csr_matrix(dense)


def found(
    edges: set[Edge], users: int, items: int, units: list[tuple[int, list[int]]], scope: str, hops: int = 2
) -> list[set[Edge]]:
    """The edges of each unit, as sets of pairs."""
    graph = graph_of(edges, users, items)
    level = "item" if len(units[0][1]) == 1 else "list"
    targets = Targets.of(
        graph,
        np.array([u for u, _ in units]),
        np.array([i for _, i in units]),
        2,
        level,
        scope,  # type: ignore[arg-type]
        hops=hops,
    )
    scoped = edges_in_scope(graph, targets)
    assert (np.diff(scoped.rows) >= 0).all()
    pairs = list(zip(scoped.rows.tolist(), scoped.users.tolist(), scoped.items.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return [{(u, i) for row, u, i in pairs if row == unit} for unit in range(len(units))]


def on_paths(edges: set[Edge], user: int, targets: list[int]) -> set[Edge]:
    """The edges of every path user - item' - user' - target."""
    result = set()
    for start, shared in edges:
        for other, same in edges:
            for end, target in edges:
                if start == user != other == end and shared == same and target in targets:
                    result |= {(user, shared), (other, shared), (other, target)}
    return result


def within_hops(edges: set[Edge], user: int, targets: list[int], hops: int) -> set[Edge]:
    """Breadth-first search from the user and from each target: the edges met in the first ``hops`` levels."""
    met: set[Edge] = set()
    for start in [("user", user), *(("item", target) for target in targets)]:
        seen, waiting = {start}, deque([(start, 0)])
        while waiting:
            (kind, place), distance = waiting.popleft()
            if distance == hops:
                continue
            for edge in edges:
                if edge[kind == "item"] == place:
                    met.add(edge)
                    there = ("item", edge[1]) if kind == "user" else ("user", edge[0])
                    if there not in seen:
                        seen.add(there)
                        waiting.append((there, distance + 1))
    return met


CHAIN = {(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 3)}
"""user 0 - item 0 - user 1 - item 1 - user 2 - item 2, and a pair apart."""


def test_the_own_edges_are_the_smallest_scope_and_all_edges_the_largest() -> None:
    for scope in ("user-only", "user-vector"):
        assert found(CHAIN, 4, 4, [(1, [2]), (3, [0])], scope) == [{(1, 0), (1, 1)}, {(3, 3)}]
    assert found(CHAIN, 4, 4, [(1, [2]), (3, [0])], "full") == [CHAIN, CHAIN]


def test_an_indirect_path_by_hand() -> None:
    # item 1 is two users away from user 0 by way of user 1; item 2 is farther
    assert found(CHAIN, 4, 4, [(0, [1]), (0, [2]), (3, [1])], "indirect") == [
        {(0, 0), (1, 0), (1, 1)},
        set(),
        set(),
    ]


@pytest.mark.parametrize(
    ("hops", "edges"),
    [
        (1, {(0, 0), (2, 2)}),
        (2, {(0, 0), (1, 0), (2, 2), (2, 1)}),
        (3, CHAIN - {(3, 3)}),
        (9, CHAIN - {(3, 3)}),
    ],
)
def test_levels_of_the_search_by_hand(hops: int, edges: set[Edge]) -> None:
    assert found(CHAIN, 4, 4, [(0, [2])], "k-hop", hops) == [edges]


def test_a_place_of_the_list_without_an_item_opens_nothing() -> None:
    for scope in ("indirect", "k-hop"):
        (short,) = found(CHAIN, 4, 4, [(0, [1, -1])], scope)
        (whole,) = found(CHAIN, 4, 4, [(0, [1])], scope)
        assert short == whole


def test_no_units_have_no_edges() -> None:
    graph = graph_of(CHAIN, 4, 4)
    no_users = np.empty(0, dtype=np.int64)
    for scope in ("user-only", "indirect", "k-hop", "full"):
        targets = Targets.of(graph, no_users, no_users.reshape(0, 1), 2, "item", scope)  # type: ignore[arg-type]
        assert len(edges_in_scope(graph, targets).rows) == 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_scopes_equal_paths_and_searches_written_out(data: st.DataObject) -> None:
    users, items = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 5))
    pairs = st.tuples(st.integers(0, users - 1), st.integers(0, items - 1))
    edges = data.draw(st.sets(pairs, min_size=1, max_size=12))
    units = []
    size = data.draw(st.integers(1, 2))
    for user in range(users):
        candidates = [item for item in range(items) if (user, item) not in edges]
        if len(candidates) >= size:
            units.append((user, data.draw(st.permutations(candidates))[:size]))
    if not units:
        return
    hops = data.draw(st.integers(1, 4))
    own = found(edges, users, items, units, "user-only")
    indirect = found(edges, users, items, units, "indirect")
    near = found(edges, users, items, units, "k-hop", hops)
    assert own == [{edge for edge in edges if edge[0] == user} for user, _ in units]
    assert indirect == [on_paths(edges, user, targets) for user, targets in units]
    assert near == [within_hops(edges, user, targets, hops) for user, targets in units]
    assert found(edges, users, items, units, "full") == [edges] * len(units)
    if hops >= 2:  # a path of three edges lies within two levels of its ends
        assert all(a <= b for a, b in zip(indirect, near, strict=True))
