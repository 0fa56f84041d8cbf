"""What a recommender recommends: the top-K list of each user."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import Edits, IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Targets


def recommended_lists(
    model: ScoringModel,
    interactions: Interactions,
    profiles: scipy.sparse.csr_matrix,
    users: IntArray,
    k: int,
    label: str,
) -> IntArray:
    """(B, k) the items recommended to B users from their profiles (users, items); -1 where candidates are missing.

    Raises:
        UserError: when the scores of a user are NaN, beginning with ``label``.
    """
    history = Targets.of(profiles, users, np.zeros((len(users), 1), dtype=np.int64), k, "item", "user-vector")
    lists = np.empty((len(users), k), dtype=np.int64)
    for rows, scores in score_blocks(model, Edits.nothing(users), profiles):
        if np.isnan(scores).any():
            user = interactions.user_ids[users[rows][np.isnan(scores).any(axis=1)][0]]
            raise UserError(f"{label}: the recommender gives user {user!r} scores that are NaN")
        lists[rows] = top_k(scores, history.history[rows], history.padding[rows], k)
    return lists
