"""Scores of a recommender under edits, in blocks of one fixed shape.

A matrix product may round differently for another number of rows. Blocks of one shape, the last one padded, make a
unit's scores independent of how the work was split.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.targets import Targets

BLOCK = 64


def score_blocks(
    model: Any, edits: Edits, interactions: sparse.csr_matrix
) -> Iterator[tuple[slice, FloatArray]]:
    """Yields ``(rows, scores)``: which edits, and their (rows, items) logits."""
    for start in range(0, len(edits), BLOCK):
        rows = slice(start, min(start + BLOCK, len(edits)))
        block = edits.take(rows.start, rows.stop)
        missing = BLOCK - len(block)
        if missing:
            block = Edits.concatenate([block, Edits.nothing(np.repeat(block.users[:1], missing))])
        yield rows, score_once(model, block, interactions)[: BLOCK - missing]


def score_once(model: Any, edits: Edits, interactions: sparse.csr_matrix) -> FloatArray:
    """(B, items) logits, all at once."""
    if hasattr(model, "score_edits"):
        scores: FloatArray = model.score_edits(edits)
    else:
        scores = model.score_profiles(edits.profiles(interactions))
    return scores


def target_ranks(
    model: Any, edits: Edits, targets: Targets, of: IntArray, interactions: sparse.csr_matrix
) -> IntArray:
    """(B, T) ranks of the items of target ``of[b]`` under edit b, its original history left out."""
    ranks = np.empty((len(edits), targets.items.shape[1]), dtype=np.int64)
    for rows, scores in score_blocks(model, edits, interactions):
        which = of[rows]
        ranks[rows] = ranks_of(scores, targets.items[which], targets.history[which], targets.padding[which])
    return ranks


def target_scores(
    model: Any, edits: Edits, targets: Targets, of: IntArray, interactions: sparse.csr_matrix
) -> FloatArray:
    """(B, T) logits of the items of target ``of[b]`` under edit b."""
    found = np.empty((len(edits), targets.items.shape[1]))
    for rows, scores in score_blocks(model, edits, interactions):
        found[rows] = np.take_along_axis(scores, targets.items[of[rows]], axis=1)
    return found
