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
    removed does not come back into the ranking.
    """
    steps = on_grid(scores, history, padding)
    ranks = np.empty(items.shape, dtype=np.int64)
    for t in range(items.shape[1]):
        item = items[:, t : t + 1]
        own = np.take_along_axis(steps, item, axis=1)
        ahead = np.count_nonzero(steps > own, axis=1)
        not_behind = np.count_nonzero(steps >= own, axis=1)
        ranks[:, t] = ahead + 1
        for row in np.flatnonzero(not_behind > ahead + 1):
            ranks[row, t] += np.count_nonzero(steps[row, : item[row, 0]] == own[row, 0])
    return ranks


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
