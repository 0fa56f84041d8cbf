"""How removals move one item against its rivals, for a logit that is linear in the profile.

With W[i, j] what interaction i adds to the logit of item j, removing the set S turns the lead of y over a rival
r from needed_r = s_y - s_r into needed_r - sum_{i in S} gain_ir, where gain_ir = W[i, y] - W[i, r]. Item y has
left the top K when at least K rivals are ahead of it:

    #{r : sum_{i in S} gain_ir >= needed_r} >= K        (the equal ones: those of lower index).

A rival alone needs m_r = the fewest of its largest gains that add up to needed_r; no set smaller than the K-th
smallest m_r will do, and where fewer than K rivals have an m_r, no set of any size.

Ranks are decided on a grid of 2**-30 and sums are rounded, so within ``slack`` of a tie these sums decide
nothing: bounds take such rivals for ahead, and an answer that depends on them is put to the recommender.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cfbench_recsys.answers import count_displaced
from cfbench_recsys.edits import REMOVE, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import GRID
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Context, Targets

QUICK = 8
"""How many of the largest gains are sorted first: fewer mostly suffice."""

NEVER = np.iinfo(np.int64).max // 2
"""The m_r of a rival that no set of removals brings ahead."""


@dataclass(frozen=True)
class Sums:
    """What removals do to the order of an item and its rivals.

    Attributes:
        gains: (R, n) how much nearer the removal of interaction i brings rival r.
        needed: (R,) how far each rival is behind.
        k: how many rivals have to be ahead.
        slack: by how much a sum may be wrong, ties on the grid included.
    """

    gains: FloatArray
    needed: FloatArray
    k: int
    slack: float

    @staticmethod
    def of(scores: FloatArray, effects: FloatArray, item: int, k: int) -> Sums:
        """scores: (R,) logits of the candidates; effects: (R, n) what each interaction adds to them.

        ``item`` is the row of the explained one. Rivals that no set brings ahead are left out.
        """
        gains = effects[item] - effects
        needed = scores[item] - scores
        slack = 2.0 / GRID + 1e-11 * float(np.abs(scores).max())
        possible = np.maximum(gains, 0.0).sum(axis=1) >= needed - slack
        possible[item] = False
        return Sums(gains[possible], needed[possible], k, slack)

    def among(self, rivals: IntArray) -> Sums:
        return Sums(self.gains[rivals], self.needed[rivals], self.k, self.slack)

    def gaps(self, places: IntArray) -> FloatArray:
        """(R,) how far each rival is behind without the interactions at these places."""
        left: FloatArray = self.needed - self.gains[:, places].sum(axis=1)
        return left

    def fewest(self, exact_up_to: int = QUICK) -> IntArray:
        """(R,) m_r: how many removals a rival would need if it alone mattered.

        Those beyond ``exact_up_to`` may be too low, by no less than ``exact_up_to`` + 1, if there are K
        that are not beyond.
        """
        interactions = self.gains.shape[1]
        first = min(exact_up_to, interactions)
        best = -np.sort(np.partition(-self.gains, first - 1, axis=1)[:, :first], axis=1)
        found = self._first_reached(best)
        if first == interactions:
            return found
        if np.count_nonzero(found <= first) < self.k:
            return self._first_reached(-np.sort(-self.gains, axis=1))
        return np.where(found == NEVER, first + 1, found)

    def _first_reached(self, largest: FloatArray) -> IntArray:
        reached = np.cumsum(largest, axis=1) >= (self.needed - self.slack)[:, None]
        counts = np.where(reached.any(axis=1), 1 + reached.argmax(axis=1), NEVER)
        return np.where(self.needed <= self.slack, 0, counts)

    def at_least(self, fewest: IntArray) -> int:
        """The K-th smallest m_r (at least 1): no smaller set succeeds; NEVER where none of any size does."""
        if len(fewest) < self.k:
            return NEVER
        return max(1, int(np.partition(fewest, self.k - 1)[self.k - 1]))


class Recommender:
    """Puts sets of removals to the recommender itself, for one item of one unit.

    Attributes:
        queries: the number of queries.
        sets: how many sets, including partial ones, were tested on its sums.
    """

    def __init__(self, targets: Targets, unit: int, context: Context) -> None:
        self._one = targets.take(slice(unit, unit + 1))
        self._context = context
        self.queries = 0
        self.sets = 0

    def displaces(self, places: IntArray) -> bool:
        """Whether the item has left when the interactions at these places of the history are removed."""
        self.queries += 1
        removed = np.zeros(self._one.history.shape, dtype=np.bool_)
        removed[0, places] = True
        edit = Edits.removals(self._one.users, self._one.history, removed)
        alone = np.zeros(1, dtype=np.int64)
        context = self._context
        return bool(count_displaced(context.model, self._one, edit, alone, context.interactions)[0])


def sums_of_units(targets: Targets, context: Context) -> Iterator[tuple[int, int, Sums]]:
    """(unit, place in its list, sums) for every item that is to leave, user by user.

    The weights are read off single removals, as differences of the recommender's own scores: one batch for all
    items, exact to rounding, and several times faster than to look up each weight of a factorised model.
    """
    for units, scores in _scores_of_users(targets, context):
        history = targets.history[units[0], ~targets.padding[units[0]]]
        candidates = np.ones(scores.shape[1], dtype=np.bool_)
        candidates[history] = False
        candidates[list(targets.fixed)] = False
        base = scores[0, candidates]
        effects = np.ascontiguousarray((base - scores[1:, candidates]).T)
        rows = np.cumsum(candidates) - 1
        for unit in units.tolist():
            for place, item in enumerate(targets.items[unit].tolist()):
                if item >= 0:
                    yield unit, place, Sums.of(base, effects, int(rows[item]), targets.k)


def _scores_of_users(targets: Targets, context: Context) -> Iterator[tuple[IntArray, FloatArray]]:
    """For each user the units, and (1 + n, items) logits: with the whole history, then without each of it."""
    users, first, owners = np.unique(targets.users, return_index=True, return_inverse=True)
    lengths = (~targets.padding[first]).sum(axis=1)
    ends = np.cumsum(lengths + 1)
    edits = _whole_and_singles(targets, first, lengths)
    waiting: list[FloatArray] = []
    user = 0
    for rows, scores in score_blocks(context.model, edits, context.interactions):
        waiting.append(scores)
        while user < len(users) and ends[user] <= rows.stop:
            held = np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
            own = lengths[user] + 1
            yield np.flatnonzero(owners == user), held[:own]
            waiting = [held[own:]]
            user += 1


def _whole_and_singles(targets: Targets, first: IntArray, lengths: IntArray) -> Edits:
    """For each user the untouched profile, then each interaction removed alone."""
    owner = np.repeat(np.arange(len(first)), lengths + 1)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths + 1) - lengths - 1, lengths + 1)
    rows = np.flatnonzero(place > 0)
    users = targets.users[first]
    items = targets.history[first[owner[rows]], place[rows] - 1]
    return Edits(users[owner], rows, users[owner[rows]], items, np.full(len(rows), REMOVE, dtype=np.int8))
