"""Ranks and top-K lists among a user's candidates, with ties broken the same way everywhere.

Logits that agree on a grid of 2**-30 (about 1e-9) are ties, broken by the lower item index. The grid is far
wider than the rounding noise of float64, so that two items whose logits are equal on paper tie on every
device and in every batch, and far finer than a difference that means anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from cfbench_recsys.edits import BoolArray, FloatArray, IntArray

GRID = 2.0**30


def on_grid(scores: FloatArray, history: IntArray, padding: BoolArray) -> FloatArray:
    """(B, items) scores in whole grid steps; -inf for ``history`` (B, H), whose items are no candidates."""
    steps = scores * GRID
    np.rint(steps, out=steps)
    rows, columns = np.nonzero(~padding)
    steps[rows, history[rows, columns]] = -np.inf
    return steps


def ranks_of(scores: FloatArray, items: IntArray, history: IntArray, padding: BoolArray) -> IntArray:
    """(B, T) 1-based ranks of ``items`` (B, T) among the candidates; history (B, H) is left out.

    rank(i) = 1 + #{j: s_j > s_i} + #{j < i: s_j = s_i}. The history is the *original* one: an item that an
    edit removed does not come back into the ranking. A place of a list that holds no item (-1: fewer
    candidates than places) has its own place as its rank, so that it is never displaced.
    """
    flat, row_starts = scores.reshape(-1), np.arange(len(scores))[:, None] * scores.shape[1]
    seen_scores = np.where(padding, -np.inf, flat[row_starts + history])  # faster than take_along_axis
    above, below = _around(flat[row_starts + np.maximum(items, 0)])
    ranks = np.empty(items.shape, dtype=np.int64)
    with _small_buffers():
        for start in range(0, len(scores), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            part, seen = scores[rows], seen_scores[rows]
            if np.isnan(part.max(initial=-np.inf)):  # of another candidate: it would rank behind every item
                raise ValueError(_NOT_A_NUMBER)
            for t in range(items.shape[1]):
                ahead_of, not_behind = above[rows, t, None], below[rows, t, None]
                ahead = _count(part > ahead_of)
                ranks[rows, t] = 1 + ahead - _count(seen > ahead_of)
                tied = np.flatnonzero(_count(part >= not_behind) > ahead + 1)  # perhaps with seen items only
                if tied.size:
                    ties = (part[tied] >= not_behind[tied]) & (part[tied] <= ahead_of[tied])
                    which = tied + start
                    ranks[which, t] += _with_a_lower_index(
                        ties, items[which, t], history[which], padding[which]
                    )
    return np.where(items < 0, np.arange(1, items.shape[1] + 1), ranks)


_NOT_A_NUMBER = "the recommender gave a score that is not a number"
_ROWS_AT_ONCE = 16  # so that the operands and the results of the comparison fit into the cache


@contextmanager
def _small_buffers() -> Iterator[None]:
    """Keeps NumPy from copying rows shorter than its buffer (8192) to compare them: three times faster."""
    before = np.setbufsize(1024)
    try:
        yield
    finally:
        np.setbufsize(before)


def _around(own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The greatest and the smallest score that tie with ``own`` (...), once all are rounded to the grid.

    The same as rounding every score, but without touching every score. Half a step is rounded to the even
    neighbour, so a step that is even takes in both of its ends, and one that is odd takes in neither.
    """
    if np.isnan(own).any():
        raise ValueError(_NOT_A_NUMBER)
    step = np.rint(own * GRID)
    above, below = (step + 0.5) / GRID, (step - 0.5) / GRID
    odd = np.fmod(step, 2.0, where=np.isfinite(step), out=np.zeros_like(step)) != 0
    return np.where(odd, np.nextafter(above, -np.inf), above), np.where(
        odd, np.nextafter(below, np.inf), below
    )


def _count(marks: BoolArray) -> IntArray:
    """(B,) number of True in each row; narrow integers make it faster than ``count_nonzero``."""
    narrow = np.uint16 if marks.shape[1] < 2**16 else np.uint32
    counts: IntArray = np.add.reduce(marks, axis=1, dtype=narrow).astype(np.int64)
    return counts


def _with_a_lower_index(ties: BoolArray, items: IntArray, history: IntArray, padding: BoolArray) -> IntArray:
    """(B,) number of candidates marked in ``ties`` (B, items) whose index is below ``items`` (B,)."""
    rows, columns = np.nonzero(~padding)
    ties[rows, history[rows, columns]] = False
    return _count(ties & (np.arange(ties.shape[1]) < items[:, None]))


def top_k(scores: FloatArray, history: IntArray, padding: BoolArray, k: int) -> IntArray:
    """(B, k) the first k candidates of each row, best first; -1 where a row has fewer candidates."""
    steps = on_grid(scores, history, padding)
    items = steps.shape[1]
    k_found = min(k, items)
    finite = np.isfinite(steps)
    if np.abs(steps, where=finite, out=np.zeros_like(steps)).max(initial=0.0) * items < 2.0**52:
        keys = steps * items - np.arange(items)  # unique whole numbers: a lower index wins a tie
        first = np.argpartition(-keys, k_found - 1, axis=1)[:, :k_found]
        order = np.argsort(-np.take_along_axis(keys, first, axis=1), axis=1, kind="stable")
        best = np.take_along_axis(first, order, axis=1)
    else:
        best = np.argsort(-steps, axis=1, kind="stable")[:, :k_found]
    found = np.take_along_axis(finite, best, axis=1)
    lists = np.full((len(steps), k), -1, dtype=np.int64)
    lists[:, :k_found] = np.where(found, best, -1)
    return lists


_ROUNDING = 1e-12
"""Of the largest score: a user's scores that differ by no more are equal but for the rounding of float64."""
_SHARE = 1e-6
"""Of the range of a user's scores: two that differ by less are near each other for the recommender too."""


def lost_on_grid(scores: FloatArray, history: IntArray, padding: BoolArray, k: int) -> BoolArray:
    """(B,) whether most of the differences among a user's first K + 1 candidates are lost on the grid.

    They are then ordered by their index, not by the recommender: its scores, or their differences, are too small.
    """
    lost = np.zeros(len(scores), dtype=np.bool_)
    for row, own in enumerate(scores):
        candidates = np.delete(own, history[row, ~padding[row]])
        candidates = candidates[np.isfinite(candidates)]
        if len(candidates) < 2 or np.ptp(candidates) <= _ROUNDING * np.abs(candidates).max():
            continue
        first = -np.sort(np.partition(-candidates, min(k, len(candidates) - 1))[: k + 1])
        differ = first[:-1] - first[1:] > _SHARE * np.ptp(candidates)
        tied = np.rint(first[:-1] * GRID) == np.rint(first[1:] * GRID)
        lost[row] = np.count_nonzero(differ & tied) * 2 > np.count_nonzero(differ)
    return lost
