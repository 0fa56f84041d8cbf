"""Edited inputs of a recommender: which interactions are removed or added, for a batch of questions at once.

One type serves every purpose: an edited profile is an edit of the user's own edges, a counterfactual on the
graph touches anybody's edges, and one step of a deletion curve is an edit too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

REMOVE, ADD = -1, 1


@dataclass(frozen=True)
class Edits:
    """B edits of the interaction graph, each of which is scored for one user.

    Attributes:
        users: (B,) whose scores are wanted under edit b.
        rows: (E,) to which edit an edge belongs, non-decreasing, in [0, B).
        edge_users, edge_items: (E,) the edges.
        ops: (E,) int8, REMOVE (-1) or ADD (+1).
    """

    users: IntArray
    rows: IntArray
    edge_users: IntArray
    edge_items: IntArray
    ops: np.ndarray[tuple[int, ...], np.dtype[np.int8]]

    def __len__(self) -> int:
        return len(self.users)

    @staticmethod
    def nothing(users: IntArray) -> Edits:
        """The untouched graph, once for each of ``users``."""
        none = np.empty(0, dtype=np.int64)
        return Edits(np.asarray(users, dtype=np.int64), none, none, none, none.astype(np.int8))

    @staticmethod
    def removals(users: IntArray, history: IntArray, removed: BoolArray) -> Edits:
        """Each user b without those of ``history[b]`` (B, H; padded) that ``removed[b]`` (B, H) marks."""
        rows, columns = np.nonzero(removed)
        users = np.asarray(users, dtype=np.int64)
        ops = np.full(len(rows), REMOVE, dtype=np.int8)
        return Edits(users, rows.astype(np.int64), users[rows], history[rows, columns], ops)

    @staticmethod
    def concatenate(parts: Sequence[Edits]) -> Edits:
        """All edits of ``parts``, one after the other."""
        starts = np.cumsum([0] + [len(part) for part in parts[:-1]])
        return Edits(
            np.concatenate([part.users for part in parts]),
            np.concatenate([part.rows + start for part, start in zip(parts, starts, strict=True)]),
            np.concatenate([part.edge_users for part in parts]),
            np.concatenate([part.edge_items for part in parts]),
            np.concatenate([part.ops for part in parts]),
        )

    def take(self, start: int, stop: int) -> Edits:
        """Edits start..stop-1."""
        low, high = np.searchsorted(self.rows, [start, stop])
        edges = slice(low, high)
        return Edits(
            self.users[start:stop],
            self.rows[edges] - start,
            self.edge_users[edges],
            self.edge_items[edges],
            self.ops[edges],
        )

    def choose(self, which: IntArray) -> Edits:
        """Edits ``which[0]``, ``which[1]``, ...; each as often as it is named."""
        starts = np.searchsorted(self.rows, which)
        lengths = np.searchsorted(self.rows, which, side="right") - starts
        rows = np.repeat(np.arange(len(which)), lengths)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        edges = starts[rows] + within
        return Edits(self.users[which], rows, self.edge_users[edges], self.edge_items[edges], self.ops[edges])

    def where(self, wanted: BoolArray) -> Edits:
        """The same B edits, of their edges only those that ``wanted`` (E,) marks."""
        return Edits(
            self.users, self.rows[wanted], self.edge_users[wanted], self.edge_items[wanted], self.ops[wanted]
        )

    def edits(self) -> Edits:
        """Itself: what else can be scored (see ``removals.py``) turns into edits by this method."""
        return self

    def counts(self, op: int | None = None) -> IntArray:
        """(B,) number of edges in each edit; only removals or additions when ``op`` is given."""
        rows = self.rows if op is None else self.rows[self.ops == op]
        return np.bincount(rows, minlength=len(self)).astype(np.int64)

    def of_own_edges(self) -> BoolArray:
        """(B,) whether all edges of an edit are edges of its user."""
        foreign = self.edge_users != self.users[self.rows]
        own: BoolArray = np.bincount(self.rows[foreign], minlength=len(self)) == 0
        return own

    def profiles(self, interactions: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        """(B, items) the edited profiles of ``users``, binary, indices sorted.

        Edges of other users do not change the user's own profile; removing what is not there, or adding what is,
        changes nothing.
        """
        blocks = [
            self.take(start, start + _PROFILES_AT_ONCE)._profiles(interactions)
            for start in range(0, len(self), _PROFILES_AT_ONCE)
        ]
        if len(blocks) == 1:
            return blocks[0]
        return (
            scipy.sparse.vstack(blocks, format="csr")
            if blocks
            else scipy.sparse.csr_matrix((0, interactions.shape[1]))
        )

    def _profiles(self, interactions: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        present = np.zeros((len(self), interactions.shape[1]), dtype=bool)
        starts, lengths = interactions.indptr[self.users], np.diff(interactions.indptr)[self.users]
        rows = np.repeat(np.arange(len(self)), lengths)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        present[rows, interactions.indices[starts[rows] + within]] = True
        own = self.edge_users == self.users[self.rows]
        present[self.rows[own], self.edge_items[own]] = self.ops[own] == ADD
        return binary_rows(present, np.nonzero(present)[1], present.shape[1])


_PROFILES_AT_ONCE = 512  # bounds the memory of ``present``


def binary_rows(present: BoolArray, columns: np.ndarray[Any, Any], width: int) -> scipy.sparse.csr_matrix:
    """(B, ``width``) CSR matrix with as many ones in each row as ``present`` (B, N) has True in it.

    ``columns`` says in which columns, row after row, ascending within each row.
    """
    indptr = np.zeros(len(present) + 1, dtype=np.int32)
    np.cumsum(np.add.reduce(present, axis=1, dtype=np.int32), out=indptr[1:])
    shape = (len(present), width)
    return scipy.sparse.csr_matrix((np.ones(len(columns)), columns.astype(np.int32), indptr), shape=shape)
