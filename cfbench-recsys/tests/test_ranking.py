"""Ranks among the candidates, with one tie rule: equal on the grid, then the lower index."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.ranking import GRID, lost_on_grid, ranks_of, top_k

NOBODY = np.zeros((1, 1), dtype=np.int64), np.ones((1, 1), dtype=bool)


def test_the_lower_index_wins_a_tie_and_seen_items_do_not_count() -> None:
    scores = np.array([[5.0, 7.0, 7.0, 9.0]])
    seen = np.array([[3]]), np.zeros((1, 1), dtype=bool)
    np.testing.assert_array_equal(ranks_of(scores, np.array([[1, 2, 0]]), *seen), [[1, 2, 3]])
    np.testing.assert_array_equal(top_k(scores, *seen, k=4), [[1, 2, 0, -1]])


def test_scores_closer_than_the_grid_tie() -> None:
    scores = np.array([[1.0, 1.0 + 1e-13, 1.0 + 3 / GRID]])
    np.testing.assert_array_equal(ranks_of(scores, np.array([[0, 1, 2]]), *NOBODY), [[2, 3, 1]])


def test_a_place_without_an_item_keeps_its_rank() -> None:
    np.testing.assert_array_equal(
        ranks_of(np.array([[1.0, 2.0]]), np.array([[1, 0, -1]]), *NOBODY), [[1, 2, 3]]
    )


def test_infinite_scores_have_ranks_and_nan_is_refused() -> None:
    scores = np.array([[-np.inf, 0.0, np.inf, -np.inf, np.inf]])
    np.testing.assert_array_equal(ranks_of(scores, np.array([[2, 4, 1, 0, 3]]), *NOBODY), [[1, 2, 3, 4, 5]])
    with pytest.raises(ValueError, match="not a number"):
        ranks_of(np.array([[np.nan, 1.0]]), np.array([[0]]), *NOBODY)


def test_a_score_of_another_candidate_that_is_not_a_number_is_an_error() -> None:
    """Compared with it, no item would be behind."""
    scores = np.array([[1.0, np.nan, 0.5]])
    with pytest.raises(ValueError, match="not a number"):
        ranks_of(scores, np.array([[2]]), *NOBODY)


half_steps = st.integers(-6, 6).map(lambda n: n * 0.5 / GRID)
beside = st.tuples(half_steps, st.sampled_from([-np.inf, np.inf])).map(
    lambda pair: float(np.nextafter(*pair))
)
huge = st.integers(-3, 3).map(lambda n: n * 2.0**24 + 2.0**-29)
values = st.one_of(st.integers(-2, 2).map(float), half_steps, beside, huge, st.floats(-1e15, 1e15))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_ranks_equal_rounding_every_score_and_counting(data: st.DataObject) -> None:
    items = data.draw(st.integers(2, 9))
    scores = data.draw(st.lists(values, min_size=items, max_size=items))
    seen = data.draw(st.sets(st.integers(0, items - 1), min_size=1, max_size=items - 1))
    rounded = np.rint(np.array(scores) * GRID)
    candidates = [item for item in range(items) if item not in seen]
    best_first = sorted(candidates, key=lambda item: (-rounded[item], item))
    history = np.array([sorted(seen)]), np.zeros((1, len(seen)), dtype=bool)
    ranks = ranks_of(np.array([scores]), np.array([best_first]), *history)
    np.testing.assert_array_equal(ranks, [np.arange(1, len(candidates) + 1)])
    np.testing.assert_array_equal(top_k(np.array([scores]), *history, k=len(candidates)), [best_first])


def test_many_rows_give_what_each_row_gives_alone() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (50, 30)).astype(float)
    history = np.sort(rng.permuted(np.tile(np.arange(30), (50, 1)), axis=1)[:, :6], axis=1)
    padding = np.arange(6) >= rng.integers(0, 7, (50, 1))
    items = rng.integers(0, 30, (50, 3))
    together = ranks_of(scores, items, history, padding)
    for b in range(50):
        row = slice(b, b + 1)
        np.testing.assert_array_equal(
            ranks_of(scores[row], items[row], history[row], padding[row]), together[row]
        )


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([1.0, 1e-3, 1e-11, 1e-14]))
def test_differences_that_the_grid_hides_are_found(seed: int, k: int, scale: float) -> None:
    """Scores that are all apart, in whole steps of a hundredth times a scale: the grid hides them or not."""
    draw = np.random.default_rng(seed)
    scores = np.stack([draw.permutation(20) for _ in range(4)]) / 100 * scale
    history = np.tile(np.arange(3), (4, 1)), np.zeros((4, 3), dtype=bool)
    visible = np.array_equal(top_k(scores, *history, k), top_k(scores / scale, *history, k))
    assert visible == (scale >= 1e-3) or k == 1
    assert lost_on_grid(scores, *history, k).tolist() == [scale < 1e-3] * 4


def test_ties_of_the_recommender_and_its_rounding_are_not_differences() -> None:
    equal = np.full((1, 6), 0.3) + np.array([[0, 1, 0, 1, 0, 2]]) * 5e-17
    seen = np.array([[0, 0, 0, 0, 0, 9.0]]), np.full((1, 6), -np.inf)
    history = np.array([[5]]), np.zeros((1, 1), dtype=bool)
    for scores in (equal, *seen, np.array([[1.0, 1.0, 1.0, 0.5, 0.5, 3.0]])):
        assert not lost_on_grid(np.atleast_2d(scores), *history, 3).any()
