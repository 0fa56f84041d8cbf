"""LIME-RS as published: a linear surrogate over items recommended in place of the explained one.

Nóbrega & Marinho, "Towards explaining recommendations through local surrogate models", SAC 2019, with the authors' code
(repository caionobrega/explaining-recommendations, commit 8547f9d, neighbourhood "item"). The profile is never edited.
A sample is a pair of the user u and an item j; its features are the one-hot encodings of user and item (and of item
attributes, where a data set has some). The samples are the explained pair (u, y) and ``samples`` - 1 pairs with other
items, drawn without replacement with probabilities proportional to their training interactions. A ridge regression
predicts the recommender's score s(x)_j from the features:

    beta, b = argmin  sum_j w_j (s(x)_j - b - beta_j)^2 + ridge |beta|^2,       w_j = exp(-d_j^2 / (2 kernel_width^2))

with d_j the cosine distance between the features of (u, j) and of (u, y): 0 for y and 1/2 for all others, which share
the user. With W_j the sum of the weights of item j, which is drawn once (y perhaps twice), the solution is

    beta_j = W_j (s(x)_j - b) / (W_j + ridge),     b = sum_j W_j s_j / (W_j + ridge)  /  sum_j W_j / (W_j + ridge).

Hyperparameters: 1000 samples, kernel width 25, ridge 1 (that of the package lime), no selection of features.

The importance of an interaction i is beta_i (the authors' "item" features), 0 if i was not drawn. At list level it is the
mean over the listed items. It says that the recommender scores i high for this user, whatever item is explained: with
the authors' kernel width the explained item is nearly without effect. That is a property of the published method
where items have no attributes.

Adaptations: no attributes of items, the authors' main use; scores are not rounded to three digits; item frequencies are
those of training users. Other papers (CFExpRec, Refined fidelity) call a method LIME-RS that perturbs the profile:
``sampling: draws`` of ``variant: cfbench``, whose default ``sampling: history`` improves on that one.

Agreement with the authors' code and the package lime on the same samples (benchmarks/authors_native.py): on ml-100k with
MF, 20 users, K = 5, the order of the importances and all 100 answers (the smallest prefix, PN-S 0.92, 9.9 edits) are
identical.

Cost: one model query for each user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_native.shared import mean_over_targets, rounded
from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Context, Targets

OTHER = 0.5
"""Cosine distance of the features of a pair of the same user with another item."""


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code."""

    samples: Annotated[int, Range(minimum=2), Help("pairs of the user and an item")] = 1000
    kernel_width: Annotated[float, Range(above=0), Help("of the cosine distance")] = 25.0
    ridge: Annotated[float, Range(above=0), Help("penalty of the coefficients' squares")] = 1.0


class PaperLimeRS:
    def __init__(self, options: PaperOptions) -> None:
        self.options = options

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) coefficients of the items of the history."""
        frequencies = np.bincount(context.training.indices, minlength=context.interactions.shape[1])
        users, first, owners = np.unique(targets.users, return_index=True, return_inverse=True)
        found = np.zeros((*targets.history.shape, targets.items.shape[1]))
        for rows, scores in score_blocks(context.model, Edits.nothing(users), context.interactions):
            for row, user in enumerate(range(rows.start, rows.stop)):
                history = targets.history[first[user], ~targets.padding[first[user]]]
                for unit in np.flatnonzero(owners == user):
                    for place, item in enumerate(targets.items[unit].tolist()):
                        drawn = neighbours(int(users[user]), item, frequencies, self.options.samples, context)
                        values = coefficients(scores[row], item, drawn, self.options)
                        found[unit, : len(history), place] = values[history]
        return rounded(mean_over_targets(found))


def neighbours(user: int, item: int, frequencies: IntArray, samples: int, context: Context) -> IntArray:
    """Items drawn for the samples in addition to the explained one, each at most once."""
    count = min(samples - 1, int(np.count_nonzero(frequencies)))
    if not count:
        return np.empty(0, dtype=np.int64)
    stream = context.generator("lime-rs", "items", user, item)
    shares: FloatArray = frequencies / frequencies.sum()
    drawn: IntArray = stream.choice(len(frequencies), size=count, replace=False, p=shares)
    return drawn


def coefficients(scores: FloatArray, item: int, drawn: IntArray, options: PaperOptions) -> FloatArray:
    """(items,) coefficients of the surrogate; 0 for items that no sample has."""
    weights = np.zeros(len(scores))
    weights[drawn] = np.exp(-((OTHER / options.kernel_width) ** 2) / 2)
    weights[drawn[drawn == item]] = 1.0
    weights[item] += 1.0
    shares = weights / (weights + options.ridge)
    intercept = (shares * scores).sum() / shares.sum()
    found: FloatArray = shares * (scores - intercept)
    return found
