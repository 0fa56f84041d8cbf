"""Greedy edits: forward search with the real model over removals and additions.

As ``greedy`` (which see for the margin), with interactions that the user does not have among the candidates:
at each step the removal or the addition that lowers the margin most is made, until the item has left the top
K (item level), or the shortest run of steps with which the most items of the list have (list level). Steps are checked, and
counted in the detail ``ascents``, as in ``greedy``.

Which items may be added is bounded and stated: the ``additions`` items that the recommender ranks next after
the first K, the explained items left out. They are plausible ("had you also bought ..."), and near rivals of
the explained item. Candidates for recommendation stay those that are not in the *original* history, so an
added item stays in the ranking, and may be what takes the explained item's place.

Not published elsewhere. A reference for methods that add, to be compared with these alone: fewer edits suffice
where some are additions. Cost: |I_u| + ``additions`` + 1 model queries for each unit in the first step, then
at most ``width`` in each, and all that are left in a step that ``width`` do not help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.greedy import Descent, margins, open_of, order_alone
from cfbench_explainers_native.shared import Readers
from cfbench_recsys.answers import count_displaced
from cfbench_recsys.edits import ADD, REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/greedy-edits",
    summary="Forward search with the real model over removals and additions",
    target=f"{__name__}:GreedyEdits",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"add"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="reference",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    additions: Annotated[int, Range(minimum=1), Help("items that may be added: the next in the ranking")] = 32
    width: Annotated[int, Range(minimum=1), Help("edits considered in each step after the first")] = 32


@dataclass(frozen=True)
class Candidates:
    """What each of B units may edit: removals of its history, then additions.

    Attributes:
        items: (B, C).
        allowed: (B, C) False at padding.
        ops: (C,) REMOVE or ADD.
    """

    items: IntArray
    allowed: BoolArray
    ops: np.ndarray[tuple[int, ...], np.dtype[np.int8]]

    def edits(self, users: IntArray, units: IntArray, chosen: BoolArray) -> Edits:
        """An edit for each of ``units`` (P,), of the candidates that ``chosen`` (P, C) marks."""
        rows, places = np.nonzero(chosen)
        owners = users[units]
        return Edits(
            owners, rows.astype(np.int64), owners[rows], self.items[units[rows], places], self.ops[places]
        )


class GreedyEdits:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """B edits: the shortest run of steps that displaces the most target items; none: no answer."""
        candidates = self._candidates(targets, context)
        wanted = np.count_nonzero(targets.items >= 0, axis=1)
        chosen = np.zeros_like(candidates.allowed)
        best, most = chosen.copy(), np.zeros(len(targets), dtype=np.int64)
        active = np.arange(len(targets))
        descent = Descent(targets, context)
        order: IntArray = np.empty(0, dtype=np.int64)
        for step in range(min(targets.budget, chosen.shape[1])):
            active = active[(most < wanted)[active] & (candidates.allowed & ~chosen)[active].any(axis=1)]
            if not len(active):
                break
            considered = candidates.allowed
            if step:
                considered = open_of(order, chosen | ~candidates.allowed, self.config.width)
            found = _margins(candidates, chosen, considered, active, targets, context)
            if step == 0:
                alone = np.full(chosen.shape, np.inf)
                alone[active] = found
                order = order_alone(alone)
            stuck = np.flatnonzero(descent.stuck(active, found.min(axis=1))) if step else active[:0]
            if len(stuck):
                others = candidates.allowed & ~considered
                tried = _margins(candidates, chosen, others, active[stuck], targets, context)
                found[stuck] = np.minimum(found[stuck], tried)
            best_edit = found.argmin(axis=1)
            descent.record(active, found[np.arange(len(active)), best_edit])
            chosen[active, best_edit] = True
            edits = candidates.edits(targets.users, active, chosen[active])
            displaced = count_displaced(context.model, targets, edits, active, context.interactions)
            better = active[displaced > most[active]]
            best[better] = chosen[better]
            most[active] = np.maximum(most[active], displaced)
        edits = candidates.edits(targets.users, np.arange(len(targets)), best)
        return Answer(edits, {"ascents": descent.ascents})

    def _candidates(self, targets: Targets, context: Context) -> Candidates:
        history, present = targets.history, ~targets.padding
        removals = np.full(history.shape[1], REMOVE, dtype=np.int8)
        if not targets.additions:
            return Candidates(history, present, removals)
        length = targets.k + self.config.additions
        ranked = np.empty((len(targets), length), dtype=np.int64)
        untouched = Edits.nothing(targets.users)
        seen, absent = targets.seen
        for rows, scores in score_blocks(context.model, untouched, context.interactions):
            ranked[rows] = top_k(scores, seen[rows], absent[rows], length)
        next_items = ranked[:, targets.k :]
        explained = (next_items[:, :, None] == targets.items[:, None, :]).any(axis=2)
        allowed = (next_items >= 0) & ~explained
        return Candidates(
            np.concatenate([history, np.maximum(next_items, 0)], axis=1),
            np.concatenate([present, allowed], axis=1),
            np.concatenate([removals, np.full(next_items.shape[1], ADD, dtype=np.int8)]),
        )


def _margins(
    candidates: Candidates,
    chosen: BoolArray,
    considered: BoolArray,
    active: IntArray,
    targets: Targets,
    context: Context,
) -> FloatArray:
    """(len(active), C) margin with one more candidate edited; +inf where that is not considered."""
    rows, places = np.nonzero((considered & ~chosen)[active])
    units = active[rows]
    tried = chosen[units]
    tried[np.arange(len(units)), places] = True
    edits = candidates.edits(targets.users, units, tried)
    found = np.full((len(active), chosen.shape[1]), np.inf)
    found[rows, places] = margins(edits, Readers(np.arange(len(units)), units), targets, context)
    return found
