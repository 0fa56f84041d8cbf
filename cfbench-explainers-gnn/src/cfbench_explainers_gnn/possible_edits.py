"""What an explanation may do to the graph: edges in scope to be removed, and a bounded set of edges to be added.

Additions are bounded and stated, never all pairs of users and items:

- of the user's own: the ``own`` unseen items that the recommender ranks next after the first K, explained items
  left out;
- of others: (v, r) where r is one of the ``rivals`` items that the recommender ranks next after the first K, or an
  explained item (more edges make each of them count less), and v one of ``neighbours`` users: those who have an
  explained item first, then those who share items with the user, each time the ones who share most.

Of these an edge may be added if it is in scope once it is there. So user-only has the user's own alone; indirect
has own items that lead over another user to an explained item, and explained items for users who share an item;
k-hop has what begins or ends at most k - 1 steps from the user or an explained item; full has all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, Range
from cfbench_recsys.edits import ADD, REMOVE, BoolArray, Edits, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Context, Targets


@dataclass(frozen=True, kw_only=True)
class AdditionsConfig:
    """How many edges may be added, where the protocol lets edges be added."""

    own: Annotated[int, Range(minimum=0), Help("items that the user may get: the next in the ranking")] = 32
    rivals: Annotated[int, Range(minimum=0), Help("items that others may get: the next in the ranking")] = 8
    neighbours: Annotated[
        int, Range(minimum=0), Help("users who may get them, near the user and the item")
    ] = 16


def possible_edits(targets: Targets, context: Context, additions: AdditionsConfig | None = None) -> Edits:
    """B edits of everything that each unit may edit: the edges in scope, then additions, if any."""
    scope = edges_in_scope(context.interactions, targets)
    ops = np.full(len(scope.rows), REMOVE, dtype=np.int8)
    removals = Edits(targets.users, scope.rows.astype(np.int64), scope.users, scope.items, ops)
    if additions is None:
        return removals
    return _together(removals, possible_additions(targets, context, additions))


def _together(first: Edits, second: Edits) -> Edits:
    """For each unit the edges of both."""
    order = np.argsort(np.concatenate([first.rows, second.rows]), kind="stable")
    pairs = ((getattr(first, n), getattr(second, n)) for n in ("rows", "edge_users", "edge_items", "ops"))
    return Edits(first.users, *(np.concatenate(pair)[order] for pair in pairs))


def possible_additions(targets: Targets, context: Context, config: AdditionsConfig) -> Edits:
    """B edits of everything that each unit may add, ascending by user and item."""
    graph = context.interactions
    scores = context.graph_model.score_edits(Edits.nothing(targets.users))
    length = targets.k + max(config.own, config.rivals)
    ranked = top_k(scores, *targets.seen, length)[:, targets.k :]
    found = [
        _Around(graph, int(user), items[items >= 0]).additions(
            next_items, targets.scope, targets.hops, config
        )
        for user, items, next_items in zip(targets.users, targets.items, ranked, strict=True)
    ]
    rows = np.repeat(np.arange(len(targets)), [len(users) for users, _ in found])
    users = np.concatenate([users for users, _ in found]) if found else rows
    items = np.concatenate([items for _, items in found]) if found else rows
    return Edits(targets.users, rows, users, items, np.full(len(rows), ADD, dtype=np.int8))


class _Around:
    """The surroundings of a user and the explained items.

    Attributes:
        shared: (users,) items in common with the user. likes: (users,) who else has an explained item.
    """

    def __init__(self, graph: scipy.sparse.csr_matrix, user: int, explained: IntArray) -> None:
        self.graph, self.user, self.explained = graph, user, explained
        self.own = _marked(graph.shape[1], graph[[user]].indices)
        self.wanted = _marked(graph.shape[1], explained)
        self.shared = graph @ self.own.astype(np.float64)
        self.likes = graph @ self.wanted.astype(np.float64) > 0
        self.shared[user], self.likes[user] = 0.0, False

    def additions(
        self, next_items: IntArray, scope: str, hops: int, config: AdditionsConfig
    ) -> tuple[IntArray, IntArray]:
        """(N,) users and items."""
        next_items = next_items[(next_items >= 0) & ~self.wanted[next_items]]
        rivals = np.concatenate([next_items[: config.rivals], self.explained])
        users, items = _pairs(np.array([self.user]), next_items[: config.own])
        if scope not in ("user-vector", "user-only"):
            others = _pairs(self.neighbours(config.neighbours), rivals)
            users, items = np.concatenate([users, others[0]]), np.concatenate([items, others[1]])
        retained: BoolArray = (
            np.asarray(self.graph[users, items] == 0).ravel() if len(users) else np.empty(0, bool)
        )
        users, items = users[retained], items[retained]
        if scope == "indirect":
            retained = self._indirect(users, items)
        elif scope == "k-hop":
            retained = self._within(users, items, hops)
        else:
            retained = np.ones(len(users), dtype=bool)
        order = np.lexsort((items[retained], users[retained]))
        return users[retained][order], items[retained][order]

    def neighbours(self, count: int) -> IntArray:
        """At most ``count`` users: who has an explained item before who does not, then by shared items."""
        near = np.flatnonzero(self.likes | (self.shared > 0))
        return near[np.lexsort((near, -self.shared[near], ~self.likes[near]))][:count]

    def _indirect(self, users: IntArray, items: IntArray) -> BoolArray:
        """Which edges would be on a path user - item' - user' - explained item."""
        leads_there = self.graph.T @ self.likes.astype(np.float64) > 0
        own = (users == self.user) & leads_there[items]
        bridge: BoolArray = own | ((self.shared[users] > 0) & self.wanted[items])
        return bridge

    def _within(self, users: IntArray, items: IntArray, hops: int) -> BoolArray:
        """Which edges begin or end at most ``hops`` - 1 steps from the user or an explained item."""
        near_users: BoolArray = _marked(self.graph.shape[0], np.array([self.user]))
        near_items: BoolArray = self.wanted
        for _ in range(hops - 1):
            more_users = self.graph @ near_items.astype(np.float64) > 0
            more_items = self.graph.T @ near_users.astype(np.float64) > 0
            near_users, near_items = near_users | more_users, near_items | more_items
        near: BoolArray = near_users[users] | near_items[items]
        return near


def _marked(count: int, which: IntArray) -> BoolArray:
    marks = np.zeros(count, dtype=bool)
    marks[which] = True
    return marks


def _pairs(users: IntArray, items: IntArray) -> tuple[IntArray, IntArray]:
    """(N,) each of ``users`` with each of ``items``."""
    return np.repeat(users, len(items)), np.tile(items, len(users))
