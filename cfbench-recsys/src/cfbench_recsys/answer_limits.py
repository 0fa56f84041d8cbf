"""The limits of explicit answers: edges in scope, each once, as they are in the graph, and no more than the budget.

All answers are checked before they are scored, whoever made them, and what an explainer returns before it is verified and
pruned: neither an edge outside its scope nor an edit too many can hide in an answer that fails or is shortened. A check of
an edge looks at the neighbours of its ends and of the unit, not at the whole graph.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_recsys.edits import ADD, REMOVE, BoolArray, Edits, IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.targets import Targets


def check_limits(
    edits: Edits,
    targets: Targets,
    graph: scipy.sparse.csr_matrix,
    units: pd.Series,
    interactions: Interactions,
) -> None:
    """That each of B edits is within the budget and the scope of its target.

    Args:
        graph: (users, items) the interactions that explainers see.
        units: (B,) names of the units, for the message.
        interactions: the data, for the identifiers in the message.

    Raises:
        UserError: if one is not; it names the unit and the edit.
    """
    beyond = np.flatnonzero(_place_in_answer(edits) >= targets.budget)
    if len(beyond):
        edge, size = beyond[0], edits.counts()[edits.rows[beyond[0]]]
        raise UserError(
            f"explanations: unit {units.iloc[edits.rows[edge]]!r} has {size} edits, {_named(edits, edge, interactions)} "
            f"is one too many: 'protocol.max_edits' is {targets.max_edits}"
        )
    check_edges(edits, targets, graph, units, interactions)


def check_edges(
    edits: Edits,
    targets: Targets,
    graph: scipy.sparse.csr_matrix,
    units: pd.Series,
    interactions: Interactions,
) -> None:
    """That B edits name each edge once, within scope; remove only what is there, and add only what is not.

    The arguments are those of :func:`check_limits`.

    Raises:
        UserError: if not; it names the unit and the edit.
    """
    outside = np.flatnonzero(~in_scope(edits, targets, graph))
    if len(outside):
        edge = outside[0]
        raise UserError(
            f"explanations: unit {units.iloc[edits.rows[edge]]!r} edits {_named(edits, edge, interactions)}, outside its "
            f"scope {targets.scope_label}"
        )
    twice = _repeated(edits, graph.shape)
    exists = np.zeros(len(edits.rows), dtype=bool)
    if len(exists):
        exists = np.asarray(graph[edits.edge_users, edits.edge_items]).ravel() > 0
    for wrong, what in (
        (twice, "names an interaction twice"),
        (exists & (edits.ops == ADD), "adds an interaction that exists"),
        (~exists & (edits.ops == REMOVE), "removes an interaction that is not there"),
    ):
        if wrong.any():
            edge = int(wrong.argmax())
            unit = units.iloc[edits.rows[edge]]
            raise UserError(f"explanations: unit {unit!r} {what}: {_named(edits, edge, interactions)}")


def _repeated(edits: Edits, shape: tuple[int, int]) -> BoolArray:
    """(E,) which edges stand in the same edit before."""
    keys = (edits.rows.astype(np.int64) * shape[0] + edits.edge_users) * shape[1] + edits.edge_items
    repeated = np.ones(len(keys), dtype=bool)
    repeated[np.unique(keys, return_index=True)[1]] = False
    return repeated


def _named(edits: Edits, edge: int, interactions: Interactions) -> str:
    user, item = interactions.user_ids[edits.edge_users[edge]], interactions.item_ids[edits.edge_items[edge]]
    return f"({user}, {item})"


def _place_in_answer(edits: Edits) -> IntArray:
    """(E,) 0 for the first edge of an edit, 1 for its second, ..."""
    place: IntArray = np.arange(len(edits.rows)) - np.searchsorted(edits.rows, edits.rows)
    return place


def in_scope(edits: Edits, targets: Targets, graph: scipy.sparse.csr_matrix) -> BoolArray:
    """(E,) which edges of B edits their targets may edit; an edge to be added must be in scope once it is there.

    See ``scopes.py`` for the scopes.
    """
    own: BoolArray = edits.edge_users == targets.users[edits.rows]
    if targets.scope in ("user-vector", "user-only"):
        return own
    inside = np.ones(len(edits.rows), dtype=bool)
    if targets.scope == "full" or not len(inside):
        return inside
    neighbours = _Neighbours(graph)
    for unit in np.unique(edits.rows):
        low, high = np.searchsorted(edits.rows, [unit, unit + 1])
        items = targets.items[unit]
        start = (int(targets.users[unit]), set(items[items >= 0].tolist()))
        edges = zip(edits.edge_users[low:high].tolist(), edits.edge_items[low:high].tolist(), strict=True)
        if targets.scope == "indirect":
            inside[low:high] = [neighbours.on_path(*start, user, item) for user, item in edges]
        else:
            near = neighbours.ball(*start, targets.hops - 2)
            last = targets.hops > 1
            inside[low:high] = [neighbours.touches(near, user, item, last) for user, item in edges]
    return inside


Ball = tuple[set[int], set[int]]
"""Users, and items."""


class _Neighbours:
    """The items of users and the users of items."""

    def __init__(self, graph: scipy.sparse.csr_matrix) -> None:
        self._by_user, self._by_item = graph.tocsr(), graph.tocsc()

    def items(self, user: int) -> set[int]:
        return set(self._by_user.indices[slice(*self._by_user.indptr[[user, user + 1]])].tolist())

    def users(self, item: int) -> set[int]:
        return set(self._by_item.indices[slice(*self._by_item.indptr[[item, item + 1]])].tolist())

    def on_path(self, user: int, targets: set[int], edge_user: int, item: int) -> bool:
        """Whether the edge is on a path user - item' - user' - target."""
        likes = set().union(*map(self.users, targets)) - {user}
        if edge_user == user:
            return bool(self.users(item) & likes)
        own = self.items(user)
        if item in targets:
            return bool(self.items(edge_user) & own)
        return item in own and edge_user in likes

    def ball(self, user: int, targets: set[int], radius: int) -> Ball:
        """The nodes at most ``radius`` steps from the user or a target."""
        users, items = {user}, set(targets)
        new_users, new_items = users, items
        for _ in range(radius):
            new_users, new_items = (
                set().union(*map(self.users, new_items)) - users,
                set().union(*map(self.items, new_users)) - items,
            )
            users, items = users | new_users, items | new_items
        return users, items

    def touches(self, near: Ball, user: int, item: int, last: bool) -> bool:
        """Whether an end of the edge is in the ball ``near``, or with ``last`` next to it."""
        users, items = near
        if user in users or item in items:
            return True
        return last and bool(self.items(user) & items or self.users(item) & users)
