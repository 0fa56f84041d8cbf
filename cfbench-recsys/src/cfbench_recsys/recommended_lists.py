"""What a recommender recommends: the top-K list of each user."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import Edits, IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.ranking import GRID, lost_on_grid, top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Targets


def recommended_lists(
    model: ScoringModel,
    interactions: Interactions,
    profiles: scipy.sparse.csr_matrix,
    users: IntArray,
    k: int,
    label: str,
) -> tuple[IntArray, IntArray]:
    """(B, k) the items recommended to B users from their profiles (users, items), -1 where candidates are missing; and
    the positions of users whose scores are too small to be told apart (:func:`~cfbench_recsys.ranking.lost_on_grid`).

    Raises:
        UserError: when the scores of a user are NaN, or those of all users too small, beginning with ``label``.
    """
    history = Targets.of(profiles, users, np.zeros((len(users), 1), dtype=np.int64), k, "item", "user-vector")
    lists = np.empty((len(users), k), dtype=np.int64)
    lost = np.zeros(len(users), dtype=np.bool_)
    for rows, scores in score_blocks(model, Edits.nothing(users), profiles):
        if np.isnan(scores).any():
            user = str(interactions.user_ids[users[rows][np.isnan(scores).any(axis=1)][0]])
            raise UserError(f"{label}: the recommender gives user {user!r} scores that are NaN")
        own = history.history[rows], history.padding[rows]
        lists[rows], lost[rows] = top_k(scores, *own, k), lost_on_grid(scores, *own, k)
    if len(users) and lost.all():
        raise UserError(f"{label}: {too_small(len(users), len(users))}")
    return lists, np.flatnonzero(lost)


def too_small(users: int, of: int) -> str:
    """What is wrong with the scores of some users, and what to do."""
    return (
        f"the recommender's scores of {users} of {of} users differ by less than {1 / GRID:.1g}, which counts as a tie, so "
        "that items would be listed by their index; multiply its scores by a large constant"
    )
