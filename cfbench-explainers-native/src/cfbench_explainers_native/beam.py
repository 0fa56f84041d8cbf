"""Beam: forward search with the real model over several sets at each step, between greedy and exhaustive.

At step t the ``width`` best sets of t interactions are retained: every retained set is enlarged by every open
interaction, equal sets are one, and those with the lowest margin stay (``greedy`` says what the margin is; ties
go to the set whose parent was better, then to the lower item index). The retained sets are tested on the recommender.

- Item level: the search ends at the first step at which a retained set has put the item out of the top K; the
  answer is the first of them.
- List level: the shortest set that displaced the most, over all steps; it ends when all are displaced.

It goes on until then, or until the sets have as many interactions as the protocol allows edits. Steps are checked, and
counted in the detail ``ascents``, as in ``greedy``: what must fall is the lowest margin of the retained sets.

With ``width`` 1 the steps are those of ``greedy``; with a width that no step exceeds, and a pool of |I_u|, every
set of up to ``protocol.max_edits`` interactions is tested, and an answer is as small as that of ``exhaustive`` (where
several are, it may be another).

Not published elsewhere. As in ``greedy``, the steps after the first look only at the ``pool`` interactions
that lowered the margin most alone, of those that are not in the set.
Cost: |I_u| + 1 model queries for each user, then at most ``width`` x ``pool`` for each unit and step, and ``width`` x |I_u|
for a step that these do not help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.greedy import Descent, margins, margins_alone, open_of, order_alone
from cfbench_explainers_native.shared import Readers
from cfbench_recsys.answers import count_displaced
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/beam",
    summary="Forward search with the real model over several sets at each step",
    target=f"{__name__}:Beam",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="reference",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    width: Annotated[int, Range(minimum=1), Help("sets retained at each step")] = 8
    pool: Annotated[int, Range(minimum=1), Help("interactions considered in each step after the first")] = 32


@dataclass(frozen=True)
class Sets:
    """S sets of interactions, of several units; those of a unit one after the other, the best first.

    Attributes:
        units: (S,) non-decreasing.
        removed: (S, H) the members of each.
        margins: (S,).
    """

    units: IntArray
    removed: BoolArray
    margins: FloatArray

    def best(self, width: int) -> Sets:
        """The ``width`` with the lowest margin of each unit; of equal ones the first."""
        order = np.lexsort((self.margins, self.units))
        units = self.units[order]
        place = np.arange(len(units)) - np.searchsorted(units, units)
        return self.take(order[place < width])

    def lowest(self) -> tuple[IntArray, FloatArray]:
        """The units, and the margin of the first set of each: the lowest, if the sets are sorted."""
        units, first = np.unique(self.units, return_index=True)
        return units, self.margins[first]

    def take(self, which: IntArray | BoolArray) -> Sets:
        return Sets(self.units[which], self.removed[which], self.margins[which])


class Beam:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """B edits: for each unit the first of the smallest sets found that displace the most."""
        descent = Descent(targets, context)
        alone = margins_alone(targets, context)
        order = order_alone(alone)
        wanted = (targets.items >= 0).sum(axis=1)
        most = np.zeros(len(targets), dtype=np.int64)
        answer = np.zeros(targets.history.shape, dtype=np.bool_)
        retained = _single(alone, ~targets.padding).best(self.config.width)
        most_steps = min(targets.budget, targets.history.shape[1])
        for step in range(1, most_steps + 1):
            descent.record(*retained.lowest())
            self._test_on_recommender(retained, most, answer, targets, context)
            retained = retained.take(most[retained.units] < wanted[retained.units])
            if step == most_steps or not len(retained.units):
                break
            retained = self._next(retained, order, descent, targets, context)
        edits = Edits.removals(targets.users, targets.history, answer)
        return Answer(edits, {"ascents": descent.ascents})

    def _next(
        self, retained: Sets, order: IntArray, descent: Descent, targets: Targets, context: Context
    ) -> Sets:
        """The retained sets of the next step."""
        width, pool = self.config.width, self.config.pool
        found = _enlarged(retained, order, pool, targets, context).best(width)
        units, margin = found.lowest()
        stuck = units[descent.stuck(units, margin)]
        again = np.isin(retained.units, stuck)
        if pool >= order.shape[1] or not again.any():
            return found
        wider = _enlarged(retained.take(again), order, order.shape[1], targets, context)
        rest = found.take(~np.isin(found.units, stuck))
        return Sets(
            np.concatenate([rest.units, wider.units]),
            np.concatenate([rest.removed, wider.removed]),
            np.concatenate([rest.margins, wider.margins]),
        ).best(width)

    def _test_on_recommender(
        self, retained: Sets, most: IntArray, answer: BoolArray, targets: Targets, context: Context
    ) -> None:
        """Stores in ``most`` and ``answer`` the first retained set that displaces more than any before."""
        if targets.level == "item":  # a positive margin: the item has not left
            retained = retained.take(retained.margins <= 0)
        edits = Edits.removals(
            targets.users[retained.units], targets.history[retained.units], retained.removed
        )
        displaced = count_displaced(context.model, targets, edits, retained.units, context.interactions)
        order = np.lexsort((-displaced, retained.units))
        units, first = np.unique(retained.units[order], return_index=True)
        best = order[first]
        more = displaced[best] > most[units]
        most[units[more]] = displaced[best[more]]
        answer[units[more]] = retained.removed[best[more]]


def _single(alone: FloatArray, present: BoolArray) -> Sets:
    """Every set of one interaction."""
    units, places = np.nonzero(present)
    removed = np.zeros((len(units), alone.shape[1]), dtype=np.bool_)
    removed[np.arange(len(units)), places] = True
    return Sets(units, removed, alone[units, places])


def _enlarged(retained: Sets, order: IntArray, pool: int, targets: Targets, context: Context) -> Sets:
    """Every retained set with one of ``pool`` more interactions, each set once."""
    closed = retained.removed | targets.padding[retained.units]
    parents, places = np.nonzero(open_of(order[retained.units], closed, pool))
    removed = retained.removed[parents]
    removed[np.arange(len(parents)), places] = True
    units = retained.units[parents]
    fresh = _first_of_each(units, removed)
    units, removed = units[fresh], removed[fresh]
    edits = Edits.removals(targets.users[units], targets.history[units], removed)
    found = margins(edits, Readers(np.arange(len(units)), units), targets, context)
    return Sets(units, removed, found)


def _first_of_each(units: IntArray, removed: BoolArray) -> IntArray:
    """Where each different set of a unit stands first."""
    if not len(units):
        return units
    bits = np.packbits(removed, axis=1)
    owners = np.ascontiguousarray(units[:, None]).view(np.uint8)
    keys = np.ascontiguousarray(np.concatenate([owners, bits], axis=1))
    _, first = np.unique(keys.view([("", keys.dtype, keys.shape[1])]).ravel(), return_index=True)
    return np.sort(first)
