"""Interactions: what the indices mean, the k-core, and the way to disk and back."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_recsys.interactions import (
    at_least,
    from_pairs,
    index_ids,
    k_core,
    load_interactions,
    load_matrix,
    save_matrix,
)

Pairs = list[tuple[int, int]]
small_graphs = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=24).map(sorted)


def arrays(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def test_pairs_become_a_matrix_with_names() -> None:
    data = from_pairs(
        "tiny", ["bo", "al", "bo"], ["x", "y", "y"], names={"x": "Book X"}, about={"release": "2024"}
    )
    assert data.user_ids.tolist() == ["al", "bo"]
    assert data.item_ids.tolist() == ["x", "y"]
    assert data.item_names.tolist() == ["Book X", "y"]
    assert data.matrix.toarray().tolist() == [[0, 1], [1, 1]]
    assert data.counts() == {"users": 2, "items": 2, "interactions": 3}
    assert data.summary()["text"] == "tiny (2 users, 2 items, 2024)"


def test_identifiers_are_ordered_by_value_if_all_are_whole_numbers() -> None:
    ids, index = index_ids(["10", "9", "2", "10"])
    assert ids.tolist() == ["2", "9", "10"]
    assert index.tolist() == [2, 1, 0, 2]
    assert index_ids(["10", "9", "2b"])[0].tolist() == ["10", "2b", "9"]
    assert index_ids(["7", "07", "-1", "0"])[0].tolist() == ["-1", "0", "07", "7"]


def test_duplicates_are_dropped_and_counted_and_the_latest_stays() -> None:
    data = from_pairs("d", ["u", "u", "v", "u"], ["i", "i", "i", "j"], times=np.array([5.0, 3.0, 1.0, 2.0]))
    assert data.about["duplicates"] == 1
    assert data.times is not None and data.times.tolist() == [5.0, 2.0, 1.0]


def test_times_stay_with_their_interactions() -> None:
    times = np.arange(6.0)
    users, items = ["c", "a", "b", "a", "c", "b"], ["2", "1", "3", "10", "1", "2"]
    data = from_pairs("t", users, items, times=times)
    assert data.times is not None
    rows = np.repeat(np.arange(3), np.diff(data.matrix.indptr))
    found = {
        (str(data.user_ids[u]), str(data.item_ids[i])): t
        for u, i, t in zip(rows, data.matrix.indices, data.times, strict=True)
    }
    assert found == dict(zip(zip(users, items, strict=True), times, strict=True))


def test_published_counts_that_differ_are_reported_without_an_error() -> None:
    same = from_pairs("a", ["u", "v"], ["i", "i"], expected=(2, 1, 2))
    other = from_pairs("a", ["u", "v"], ["i", "i"], expected=(2, 1_000, 3))
    assert same.about["differences"] == []
    assert other.about["differences"] == ["1 items, published: 1,000", "2 interactions, published: 3"]
    assert other.summary()["differences"] == other.about["differences"]


def test_nothing_left_is_one_line() -> None:
    with pytest.raises(UserError, match=r"a: no interactions are left \(0 were read\)"):
        from_pairs("a", [], [])
    with pytest.raises(UserError, match=r"at least 2 \(3 were read\)"):
        from_pairs("a", ["u", "u", "v"], ["i", "j", "k"], core=2)


def test_interactions_survive_the_way_to_disk(tmp_path: Path) -> None:
    data = from_pairs(
        "saved",
        ["3", "10", "3"],
        ["ä", "b", "b"],
        times=np.array([1.5, 2.5, 3.5]),
        names={"ä": "Ärger::Titel"},
        about={"nouns": {"user": "fan", "users": "fans"}},
    )
    data.save(tmp_path / "there")
    read = load_interactions(tmp_path / "there")
    assert read.name == "saved"
    assert read.matrix.shape == data.matrix.shape and (read.matrix != data.matrix).nnz == 0
    assert read.matrix.dtype == np.float64 and read.matrix.has_sorted_indices
    assert read.times is not None and data.times is not None and read.times.tolist() == data.times.tolist()
    for name in ("user_ids", "item_ids", "item_names"):
        assert getattr(read, name).dtype.kind == "U"
        assert getattr(read, name).tolist() == getattr(data, name).tolist()
    assert read.about == data.about
    assert read.summary()["text"] == "saved (2 fans, 2 items)"


def test_the_same_interactions_make_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        from_pairs("same", ["a", "b"], ["x", "y"]).save(tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_matrix_keeps_its_empty_rows_and_columns(tmp_path: Path) -> None:
    matrix = from_pairs("m", ["a", "b"], ["x", "y"]).matrix[[1, 1, 0]][:2]
    matrix.resize((4, 7))
    save_matrix(matrix, tmp_path / "m.parquet")
    read, extra = load_matrix(tmp_path / "m.parquet")
    assert read.shape == (4, 7) and (read != matrix).nnz == 0 and extra == {}


def test_a_two_core_of_a_square_with_a_tail_is_the_square() -> None:
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 3)]
    assert k_core(*arrays(pairs), 2).tolist() == [True, True, True, True, False, False, False]
    assert at_least(*arrays(pairs), 2).tolist() == [True, True, True, True, True, True, False]


def largest_core(pairs: Pairs, k: int) -> set[tuple[int, int]]:
    """Of all choices of users and items that meet the rule, the one with most interactions."""
    users, items = ({pair[side] for pair in pairs} for side in (0, 1))
    best: set[tuple[int, int]] = set()
    for chosen_users in itertools.chain.from_iterable(
        itertools.combinations(sorted(users), n) for n in range(len(users) + 1)
    ):
        for chosen_items in itertools.chain.from_iterable(
            itertools.combinations(sorted(items), n) for n in range(len(items) + 1)
        ):
            left = {(u, i) for u, i in pairs if u in chosen_users and i in chosen_items}
            meets = all(sum(u == user for u, _ in left) >= k for user in chosen_users) and all(
                sum(i == item for _, i in left) >= k for item in chosen_items
            )
            if meets and len(left) > len(best):
                best = left
    return best


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=16).map(sorted), st.integers(1, 3))
def test_the_core_is_the_largest_part_that_meets_the_rule(pairs: Pairs, k: int) -> None:
    retained = k_core(*arrays(pairs), k)
    assert {pair for pair, stays in zip(pairs, retained, strict=True) if stays} == largest_core(pairs, k)


@given(small_graphs, st.integers(1, 4))
def test_the_core_of_a_core_is_itself_and_lies_within_the_plain_rule(pairs: Pairs, k: int) -> None:
    users, items = arrays(pairs)
    retained = k_core(users, items, k)
    assert k_core(users[retained], items[retained], k).all()
    assert not (retained & ~at_least(users, items, k)).any()


@given(small_graphs, st.integers(1, 4))
def test_the_plain_rule_counts_once(pairs: Pairs, n: int) -> None:
    expected = [
        sum(u == user for u, _ in pairs) >= n and sum(i == item for _, i in pairs) >= n
        for user, item in pairs
    ]
    assert at_least(*arrays(pairs), n).tolist() == expected
