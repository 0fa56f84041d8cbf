"""Scores of a recommender under edits, in blocks of one fixed shape.

A matrix product may round differently for another number of rows. Blocks of one shape, the last one padded,
make a unit's scores independent of how the work was split.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.devices.batches import Batches
from cfbench_core.lifecycle.counting import CountedModel, counted_if_done
from cfbench_recsys.contracts import ProfileRecommender, ScoringModel, scores_graphs
from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.links import link_of, linked_scores
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.targets import Targets

BLOCK = 64


QUERIES = ("score_profiles", "score_edits", "score_dense", "score_weighted")
"""The methods that query a recommender; their first argument has a row for each profile or edited graph."""


def counted(model: ScoringModel) -> CountedModel:
    """The model, counting its queries."""
    return CountedModel(model, QUERIES)


class Scorable(Protocol):
    """Edits, or what turns into edits a few at a time (see ``removals.py``)."""

    def __len__(self) -> int: ...

    def choose(self, which: IntArray) -> Scorable: ...

    def edits(self) -> Edits: ...

    def profiles(self, interactions: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix: ...


def score_blocks(
    model: ScoringModel, edits: Scorable, interactions: scipy.sparse.csr_matrix
) -> Iterator[tuple[slice, FloatArray]]:
    """Yields ``(rows, scores)``: which edits, and their (rows, items) scores. The last edit fills up.

    Where the memory of a GPU does not suffice for a block, it is scored in parts of one smaller shape, which may change the
    last bits.
    """
    fitting = Batches()
    for start in range(0, len(edits), BLOCK):
        stop = min(start + BLOCK, len(edits))
        block = edits.choose(np.minimum(np.arange(start, start + BLOCK), len(edits) - 1))

        def score_part(part: range, block: Scorable = block) -> FloatArray:
            chosen = block if len(part) == BLOCK else block.choose(np.arange(part.start, part.stop))
            with counted_if_done(model):
                return score_once(model, chosen, interactions)

        for part, scores in fitting.computed(BLOCK, score_part):
            rows = slice(start + part.start, min(start + part.stop, stop))
            if isinstance(model, CountedModel):
                model.queries -= len(part) - max(0, rows.stop - rows.start)
            if rows.start < stop:
                yield rows, scores[: rows.stop - rows.start]


def score_once(model: ScoringModel, edits: Scorable, interactions: scipy.sparse.csr_matrix) -> FloatArray:
    """(B, items) scores, all at once."""
    if scores_graphs(model):
        return model.score_edits(edits.edits())
    return cast(ProfileRecommender, model).score_profiles(edits.profiles(interactions))


def target_responses(
    model: ScoringModel,
    edits: Scorable,
    targets: Targets,
    of: IntArray,
    interactions: scipy.sparse.csr_matrix,
) -> tuple[IntArray, FloatArray]:
    """(B, T) ranks and (B, T) linked scores (see ``links.py``) of the items of target ``of[b]`` under edit b.

    The user's original history is left out of the ranking. A place that holds no item has its own place as its rank (see
    ``ranks_of``); its score is NaN.
    """
    link = link_of(model)
    ranks = np.empty((len(edits), targets.items.shape[1]), dtype=np.int64)
    linked = np.empty(ranks.shape)
    for rows, scores in score_blocks(model, edits, interactions):
        block = targets.take(of[rows])
        ranks[rows] = ranks_of(scores, block.items, *block.seen)
        own = linked_scores(scores, np.arange(len(scores)), block.items, link)
        linked[rows] = np.where(block.items < 0, np.nan, own)
    return ranks, linked


def target_ranks(
    model: ScoringModel,
    edits: Scorable,
    targets: Targets,
    of: IntArray,
    interactions: scipy.sparse.csr_matrix,
) -> IntArray:
    """(B, T) ranks of the items of target ``of[b]`` under edit b, its original history left out."""
    ranks = np.empty((len(edits), targets.items.shape[1]), dtype=np.int64)
    for rows, scores in score_blocks(model, edits, interactions):
        block = targets.take(of[rows])
        ranks[rows] = ranks_of(scores, block.items, *block.seen)
    return ranks


def target_scores(
    model: ScoringModel,
    edits: Scorable,
    targets: Targets,
    of: IntArray,
    interactions: scipy.sparse.csr_matrix,
) -> FloatArray:
    """(B, T) scores of the items of target ``of[b]`` under edit b."""
    found = np.empty((len(edits), targets.items.shape[1]))
    for rows, scores in score_blocks(model, edits, interactions):
        found[rows] = np.take_along_axis(scores, targets.items[of[rows]], axis=1)
    return found
