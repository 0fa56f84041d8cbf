"""Splits by time, with their reports."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_text.reviews import Reviews, array_of_text
from cfbench_text.splits import divide


def reviews(rows):
    """rows: (user, item, time)."""
    users, items, times = zip(*rows, strict=True) if rows else ((), (), ())
    n = len(rows)
    return Reviews("r", "toys", array_of_text(users), array_of_text(items), np.full(n, 3.0),
                   np.array(times, dtype=np.int64), array_of_text(["t"] * n))  # fmt: skip


def parts(rows, kind="per-user", minimum=5):
    return divide(reviews(rows), kind, 0.8, 0.1, minimum)


def test_ten_reviews_of_one_user_are_eight_one_one():
    known = [("other", f"i{n}", 0) for n in range(20)]
    found = parts([*known, *[("u", f"i{n}", n) for n in range(10)]])
    assert found.parts[20:].tolist() == [0] * 8 + [1, 2]


def test_five_reviews_leave_one_to_test():
    others = [("other", f"i{n}", n) for n in (4, 5, 0, 1, 2)]
    found = parts([*others, *[("u", f"i{n}", n) for n in range(5)]])
    assert found.parts[5:].tolist() == [0, 0, 0, 0, 2]


def test_ties_are_broken_by_the_order_of_the_file():
    others = [(f"o{k}", f"i{n}", n) for k in range(2) for n in range(5)]
    found = parts([*others, *[("u", f"i{n}", 7) for n in (3, 1, 2, 0, 4)]])
    assert found.parts[10:].tolist() in ([0, 0, 0, 0, 2], [0, 0, 0, 0, -1])


def test_what_is_left_out_is_reported():
    rows = (
        [("few", "i0", 1)] * 2 + [("u", f"i{n}", n) for n in range(5)] + [("v", f"i{n}", n) for n in range(5)]
    )
    found = parts(rows)
    assert found.report["excluded, duplicates"] == 1
    assert found.report["excluded, users with fewer than 5"] == 1
    assert found.report["excluded from test, not in training"] == 2  # i4 is nobody's training item
    assert found.report["reviews"] == 12 and found.report["train"] == 8 and found.report["test"] == 0


ROWS = st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from("abcdefg"), st.integers(0, 3)), max_size=40)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.sampled_from(["per-user", "global"]))
def test_no_training_row_is_in_the_future_and_test_items_are_known(rows, kind):
    found = parts(rows, kind, minimum=3)
    data = reviews(rows)
    trained = found.parts == 0
    assert set(data.items[found.parts > 0]) <= set(data.items[trained])
    groups = [np.ones(len(data), dtype=bool)] if kind == "global" else [data.users == u for u in "uvw"]
    for group in groups:
        for earlier, later in ((0, 1), (0, 2), (1, 2)):
            before, after = (
                data.times[group & (found.parts == earlier)],
                data.times[group & (found.parts == later)],
            )
            assert not len(before) or not len(after) or before.max() <= after.min()
    left = sum(count for name, count in found.report.items() if name.startswith("excluded"))
    kept = sum(found.report[name] for name in ("train", "validation", "test"))
    assert left + kept == len(rows) == found.report["reviews"]


@settings(max_examples=100, deadline=None)
@given(st.integers(5, 60))
def test_every_user_has_a_test_row_and_the_shares_are_right(n):
    shared = [("all", f"i{k}", 0) for k in range(100)]
    found = parts([*shared, *[("u", f"i{k}", k) for k in range(n)]])
    mine = found.parts[100:]
    assert (mine == 0).sum() == int(0.8 * n + 1e-9) and (mine == 2).sum() >= max(1, (mine == 1).sum())


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 98), st.integers(1, 98), st.integers(1, 4))
def test_the_global_split_has_the_exact_shares(train, validation, times):
    """0.7 + 0.2 is less than 0.9 in binary numbers; the shares of 100 reviews are whole ones."""
    if train + validation >= 100:
        return
    rows = [("u", "i", n) for n in range(100 * times)]
    found = divide(reviews(rows), "global", train / 100, validation / 100, 1).report
    shares = [share * times for share in (train, validation, 100 - train - validation)]
    assert [found[name] for name in ("train", "validation", "test")] == shares
