"""Removals along an order of importance: which interactions go first, and how the recommender responds.

Histories are stored end to end (N = all interactions of all units), not padded: one user with a thousand
interactions must not make the arrays of all users a thousand wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import REMOVE, BoolArray, Edits, FloatArray, IntArray, binary_rows
from cfbench_recsys.scoring import target_responses
from cfbench_recsys.targets import Targets

Int32Array = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
First = Literal["most important", "least important"]


@dataclass(frozen=True)
class ImportanceOrder:
    """The interactions of B units, and the place of each in its unit's order of importance.

    Attributes:
        users: (B,).
        starts, lengths: (B,) where the unit's interactions stand in the arrays below, and how many they are.
        items: (N,) in ascending item index within each unit.
        places: (N,) 0 for the most important interaction of its unit, ``length - 1`` for the least.
        complete: whether these are all interactions of the users; False where some are left out (``Targets.fixed``).
    """

    users: IntArray
    starts: IntArray
    lengths: IntArray
    items: Int32Array
    places: Int32Array
    complete: bool = True

    @staticmethod
    def of(targets: Targets, importances: FloatArray) -> ImportanceOrder:
        """Descending importance; equally important interactions in ascending item index.

        "Least important first" is this order read from its other end, exactly, ties included. So the n - c
        least important interactions are those that are not the c most important, and NEG-P of an order is
        POS-P of the order reversed.
        """
        if importances.shape != targets.padding.shape:
            raise ValueError(
                f"importances are {importances.shape}, but the histories {targets.padding.shape}"
            )
        present = ~targets.padding
        if not np.isfinite(importances[present]).all():
            raise ValueError("an importance is not a finite number")
        lengths = np.count_nonzero(present, axis=1)
        # Stable, and items ascend: of equally important ones the lower item comes first.
        order = np.argsort(np.where(present, -importances, np.inf), axis=1, kind="stable")
        places = np.empty(order.shape, dtype=np.int32)
        np.put_along_axis(places, order, np.arange(order.shape[1], dtype=np.int32)[None], axis=1)
        return ImportanceOrder(
            users=targets.users,
            starts=np.cumsum(lengths) - lengths,
            lengths=lengths,
            items=targets.history[present].astype(np.int32),
            places=places[present],
            complete=not targets.fixed,
        )

    def __len__(self) -> int:
        return len(self.users)


@dataclass(frozen=True)
class OrderedRemovals:
    """P edits, made when scored: edit p removes places low[p]..high[p]-1 of the order of unit units[p]."""

    order: ImportanceOrder
    units: IntArray
    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        return len(self.units)

    def choose(self, which: IntArray) -> OrderedRemovals:
        """Edits ``which[0]``, ``which[1]``, ...; each as often as it is named."""
        return OrderedRemovals(self.order, self.units[which], self.low[which], self.high[which])

    def profiles(self, interactions: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        """(P, items) what remains of the users' profiles, binary, indices sorted."""
        if not self.order.complete:
            return self.edits().profiles(interactions)
        index, present, removed = self._interactions()
        retained = present > removed
        return binary_rows(retained, self.order.items[index[retained]], interactions.shape[1])

    def edits(self) -> Edits:
        """The same as a list of edges."""
        index, present, removed = self._interactions()
        removed &= present
        users = self.order.users[self.units]
        rows = np.nonzero(removed)[0]
        ops = np.full(len(rows), REMOVE, dtype=np.int8)
        return Edits(users, rows, users[rows], self.order.items[index[removed]].astype(np.int64), ops)

    def _interactions(self) -> tuple[IntArray, BoolArray, BoolArray]:
        """Three (P, W): where each interaction of an edit's unit stands in the order, whether it is there at
        all (W is the most that any unit has), and whether it is removed."""
        lengths = self.order.lengths[self.units]
        position = np.arange(lengths.max(initial=0))
        index = self.order.starts[self.units, None] + position
        places = self.order.places.take(index, mode="clip")
        removed = (places >= self.low[:, None]) & (places < self.high[:, None])
        return index, position < lengths[:, None], removed


class RemovalResponses:
    """Ranks and linked scores (see ``links.py``) of the targets after removals along the order; each is computed once.

    A unit with n interactions knows 2n removals: of its 0..n most important ones, and of its 1..n-1 least
    important ones.
    """

    def __init__(
        self,
        model: ScoringModel,
        targets: Targets,
        order: ImportanceOrder,
        interactions: scipy.sparse.csr_matrix,
    ) -> None:
        self.model = model
        self.targets = targets
        self.order = order
        self.interactions = interactions
        slots = 2 * order.lengths + 1
        self._starts = np.cumsum(slots) - slots
        self._known = np.zeros(int(slots.sum()), dtype=bool)
        self._ranks = np.zeros((len(self._known), targets.items.shape[1]), dtype=np.int64)
        self._linked = np.zeros(self._ranks.shape)

    def after(self, counts: IntArray, first: First = "most important") -> tuple[IntArray, FloatArray]:
        """(B, S, T) ranks and linked scores after the removal of counts[b, s] interactions of unit b."""
        return self._after(np.arange(len(self.order))[:, None], counts, first)

    def one_at_a_time(self, first: First = "most important") -> tuple[IntArray, FloatArray]:
        """(N, T) ranks and linked scores after each removal of a single interaction, until none is left.

        Those of unit b stand end to end like its interactions, from ``order.starts[b]`` on.
        """
        units = np.repeat(np.arange(len(self.order)), self.order.lengths)
        counts = np.arange(len(units)) - self.order.starts[units] + 1
        return self._after(units, counts, first)

    def _after(self, units: IntArray, counts: IntArray, first: First) -> tuple[IntArray, FloatArray]:
        lengths = self.order.lengths[units]
        slots = self._starts[units] + counts
        if first == "least important":
            slots = slots + lengths * ((counts > 0) & (counts < lengths))
        self._score(np.unique(slots[~self._known[slots]]))
        return self._ranks[slots], self._linked[slots]

    def _score(self, slots: IntArray) -> None:
        units = np.searchsorted(self._starts, slots, side="right") - 1
        lengths = self.order.lengths[units]
        counts = slots - self._starts[units]
        least = counts > lengths
        low = np.where(least, 2 * lengths - counts, 0)
        high = np.where(least, lengths, counts)
        removals = OrderedRemovals(self.order, units, low, high)
        self._ranks[slots], self._linked[slots] = target_responses(
            self.model, removals, self.targets, units, self.interactions
        )
        self._known[slots] = True


def step_counts(lengths: IntArray, steps: int) -> IntArray:
    """(B, steps) how many interactions are gone after each chunk, by the rule of ``numpy.array_split``."""
    step = np.arange(1, steps + 1)
    counts: IntArray = step * (lengths[:, None] // steps) + np.minimum(step, lengths[:, None] % steps)
    return counts
