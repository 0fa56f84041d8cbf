"""Edits: profiles, selections and counts equal those of plain sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.edits import ADD, REMOVE, Edits

USERS, ITEMS = 3, 6
edit = st.tuples(
    st.integers(0, USERS - 1),
    st.dictionaries(
        st.tuples(st.integers(0, USERS - 1), st.integers(0, ITEMS - 1)),
        st.sampled_from([REMOVE, ADD]),
        max_size=6,
    ),
)


def packed(edits: list[tuple[int, dict[tuple[int, int], int]]]) -> Edits:
    rows = [(b, *edge, op) for b, (_, edges) in enumerate(edits) for edge, op in edges.items()]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    users = np.array([user for user, _ in edits], dtype=np.int64)
    return Edits(users, columns[0], columns[1], columns[2], columns[3].astype(np.int8))


def unpacked(edits: Edits) -> list[tuple[int, dict[tuple[int, int], int]]]:
    return [
        (
            int(user),
            {
                (int(edits.edge_users[e]), int(edits.edge_items[e])): int(edits.ops[e])
                for e in np.flatnonzero(edits.rows == b)
            },
        )
        for b, user in enumerate(edits.users)
    ]


def test_a_removal_leaves_the_rest_of_the_profile() -> None:
    interactions = sparse.csr_matrix(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    edits = packed([(0, {(0, 2): REMOVE}), (1, {(1, 0): ADD, (0, 0): REMOVE})])
    np.testing.assert_array_equal(edits.profiles(interactions).toarray(), [[1, 0, 0], [1, 1, 0]])


@settings(deadline=None)
@given(
    st.lists(edit, max_size=6), st.lists(st.sets(st.integers(0, ITEMS - 1)), min_size=USERS, max_size=USERS)
)
def test_profiles_equal_those_of_sets(edits: list, histories: list[set[int]]) -> None:
    dense = np.array([[item in history for item in range(ITEMS)] for history in histories], dtype=float)
    profiles = packed(edits).profiles(sparse.csr_matrix(dense))
    assert profiles.shape == (len(edits), ITEMS)
    for row, (user, edges) in zip(profiles.toarray(), edits, strict=True):
        expected = set(histories[user])
        for (edge_user, item), op in edges.items():
            if edge_user == user:
                expected = expected | {item} if op == ADD else expected - {item}
        assert set(np.flatnonzero(row)) == expected
        assert set(row) <= {0.0, 1.0}


def test_profiles_of_many_edits_are_those_of_each() -> None:
    interactions = sparse.random(40, 30, density=0.3, format="csr", random_state=0)
    interactions.data[:] = 1
    users = np.random.default_rng(0).integers(0, 40, 1500)
    profiles = Edits.nothing(users).profiles(interactions)
    np.testing.assert_array_equal(profiles.toarray(), interactions[users].toarray())


@given(st.lists(edit, min_size=1, max_size=6), st.data())
def test_selections_equal_those_of_lists(edits: list, data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(edits) - 1), max_size=8))
    start, stop = sorted(data.draw(st.tuples(st.integers(0, len(edits)), st.integers(0, len(edits)))))
    whole = packed(edits)
    assert unpacked(whole) == edits
    assert unpacked(whole.choose(np.array(which, dtype=np.int64))) == [edits[b] for b in which]
    assert unpacked(whole.take(start, stop)) == edits[start:stop]
    assert unpacked(Edits.concatenate([whole, whole.take(start, stop)])) == edits + edits[start:stop]
    removals = whole.where(whole.ops == REMOVE)
    assert unpacked(removals) == [
        (user, {edge: op for edge, op in edges.items() if op == REMOVE}) for user, edges in edits
    ]
    assert whole.counts().tolist() == [len(edges) for _, edges in edits]
    assert whole.counts(ADD).tolist() == [sum(op == ADD for op in edges.values()) for _, edges in edits]
