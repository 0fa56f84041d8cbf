"""Ranks and top-K lists among a user's candidates, with ties broken the same way everywhere.

Logits that agree on a grid of 2**-30 (about 1e-9) are ties, broken by the lower item index. The grid is far wider than
the rounding noise of float64, so that two items whose logits are equal on paper tie on every device and in
every batch, and far finer than a difference that means anything.
"""

from __future__ import annotations

import numpy as np

from cfbench_recsys.edits import BoolArray, FloatArray, IntArray

GRID = 2.0**30


def on_grid(scores: FloatArray, history: IntArray, padding: BoolArray) -> FloatArray:
    """(B, items) scores in grid steps (whole numbers), -inf for the items of ``history`` (B, H), which are no candidates."""
    steps = scores * GRID
    np.rint(steps, out=steps)
    rows, columns = np.nonzero(~padding)
    steps[rows, history[rows, columns]] = -np.inf
    return steps


def ranks_of(scores: FloatArray, items: IntArray, history: IntArray, padding: BoolArray) -> IntArray:
    """(B, T) 1-based ranks of ``items`` (B, T) among the candidates; history (B, H) is left out.

    rank(i) = 1 + #{j: s_j > s_i} + #{j < i: s_j = s_i}. The history is the *original* one: an item that an edit
    removed does not come back into the ranking. A place of a list that holds no item (-1: fewer candidates than
    places) keeps its own rank, so that it is never displaced.
    """
    ranks = np.empty(items.shape, dtype=np.int64)
    seen_scores = np.where(padding, -np.inf, np.take_along_axis(scores, history, axis=1))
    for t in range(items.shape[1]):
        item = items[:, t : t + 1]
        ahead_from, behind_from = _around(np.take_along_axis(scores, item, axis=1))
        ahead = scores > ahead_from
        ranks[:, t] = 1 + _count(ahead) - _count(seen_scores > ahead_from)
        not_behind = scores >= behind_from
        if np.count_nonzero(not_behind) > np.count_nonzero(ahead) + len(scores):  # somebody ties with somebody
            ranks[:, t] += _ties_with_a_lower_index(not_behind & ~ahead, item, history, padding)
        ranks[:, t] = np.where(item[:, 0] < 0, t + 1, ranks[:, t])
    return ranks


def _around(own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The scores that tie with ``own`` on the grid are those above neither the first, nor below the second, number.

    The same as rounding every score to the grid, but without touching every score: half a step is rounded to the
    even neighbour, so a step that is even takes in both of its ends, and one that is odd takes in neither.
    """
    if np.isnan(own).any():
        raise ValueError("the recommender gave a score that is not a number")
    step = np.rint(own * GRID)
    above, below = (step + 0.5) / GRID, (step - 0.5) / GRID
    odd = np.fmod(step, 2.0, where=np.isfinite(step), out=np.zeros_like(step)) != 0
    return np.where(odd, np.nextafter(above, -np.inf), above), np.where(odd, np.nextafter(below, np.inf), below)


def _count(marks: BoolArray) -> IntArray:
    """(B,) number of True in each row; narrow integers make this many times faster than ``count_nonzero``."""
    narrow = np.uint16 if marks.shape[1] < 2**16 else np.uint32
    return np.add.reduce(marks, axis=1, dtype=narrow).astype(np.int64)


def _ties_with_a_lower_index(ties: BoolArray, item: IntArray, history: IntArray, padding: BoolArray) -> IntArray:
    """(B,) number of candidates marked in ``ties`` (B, items) whose index is below ``item`` (B, 1)."""
    rows, columns = np.nonzero(~padding)
    ties[rows, history[rows, columns]] = False
    return _count(ties & (np.arange(ties.shape[1]) < item))


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
