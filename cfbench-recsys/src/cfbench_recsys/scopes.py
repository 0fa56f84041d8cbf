"""Which edges of the graph an explanation may touch (CFExpRec, sec. 4.5).

- ``user-only`` (and ``user-vector``): the user's own interactions.
- ``indirect``: edges on paths user - item' - user' - target.
- ``k-hop``: edges met by breadth-first search up to k levels (``targets.hops``) from the user and the targets.
- ``full``: every edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.edits import IntArray
from cfbench_recsys.targets import Scope, Targets


@dataclass(frozen=True)
class EdgesInScope:
    """The edges that B units may edit, ragged.

    Attributes:
        rows: (E,) to which unit an edge belongs, non-decreasing.
        users, items: (E,) the edges.
    """

    rows: IntArray
    users: IntArray
    items: IntArray


def edges_in_scope(graph: scipy.sparse.csr_matrix, targets: Targets) -> EdgesInScope:
    """The edges of ``graph`` (users, items) that each target may edit under ``targets.scope``, locked ones left out."""
    found = _in_scope(graph, targets)
    if not targets.locked:
        return found
    own = found.users == targets.users[found.rows]
    free = ~(own & np.isin(found.items, targets.locked))
    return EdgesInScope(found.rows[free], found.users[free], found.items[free])


def _in_scope(graph: scipy.sparse.csr_matrix, targets: Targets) -> EdgesInScope:
    if targets.scope in ("user-vector", "user-only"):
        rows, columns = np.nonzero(~targets.padding)
        return EdgesInScope(rows, targets.users[rows], targets.history[rows, columns])
    transposed = graph.T.tocsr()
    found = [
        _edges(graph, transposed, int(user), items[items >= 0], targets.scope, targets.hops)
        for user, items in zip(targets.users, targets.items, strict=True)
    ]
    counts = [len(users) for users, _ in found]
    return EdgesInScope(
        np.repeat(np.arange(len(targets)), counts),
        np.concatenate([users for users, _ in found]) if found else np.empty(0, np.int64),
        np.concatenate([items for _, items in found]) if found else np.empty(0, np.int64),
    )


def _edges(
    graph: scipy.sparse.csr_matrix,
    transposed: scipy.sparse.csr_matrix,
    user: int,
    items: IntArray,
    scope: Scope,
    hops: int,
) -> tuple[IntArray, IntArray]:
    if scope == "full":
        retained = np.ones(graph.nnz, dtype=bool)
    elif scope == "indirect":
        retained = _indirect(graph, transposed, user, items)
    else:
        retained = _within_hops(graph, transposed, user, items, hops)
    users = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))[retained]
    return users.astype(np.int64), graph.indices[retained].astype(np.int64)


def _indirect(
    graph: scipy.sparse.csr_matrix, transposed: scipy.sparse.csr_matrix, user: int, items: IntArray
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(nnz,) which edges lie on a path user - item' - user' - target with user' another user."""
    own = np.zeros(graph.shape[1], dtype=bool)
    own[_row(graph, user)] = True
    targets = np.zeros(graph.shape[1], dtype=bool)
    targets[items] = True
    shares = graph @ own > 0  # users with an item of the user's
    likes = graph @ targets > 0  # users with a target
    between = shares & likes
    between[user] = False
    bridged = own & (transposed @ between > 0)  # item' that some user' shares
    users = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    columns = graph.indices
    first = (users == user) & bridged[columns]
    rest = between[users] & (bridged[columns] | targets[columns])
    retained: np.ndarray[tuple[int], np.dtype[np.bool_]] = first | rest
    return retained


def _within_hops(
    graph: scipy.sparse.csr_matrix, transposed: scipy.sparse.csr_matrix, user: int, items: IntArray, hops: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(nnz,) which edges have an end at most ``hops - 1`` steps away from the user or a target."""
    users = np.zeros(graph.shape[0], dtype=bool)
    reached_items = np.zeros(graph.shape[1], dtype=bool)
    users[user] = True
    reached_items[items] = True
    for _ in range(hops - 1):
        users, reached_items = (
            users | (graph @ reached_items > 0),
            reached_items | (transposed @ users > 0),
        )
    ends = np.repeat(users, np.diff(graph.indptr))
    retained: np.ndarray[tuple[int], np.dtype[np.bool_]] = ends | reached_items[graph.indices]
    return retained


def _row(graph: scipy.sparse.csr_matrix, row: int) -> IntArray:
    items: IntArray = graph.indices[graph.indptr[row] : graph.indptr[row + 1]].astype(np.int64)
    return items
