"""What several explainers here share: scores that all units of a user read, means, co-occurrences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cfbench_recsys.edits import REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import GRID
from cfbench_recsys.targets import Context, Targets

COLUMNS = 64
"""Items whose co-occurrences are computed at once: memory is COLUMNS x items."""


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
    training = context.training.tocsc()
    users_of = np.asarray(training.sum(axis=0), dtype=np.float64).ravel()
    items, places = np.unique(targets.items, return_inverse=True)
    places = places.reshape(targets.items.shape)
    values = np.zeros((*targets.history.shape, targets.items.shape[1]))
    for start in range(0, len(items), COLUMNS):
        block = items[start : start + COLUMNS]
        both = _co_occurrences(training, block)
        units, columns = np.nonzero((places >= start) & (places < start + COLUMNS))
        history = targets.history[units]
        values[units, :, columns] = similarity(
            both[places[units, columns][:, None] - start, history],
            users_of[targets.items[units, columns]][:, None],
            users_of[history],
        )
    return np.where(targets.padding, 0.0, mean_over_targets(values))


def _co_occurrences(training: sparse.csc_matrix, items: IntArray) -> FloatArray:
    """(len(items), all items) number of users who have both."""
    counts: FloatArray = (training[:, items].T @ training).toarray()
    return counts


def certificate(smallest: BoolArray, none_up_to: IntArray, targets: Targets) -> dict[str, FloatArray]:
    """What a search has proven about its answers, as details of them.

    ``none_up_to``: no set of at most so many removals does better; |I_u| where none at all does.
    ``proven``: 1 where the answer is the smallest there is (``smallest``), or nothing does better.

    smallest, none_up_to: (B,).
    """
    nothing = none_up_to >= (~targets.padding).sum(axis=1)
    return {"none_up_to": none_up_to.astype(np.float64), "proven": (smallest | nothing).astype(np.float64)}
