"""A tree search over the sets of edges that one explanation may remove: what to try next, and what was learned.

A node of the tree is a set of edges, its children are the set and one edge more. Edges are numbered 0..E-1 within the
scope of the unit. Of the edges that a set may grow by, the ``width`` with the greatest strength are children: with
``connected``, of those that touch a root (the user, an explained item) or an edge of the set; else of all.

A set that is reached on several ways is tried once. A set below which nothing is left to try is closed, and so is one
that the best answer leaves no room for another edge. :class:`EdgeTree` only proposes sets and takes in what they did; it
never queries the model, so that the sets of many explanations can be scored together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cfbench_recsys.edits import FloatArray, IntArray

EdgeSet = tuple[int, ...]
"""Ascending numbers of edges."""


@dataclass(frozen=True)
class Outcome:
    """What removing a set of edges did.

    Attributes:
        displaced: items that rank beyond K.
        reward: in [0, 1], 1 where all do.
        left: how much of the margins is left, mean over the items of the unit, in units of those at the start.
    """

    displaced: int
    reward: float
    left: float


@dataclass(frozen=True)
class TreeOptions:
    """As in the configuration of the explainer; ``guided``: whether gains are known."""

    width: int
    max_edges: int
    batch: int
    simulations: int
    patience: int
    exploration: float
    partial: float
    prune: bool
    guided: bool
    connected: bool


class Surroundings:
    """The strongest ``limit`` edges at a node of the graph, or of all, strongest first."""

    def __init__(self, users: IntArray, items: IntArray, strength: FloatArray, limit: int) -> None:
        self.users, self.items, self.strength, self.limit = users, items, strength, limit
        self._order = [np.lexsort((-strength, nodes)) for nodes in (users, items)]
        self._nodes = [nodes[order] for nodes, order in zip((users, items), self._order, strict=True)]

    def at_user(self, user: int) -> IntArray:
        return self._at(0, user)

    def at_item(self, item: int) -> IntArray:
        return self._at(1, item)

    def strongest(self) -> IntArray:
        """Of all edges."""
        return np.argsort(-self.strength, kind="stable")[: self.limit]

    def _at(self, side: int, node: int) -> IntArray:
        low, high = np.searchsorted(self._nodes[side], [node, node + 1])
        return self._order[side][low : min(high, low + self.limit)]

    def together(self, parts: Sequence[IntArray]) -> IntArray:
        """The strongest edges of all ``parts``."""
        edges = np.unique(np.concatenate(parts))
        return edges[np.argsort(-self.strength[edges], kind="stable")[: self.limit]]


class _Node:
    """A set of edges in the tree.

    Attributes:
        pool: the strongest edges that it may grow by, those in it among them.
        children: (C,) edges to grow by; value (C,) best reward seen below, an estimate before the first visit, -inf
            where nothing is left; visits (C,).
        waiting: children whose value is -inf for this round only.
    """

    __slots__ = ("children", "edges", "outcome", "pool", "prior", "value", "visits", "waiting")

    def __init__(self, edges: EdgeSet, outcome: Outcome, pool: IntArray) -> None:
        self.edges, self.outcome, self.pool = edges, outcome, pool
        self.children: IntArray | None = None
        self.value = self.visits = self.prior = np.empty(0)
        self.waiting = 0


_Path = list[tuple[_Node, int]]


class EdgeTree:
    """The search of one unit.

    Attributes:
        best: the best set so far, () without one; best_displaced: items that it displaces.
        queries: sets that were tested.
    """

    def __init__(
        self,
        around: Surroundings,
        roots: tuple[IntArray, IntArray],
        gains: FloatArray,
        wanted: int,
        options: TreeOptions,
    ) -> None:
        """
        Args:
            roots: users and items where sets begin.
            gains: (E,) by how much the margins (as in ``Outcome.left``) shrink when an edge goes, to first order.
            wanted: items that are to be displaced.
        """
        self.around, self.gains, self.options, self.wanted = around, gains, options, wanted
        self.best: EdgeSet = ()
        self.best_displaced, self.queries, self.improved_at = 0, 0, 0
        if options.connected:
            users, items = roots
            parts = [around.at_user(int(u)) for u in users] + [around.at_item(int(i)) for i in items]
            pool = around.together(parts)
        else:
            pool = around.strongest()
        nothing = Outcome(0, 0.0, 1.0)
        self._root = _Node((), nothing, pool)
        self._nodes: dict[EdgeSet, _Node] = {(): self._root}
        self._known: dict[EdgeSet, Outcome] = {(): nothing}
        self._paths: dict[EdgeSet, _Path] = {}
        self._blocked: list[tuple[_Node, int, float]] = []
        self._smaller: list[EdgeSet] = []
        self._closed = False
        self._complete_from: tuple[EdgeSet, Outcome] | None = ((), nothing) if options.guided else None
        self._gains_there = gains
        self._completion: EdgeSet | None = None
        self._roots = roots

    @property
    def cap(self) -> int:
        """Edges that a set may have and still be of interest."""
        if self.best_displaced < self.wanted:
            return self.options.max_edges
        return min(self.options.max_edges, len(self.best) - 1)

    def propose(self) -> list[EdgeSet]:
        """Sets to try next, none tried before; none: the search is over."""
        found = [edges for edges in self._smaller if edges not in self._known]
        if self._over():
            return found
        found += [edges for edges in self._completed() if edges not in found]
        leaves = 0
        while leaves < self.options.batch and not self._closed:
            path = self._descend()
            if path is None:
                continue
            if not path:
                break
            node, choice = path[-1]
            edges = _with(node.edges, node.children[choice])  # type: ignore[index]
            self._paths[edges] = path
            leaves += 1
            if edges not in found:
                found.append(edges)
        return found

    def learn(self, sets: Sequence[EdgeSet], outcomes: Sequence[Outcome]) -> None:
        """Takes in what the sets did that :meth:`propose` named."""
        self.queries += len(sets)
        for edges, outcome in zip(sets, outcomes, strict=True):
            self._known[edges] = outcome
            self._keep(edges, outcome)
        for node, choice, value in self._blocked:
            node.value[choice], node.waiting = value, 0
        self._blocked.clear()
        self._continue_completion()
        for edges, path in self._paths.items():
            self._grow(edges, path)
        self._paths.clear()

    def _over(self) -> bool:
        spent = self.queries >= self.options.simulations
        rests = bool(self.best) and self.queries - self.improved_at >= self.options.patience
        return self._closed or spent or rests or self.cap < 1

    def _keep(self, edges: EdgeSet, outcome: Outcome) -> None:
        """Is it the best? Then each of the sets with one edge less is worth a try."""
        if outcome.displaced == 0 or not edges:
            return
        rank = (-outcome.displaced, len(edges), edges)
        if self.best and rank[:2] >= (-self.best_displaced, len(self.best)):
            return
        self.best, self.best_displaced, self.improved_at = edges, outcome.displaced, self.queries
        if self.options.prune and len(edges) > 1:
            self._smaller = [edges[:place] + edges[place + 1 :] for place in range(len(edges))]
        else:
            self._smaller = []

    def _descend(self) -> _Path | None:
        """The way to a set that was not tried. None: a set was closed, try again; empty: no more in this round."""
        node = self._root
        path: _Path = []
        while True:
            if node.children is None:
                self._expand(node)
            scores = self._scores(node) if len(node.edges) < self.cap else np.empty(0)
            choice = int(scores.argmax()) if len(scores) else -1
            if choice < 0 or scores[choice] == -np.inf:
                return self._block(node, path)
            node.visits[choice] += 1
            path.append((node, choice))
            edges = _with(node.edges, node.children[choice])  # type: ignore[index]
            child = self._nodes.get(edges)
            if child is None:
                known = self._known.get(edges)
                if known is None:
                    self._blocked.append((node, choice, node.value[choice]))
                    node.value[choice] = -np.inf
                    node.waiting += 1
                    return path
                self._grow(edges, path)  # was tried, but not by the tree
                return None
            if node.visits[choice] == 1:
                node.value[choice] = child.outcome.reward  # another way led there first
            node = child

    def _block(self, node: _Node, path: _Path) -> _Path | None:
        """Nothing below ``node``: for ever, or until those that wait are known."""
        if not path:
            if not node.waiting:
                self._closed = True
            return []
        parent, choice = path[-1]
        if node.waiting:
            self._blocked.append((parent, choice, parent.value[choice]))
            parent.waiting += 1
        parent.value[choice] = -np.inf
        return None

    def _scores(self, node: _Node) -> FloatArray:
        """Which child to go to: by PUCT where gains are known, else by UCB1."""
        visited, c = node.visits, self.options.exploration
        total = visited.sum()
        if self.options.guided:
            guided: FloatArray = node.value + c * node.prior * np.sqrt(total + 1) / (1 + visited)
            return guided
        bonus = c * np.sqrt(np.log(max(total, 1.0)) / np.maximum(visited, 1))
        return np.where((visited == 0) & (node.value > -np.inf), np.inf, node.value + bonus)

    def _expand(self, node: _Node) -> None:
        """Its children, the strongest first."""
        pool = node.pool[~np.isin(node.pool, node.edges)][: self.options.width]
        node.children, node.visits = pool, np.zeros(len(pool))
        gains = np.maximum(self.gains[pool], 0.0)
        closed = 1 - node.outcome.left
        node.value = self.options.partial * np.clip(closed + self.gains[pool], 0.0, 1.0)
        share = gains / gains.sum() if gains.sum() > 0 else np.zeros(len(pool))
        node.prior = 0.75 * share + 0.25 / max(1, len(pool))

    def _grow(self, edges: EdgeSet, path: _Path) -> None:
        """``edges`` becomes a node of the tree, and the nodes on the way learn its reward."""
        outcome = self._known[edges]
        parent, choice = path[-1]
        if outcome.displaced >= self.wanted:
            parent.value[choice] = -np.inf  # more edges are not requested
            return
        parent.value[choice] = outcome.reward
        for node, which in path[:-1]:
            node.value[which] = max(node.value[which], outcome.reward)
        if edges in self._nodes:
            return
        pool = self._pool(parent.pool, int(parent.children[choice]))  # type: ignore[index]
        self._nodes[edges] = _Node(edges, outcome, pool)
        before = self._complete_from
        if self.options.guided and (before is None or outcome.reward > before[1].reward):
            self._complete_from = (edges, outcome)

    def wants_gains(self) -> EdgeSet | None:
        """The set at which gains are wanted anew: it is to be completed."""
        if self._complete_from is None or self._over() or len(self._complete_from[0]) >= self.cap:
            return None
        return self._complete_from[0]

    def take_gains(self, gains: FloatArray) -> None:
        """The gains that :meth:`wants_gains` requested, (E,)."""
        self._gains_there = gains

    def _completed(self) -> list[EdgeSet]:
        """The most promising new set, with edges added in the order of their gains there until these promise success.

        Also with a quarter, half and three quarters of them: the promise may be too careful.
        """
        chosen, self._complete_from = self._complete_from, None
        if chosen is None or len(chosen[0]) >= self.cap:
            return []
        edges, outcome = chosen
        gains = self._gains_there
        near = self._growing(edges)
        near = near[gains[near] > 0]
        added = near[np.argsort(-gains[near], kind="stable")][: self.cap - len(edges)]
        enough = int(np.searchsorted(np.cumsum(gains[added]), outcome.left)) + 1
        enough = min(enough, len(added))
        lengths = sorted({-(-enough * quarters // 4) for quarters in (1, 2, 3, 4)} - {0})
        sets = [tuple(sorted((*edges, *added[:length].tolist()))) for length in lengths]
        self._completion = sets[-1] if sets and sets[-1] not in self._known else None
        return [completed for completed in sets if completed not in self._known]

    def _continue_completion(self) -> None:
        """Was promised more than it did? Then it is completed further, from what it really did."""
        tried, self._completion = self._completion, None
        if tried is not None and self._known[tried].displaced < self.wanted:
            self._complete_from = (tried, self._known[tried])

    def _growing(self, edges: EdgeSet) -> IntArray:
        """All edges that a set may grow by."""
        own = np.array(edges, dtype=np.int64)
        free = np.ones(len(self.gains), dtype=bool)
        if self.options.connected:
            users, items = self.around.users, self.around.items
            free = np.isin(users, np.concatenate([self._roots[0], users[own]]))
            free |= np.isin(items, np.concatenate([self._roots[1], items[own]]))
        free[own] = False
        return np.flatnonzero(free)

    def _pool(self, pool: IntArray, edge: int) -> IntArray:
        """The strongest edges that a set may grow by once it has ``edge`` too, if it had ``pool`` before."""
        if not self.options.connected:
            return pool
        user, item = int(self.around.users[edge]), int(self.around.items[edge])
        return self.around.together([pool, self.around.at_user(user), self.around.at_item(item)])


def _with(edges: EdgeSet, edge: int) -> EdgeSet:
    return tuple(sorted((*edges, int(edge))))
