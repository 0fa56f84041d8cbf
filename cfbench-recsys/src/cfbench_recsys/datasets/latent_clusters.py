"""Users with tastes, items of which few are popular, and pairs drawn from them: see ``synthetic.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.edits import IntArray


@dataclass(frozen=True)
class ClusterOptions:
    """The counts of users, items and clusters, and the shape of the draws; see the options of ``synthetic``."""

    users: int
    items: int
    clusters: int
    exponent: float
    loyalty: float
    seed: int


class LatentClusters:
    """Who likes what, and how much: drawn once; draws users and items from it.

    Attributes:
        of_user (users,), of_item (items,): their clusters.
    """

    def __init__(self, config: ClusterOptions) -> None:
        self.config = config
        self.random = generator("synthetic", config.seed)
        self.of_user = self.random.integers(config.clusters, size=config.users)
        self.activity = np.cumsum(self.random.lognormal(size=config.users))
        self.by_place = self.random.permutation(config.items)  # the most popular item first
        self.of_item = np.empty(config.items, dtype=np.int64)
        self.of_item[self.by_place] = np.arange(config.items) % config.clusters
        self.popularity = np.arange(1.0, config.items + 1) ** -config.exponent
        places = np.arange(config.items)
        self.of_taste = [places[taste :: config.clusters] for taste in range(config.clusters)]

    def users(self, count: int) -> IntArray:
        """(count,) by activity."""
        return _drawn(self.activity, self.random.random(count))

    def items_for(self, users: IntArray) -> IntArray:
        """(n,) an item for each of ``users`` (n,), by its own taste or by popularity alone."""
        draws = self.random.random(len(users))
        loyal = self.random.random(len(users)) < self.config.loyalty
        places = np.empty(len(users), dtype=np.int64)
        places[~loyal] = _drawn(np.cumsum(self.popularity), draws[~loyal])
        by_taste = np.flatnonzero(loyal)
        by_taste = by_taste[np.argsort(self.of_user[users[by_taste]], kind="stable")]
        ends = np.cumsum(np.bincount(self.of_user[users[by_taste]], minlength=self.config.clusters))
        for own, chosen in zip(self.of_taste, np.split(by_taste, ends[:-1]), strict=True):
            places[chosen] = own[_drawn(np.cumsum(self.popularity[own]), draws[chosen])]
        return self.by_place[places]


def different_pairs(clusters: LatentClusters, interactions: int) -> IntArray:
    """(interactions,) different pairs as ``user * items + item``, ascending; every user and every item is in at least one.

    Raises:
        UserError: if so many different ones do not come up.
    """
    config = clusters.config
    all_users = np.arange(config.users)
    keys = all_users * config.items + clusters.items_for(all_users)
    lonely = np.flatnonzero(np.bincount(keys % config.items, minlength=config.items) == 0)
    keys = np.sort(np.concatenate([keys, clusters.users(len(lonely)) * config.items + lonely]))
    while (missing := interactions - len(keys)) > 0:
        users = clusters.users(missing + missing // 8 + 1000)
        drawn = np.sort(users * config.items + clusters.items_for(users))
        drawn = drawn[np.append(True, drawn[1:] != drawn[:-1])]
        new = drawn[keys[np.minimum(np.searchsorted(keys, drawn), len(keys) - 1)] != drawn]
        if len(new) < min(missing, 10) or len(new) < missing / 100:
            raise UserError(
                f"synthetic: hardly any new pairs come up after {len(keys):,} of {interactions:,}; "
                "take fewer interactions, a smaller exponent or less loyalty"
            )
        if len(new) > missing:
            new = clusters.random.choice(new, missing, replace=False)
        keys = np.sort(np.concatenate([keys, new]))
    return keys


def _drawn(cumulated: np.ndarray, draws: np.ndarray) -> IntArray:
    """Indices, drawn by the weights whose running sum is ``cumulated``; ``draws`` are uniform in [0, 1)."""
    found = np.searchsorted(cumulated, draws * cumulated[-1], side="right")
    inside: IntArray = np.minimum(found, len(cumulated) - 1).astype(np.int64)  # rounding may reach the end
    return inside
