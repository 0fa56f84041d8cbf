"""What is recommended to the users that a method may learn from."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.targets import Targets


def training_lists(
    user_vectors: FloatArray, item_vectors: FloatArray, learned: scipy.sparse.csr_matrix, k: int
) -> tuple[IntArray, IntArray]:
    """(n,) users with interactions in ``learned``, and (n, k) what is recommended to them; at least one item each.

    Scores are products of the vectors (users, d) and (items, d); -1 fills a list up.
    """
    users = np.flatnonzero(np.diff(learned.indptr))
    lists = np.full((len(users), k), -1, dtype=np.int64)
    for start in range(0, len(users), 256):
        some = users[start : start + 256]
        blank = Targets.of(learned, some, np.zeros((len(some), 1), dtype=np.int64), k, "item", "full")
        scores = user_vectors[some] @ item_vectors.T
        lists[start : start + 256] = top_k(scores, blank.history, blank.padding, k)
    complete = (lists >= 0).any(axis=1)
    return users[complete], lists[complete]
