"""How well a recommender finds held-out interactions: HR@K, NDCG@K and Recall@K.

For a user with held-out items T (at least one), and L the first K candidates of the model's ranking (all
items but those of the user's input; ties to the lower item index):

    HR@K     = 1[L and T have an item in common]
    Recall@K = |L and T| / |T|
    NDCG@K   = sum_{p: L_p in T} 1/log2(p + 1)  /  sum_{p = 1..min(K, |T|)} 1/log2(p + 1),   p = 1..K

each the plain mean over the users, with Wilson's 95% interval (``cfbench_core.model_quality``; users are taken for
independent). Ranks come from float64 scores of all items, never from a sample of them.
Explanations of a model without predictive quality are meaningless, so every run reports these.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.model_quality import wilson_interval
from cfbench_recsys.contracts import ProfileRecommender, ScoringModel, scores_graphs
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import BLOCK
from cfbench_recsys.splits import Holdout

KS = (10, 20)

FEW_USERS = 30
"""With fewer users the quality of a model comes with a note: for an HR@10 of a half its interval is 0.34 wide at 30."""


def report(
    model: ScoringModel, holdout: Holdout, interactions: scipy.sparse.csr_matrix
) -> dict[str, dict[str, float]]:
    """What :func:`evaluate` returns, each as ``{"value", "n", "ci_low", "ci_high"}``; warns where users are few."""
    n = len(holdout.users)
    if 0 < n < FEW_USERS:
        users = "1 user" if n == 1 else f"{n} users"
        message = (
            f"the quality of the model is measured on {users} with held-out interactions: it says little"
        )
        warnings.warn(message, ResultWarning, stacklevel=2)
    reported = {}
    for name, value in evaluate(model, holdout, interactions).items():
        low, high = wilson_interval(value, n)
        reported[name] = {"value": value, "n": n, "ci_low": low, "ci_high": high}
    return reported


def evaluate(
    model: ScoringModel, holdout: Holdout, interactions: scipy.sparse.csr_matrix, ks: tuple[int, ...] = KS
) -> dict[str, float]:
    """``{"HR@10": ..., "NDCG@10": ..., "Recall@10": ..., "HR@20": ...}`` of a fitted model.

    A model of the user's profile sees ``holdout.inputs``. A graph model scores its graph ``interactions``,
    whose rows of ``holdout.users`` are these inputs.

    Raises:
        UserError: where it does not give a score that is a number for each user and item.
    """

    def scores(rows: IntArray) -> FloatArray:
        if scores_graphs(model):
            found = model.score_edits(Edits.nothing(holdout.users[rows]))
        else:
            found = cast(ProfileRecommender, model).score_profiles(holdout.inputs[rows])
        return _checked(found, (len(rows), interactions.shape[1]))

    return ranking_quality(scores, holdout, ks)


def _checked(scores: Any, shape: tuple[int, int]) -> FloatArray:
    """The scores, if they have that shape and are real numbers: the class of the recommender may be any."""
    plain = isinstance(scores, np.ndarray) and not isinstance(scores, np.matrix)
    if not plain or scores.dtype.kind not in "fiu" or scores.shape != shape:
        found = f" {tuple(scores.shape)} of {scores.dtype}" if hasattr(scores, "dtype") else ""
        wanted = f"a NumPy array {shape} of float64, a row for each user and a column for each item"
        raise UserError(f"the recommender must give scores as {wanted}; got {type(scores).__name__}{found}")
    if np.isnan(scores).any():
        raise UserError("the recommender gives scores that are NaN: its quality cannot be measured")
    checked: FloatArray = scores
    return checked


def ranking_quality(
    scores: Callable[[IntArray], FloatArray], holdout: Holdout, ks: tuple[int, ...] = KS
) -> dict[str, float]:
    """The same for any source of scores: ``scores(rows)`` gives (len(rows), items) for rows of the holdout.

    Empty when there are no users. It is always called with ``BLOCK`` rows (the last row fills the last block),
    so that numbers do not depend on the batch.
    """
    n = len(holdout.users)
    if n == 0:
        return {}
    found = np.zeros((n, max(ks)), dtype=np.bool_)
    for start in range(0, n, BLOCK):
        rows = np.arange(start, start + BLOCK)
        retained = min(BLOCK, n - start)
        rows = np.minimum(rows, n - 1)
        seen, padding = padded_rows(holdout.inputs, rows)
        lists = top_k(scores(rows), seen, padding, max(ks))[:retained]
        found[start : start + retained] = _are_targets(lists, holdout.targets, rows[:retained])
    wanted = np.diff(holdout.targets.indptr)
    gains = 1.0 / np.log2(np.arange(2, max(ks) + 2))
    ideal = np.concatenate([[0.0], np.cumsum(gains)])
    quality: dict[str, float] = {}
    for k in ks:
        hits = found[:, :k]
        quality[f"HR@{k}"] = float(hits.any(axis=1).mean())
        quality[f"NDCG@{k}"] = float((hits @ gains[:k] / ideal[np.minimum(wanted, k)]).mean())
        quality[f"Recall@{k}"] = float((hits.sum(axis=1) / wanted).mean())
    return quality


def padded_rows(matrix: scipy.sparse.csr_matrix, rows: IntArray) -> tuple[IntArray, BoolArray]:
    """(B, H) column indices of some rows, and True where there is none (index 0 stands there)."""
    lengths = np.diff(matrix.indptr)[rows].astype(np.int64)
    position = np.arange(max(1, int(lengths.max(initial=0))))
    padding = position >= lengths[:, None]
    columns = np.zeros(padding.shape, dtype=np.int64)
    columns[~padding] = matrix[rows].indices
    return columns, padding


def _are_targets(lists: IntArray, targets: scipy.sparse.csr_matrix, rows: IntArray) -> BoolArray:
    """(B, K) whether each listed item is one of the row's targets; a place without an item (-1) is none."""
    wanted = targets[rows].toarray() > 0
    hits: BoolArray = np.take_along_axis(wanted, np.maximum(lists, 0), axis=1) & (lists >= 0)
    return hits
