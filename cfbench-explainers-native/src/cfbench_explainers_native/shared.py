"""What several explainers here share: scores that all units of a user read, means, co-occurrences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.edits import REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import GRID
from cfbench_recsys.targets import Context, Targets

ALL_ITEMS = 2**28
"""Bytes up to which the users of all items are stored as bits; beyond, those of the items of a batch."""

PAIRS = 1024
"""Pairs of items whose users are compared at once."""


def mean_over_targets(values: FloatArray) -> FloatArray:
    """(..., T) -> (...,). Adds in one order; how NumPy adds depends on the shape of the whole array."""
    total = values[..., 0].copy()
    for target in range(1, values.shape[-1]):
        total += values[..., target]
    return total / values.shape[-1]


def rounded(values: FloatArray) -> FloatArray:
    """Values on the grid of 2**-30 on which logits are compared: what is zero on paper is zero, not noise."""
    return np.rint(values * GRID) / GRID


@dataclass(frozen=True)
class Readers:
    """Which units read the scores of which edits.

    Attributes:
        edits: (P,) non-decreasing.
        units: (P,) the unit of each pair.
    """

    edits: IntArray
    units: IntArray

    @staticmethod
    def of_users(owners: IntArray, unit_owners: IntArray) -> Readers:
        """Every unit of a user reads all edits made for that user.

        owners: (E,) number of the user of each edit; unit_owners: (B,) number of the user of each unit.
        """
        by_owner = np.argsort(unit_owners, kind="stable")
        counts = np.bincount(unit_owners)
        starts = np.cumsum(counts) - counts
        repeats = counts[owners]
        edits = np.repeat(np.arange(len(owners)), repeats)
        within = np.arange(len(edits)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        return Readers(edits, by_owner[np.repeat(starts[owners], repeats) + within])

    def within(self, rows: slice) -> slice:
        """The pairs of edits rows.start..rows.stop-1."""
        low, high = np.searchsorted(self.edits, [rows.start, rows.stop])
        return slice(int(low), int(high))


@dataclass(frozen=True)
class SingleRemovals:
    """Each interaction of each user removed alone: computed once for all units of the user.

    Attributes:
        edits: E edits of one edge each.
        readers: the (edit, unit) pairs.
        positions: (E,) column of the removed interaction in ``targets.history``.
    """

    edits: Edits
    readers: Readers
    positions: IntArray

    @staticmethod
    def of(targets: Targets) -> SingleRemovals:
        users, first, owners = np.unique(targets.users, return_index=True, return_inverse=True)
        which, positions = np.nonzero(~targets.padding[first])
        edits = Edits(
            users[which],
            np.arange(len(which)),
            users[which],
            targets.history[first[which], positions],
            np.full(len(which), REMOVE, dtype=np.int8),
        )
        return SingleRemovals(edits, Readers.of_users(which, owners), positions)


def similarities(
    targets: Targets, context: Context, similarity: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
) -> FloatArray:
    """(B, H) similarity of each item of the history to the explained items (their mean), from training users.

    ``similarity(both, first, second)`` gets the number of users who have both items, the first, and the
    second. The counts are whole numbers, hence exact however they are added up.
    """
    users_of_items = _users_of_items(targets, context)
    units, places = np.nonzero(~targets.padding)
    history = targets.history[units, places]
    values = np.zeros((*targets.history.shape, targets.items.shape[1]))
    for column in range(targets.items.shape[1]):
        explained = targets.items[units, column]
        values[units, places, column] = similarity(
            users_of_items.in_common(explained, history),
            users_of_items.counts[explained],
            users_of_items.counts[history],
        )
    return mean_over_targets(values)


@dataclass(frozen=True)
class UsersOfItems:
    """The users of each item as bits, so that those of two items are compared 64 at a time.

    Attributes:
        bits: (m, users / 64) of those items that have a row.
        rows: (items,) the row of each item; 0 for those without one.
        counts: (items,) number of users.
    """

    bits: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
    rows: IntArray
    counts: FloatArray

    @staticmethod
    def of(training: scipy.sparse.csr_matrix, items: IntArray) -> UsersOfItems:
        """training: (users, all items); ``items``: those that get a row, ascending."""
        columns = training.tocsc()
        users = np.flatnonzero(np.diff(training.indptr))
        number = np.zeros(training.shape[0], dtype=np.int64)
        number[users] = np.arange(len(users))
        rows = np.zeros(training.shape[1], dtype=np.int64)
        rows[items] = np.arange(len(items))
        bits = np.zeros((len(items), -(-max(1, len(users)) // 64)), dtype=np.uint64)
        for start in range(0, len(items), PAIRS):
            block = columns[:, items[start : start + PAIRS]]
            has = np.zeros((block.shape[1], 64 * bits.shape[1]), dtype=np.bool_)
            has[np.repeat(np.arange(block.shape[1]), np.diff(block.indptr)), number[block.indices]] = True
            bits[start : start + PAIRS] = np.packbits(has, axis=1).view(np.uint64)
        return UsersOfItems(bits, rows, np.diff(columns.indptr).astype(np.float64))

    def in_common(self, first: IntArray, second: IntArray) -> FloatArray:
        """(P,) number of users who have both items of each pair."""
        counts = np.empty(len(first))
        for start in range(0, len(first), PAIRS):
            pairs = slice(start, start + PAIRS)
            both = self.bits[self.rows[first[pairs]]] & self.bits[self.rows[second[pairs]]]
            counts[pairs] = np.bitwise_count(both).sum(axis=1, dtype=np.uint32)
        return counts


def _users_of_items(targets: Targets, context: Context) -> UsersOfItems:
    users, items = context.training.shape
    if users * items / 8 <= ALL_ITEMS:
        return context.cached("users of items", lambda: UsersOfItems.of(context.training, np.arange(items)))
    return UsersOfItems.of(context.training, np.union1d(targets.history, targets.items))


def certificate(smallest: BoolArray, none_up_to: IntArray, targets: Targets) -> dict[str, FloatArray]:
    """What a search has proven about its answers, as details of them.

    ``none_up_to``: no set of at most so many removals displaces more items than the answer, nor as many with fewer
    removals; |I_u| where no set displaces any. ``proven``: 1 where the answer is the smallest there is (``smallest``), or
    nothing does better.

    smallest, none_up_to: (B,).
    """
    nothing = none_up_to >= (~targets.padding).sum(axis=1)
    return {"none_up_to": none_up_to.astype(np.float64), "proven": (smallest | nothing).astype(np.float64)}
