"""Items that make the explained one likelier: P(target | item) / P(target).

    lift(h; y) = P(y | h) / P(y),    P(y) = |U_y| / n,    P(y | h) = (|U_h n U_y| + a P(y)) / (|U_h| + a)

U_i are the training users of item i, n all training users: above 1, who has h is likelier than others to
have y. a users of average taste are added to those of h, which draws the lift of a rare h towards 1. An item
that no training user has (as h or as y) has no information: 1. At list level the mean over the listed items.
Cost: no model queries.

The "interest" of Brin, Motwani, Ullman and Tsur (Dynamic itemset counting and implication rules for market
basket data, SIGMOD 1997), which others call lift. The added users are ours: without them an item with one
user leads every list. It does not use the recommender: it describes the behaviour of users, not that of the model.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.targets import Context, Targets
from scipy import sparse

SPEC = ComponentSpec(
    id="recsys/explainer/lift",
    summary="Items that make the explained one likelier: P(target | item) / P(target)",
    target=f"{__name__}:Lift",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    papers=("brin1997itemsets",),
    version="1",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    average_users: Annotated[float, Range(minimum=0), Help("users of average taste, added to each item")] = (
        5.0
    )


class Lift:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) aligned with ``targets.history``; values at padding are ignored."""
        explained, columns = np.unique(targets.items, return_inverse=True)
        lifts = self.lifts(context.training, explained)
        columns = columns.reshape(targets.items.shape)  # (B, T)
        total = np.zeros(targets.history.shape)
        for target in range(targets.items.shape[1]):
            total += lifts[targets.history, columns[:, target, None]]
        return total / targets.items.shape[1]

    def lifts(self, training: sparse.csr_matrix, explained: IntArray) -> FloatArray:
        """(items, explained) from binary interactions (users, items)."""
        users = np.count_nonzero(np.diff(training.indptr))
        users_of = np.asarray(training.sum(axis=0)).ravel()  # (items,)
        both = (training.T @ training[:, explained]).toarray()
        likely = users_of[explained] / max(users, 1)  # P(y)
        added = self.config.average_users
        known = np.ones_like(both)
        expected = (users_of[:, None] + added) * likely
        return np.divide(both + added * likely, expected, out=known, where=expected > 0)
