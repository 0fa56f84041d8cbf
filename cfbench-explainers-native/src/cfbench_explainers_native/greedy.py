"""Greedy: forward search with the real model, removing the interaction that lowers the margin most.

The margin of item y under an edit is score_y minus the K-th best other candidate; at list level it is the
mean of the margins of i_1..i_K under the shared edit. It is compared in whole steps of the grid of 2**-30 on
which ranks are decided; ties go to the lower item index.

- Explicit: the removals up to the first success (the item has left the top K; at list level: all have, or
  else the shortest prefix with which the most have). The search goes on until then, or until the answer has as many edits
  as the protocol allows. Nothing within that number: no answer.
- Implicit: the order of removal, continued up to ``depth`` steps whatever is reached on the way, then the
  remaining interactions by their margin when removed alone. The importance is the number of interactions that
  come later: only its order means something.

Not published elsewhere. A reference: it considers joint effects and the rivals of y, which leave-one-out does not, but
it may name more interactions than the smallest counterfactual has.
To bound the cost on long histories, the steps after the first consider only the ``width`` interactions
that lowered the margin most alone, of those that are left: with at least ``width`` = |I_u| it is the full search.
Each step is checked: where none of the interactions considered lowers the margin, all that are left are tried. Where none
of these does either, the step that raises it least is made, since several removals may work where each alone does not; the
detail ``ascents`` counts such steps, and after the first of them a unit considers ``width`` interactions only.
Cost: |I_u| + 1 model queries for each user (shared by all its units), then at most ``width`` for each unit
and step, and |I_u| more for each step that was checked in vain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import Readers, SingleRemovals
from cfbench_recsys.answers import count_displaced
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.target_functions import margins as item_margins
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/greedy",
    summary="Forward search with the real model, one interaction at a time",
    target=f"{__name__}:Greedy",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="reference",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    depth: Annotated[
        int,
        Range(minimum=1),
        Help("steps of the search for importances; the rest is ordered by removal alone"),
    ] = 10
    width: Annotated[int, Range(minimum=1), Help("interactions considered in each step after the first")] = 32


@dataclass
class Search:
    """The state of B searches.

    Attributes:
        alone: (B, H) margin without each interaction alone, +inf at padding.
        removed: (B, H) what was removed so far.
        steps: (B, H) the step at which each interaction went, counted from 0; a large number if it did not.
        left: one (B,) for each step, the number of target items outside the top K after it (-1: search over).
        descent: whether the margins still fall.
    """

    alone: FloatArray
    removed: BoolArray
    steps: IntArray
    left: list[IntArray]
    descent: Descent


NEVER = np.iinfo(np.int64).max


class Descent:
    """Whether the margins of B forward searches still fall.

    Attributes:
        lowest: (B,) the margin so far.
        ascents: (B,) steps that did not lower it, with any candidate.
    """

    def __init__(self, targets: Targets, context: Context) -> None:
        every = np.arange(len(targets))
        self.lowest = margins(Edits.nothing(targets.users), Readers(every, every), targets, context)
        self.ascents: FloatArray = np.zeros(len(targets))

    def stuck(self, units: IntArray, found: FloatArray) -> BoolArray:
        """(m,) which of ``units`` (m,) should try all candidates, after those considered gave ``found`` (m,) at best."""
        stuck: BoolArray = (found >= self.lowest[units]) & (self.ascents[units] == 0)
        return stuck

    def record(self, units: IntArray, found: FloatArray) -> None:
        """The margins ``found`` (m,) after a step of ``units`` (m,)."""
        self.ascents[units] += found >= self.lowest[units]
        self.lowest[units] = found


class Greedy:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) number of interactions that come later in the order of removal."""
        search = self._search(targets, context, self.config.depth, stop_at_success=False)
        order = np.lexsort((search.alone, search.steps, targets.padding), axis=-1)
        places = np.argsort(order, axis=-1, kind="stable")
        lengths = (~targets.padding).sum(axis=1, keepdims=True)
        return np.where(targets.padding, 0.0, (lengths - 1 - places).astype(np.float64))

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """B edits: the shortest prefix of the order of removal that displaces the most target items."""
        search = self._search(targets, context, targets.budget, stop_at_success=True)
        left = np.stack(search.left, axis=1)  # (B, steps)
        shortest = np.where(left.max(axis=1) > 0, left.argmax(axis=1), -1)
        edits = Edits.removals(targets.users, targets.history, search.steps <= shortest[:, None])
        return Answer(edits, {"ascents": search.descent.ascents})

    def _search(self, targets: Targets, context: Context, most: int, stop_at_success: bool) -> Search:
        alone, shape = margins_alone(targets, context), targets.history.shape
        descent = Descent(targets, context)
        search = Search(alone, np.zeros(shape, dtype=bool), np.full(shape, NEVER), [], descent)
        order = order_alone(alone)
        active = np.arange(len(targets))
        for step in range(min(most, shape[1])):
            active = active[(~search.removed & ~targets.padding)[active].any(axis=1)]
            if not len(active):
                break
            closed = search.removed | targets.padding
            found = alone
            if step > 0:
                considered = open_of(order, closed, self.config.width)
                found = _next_margins(search, considered, active, targets, context)
                stuck = active[descent.stuck(active, found[active].min(axis=1))]
                others = _next_margins(search, ~closed & ~considered, stuck, targets, context)
                found = np.minimum(found, others)
            best = np.lexsort((found[active], closed[active]), axis=-1)[:, 0]
            descent.record(active, found[active, best])
            search.removed[active, best] = True
            search.steps[active, best] = step
            left = np.full(len(targets), -1, dtype=np.int64)
            edits = Edits.removals(targets.users[active], targets.history[active], search.removed[active])
            left[active] = count_displaced(context.model, targets, edits, active, context.interactions)
            search.left.append(left)
            if stop_at_success:
                active = active[left[active] < targets.items.shape[1]]
        return search


def order_alone(alone: FloatArray) -> IntArray:
    """(B, H) the interactions by their margin when removed alone (B, H), the lowest first."""
    return np.argsort(alone, axis=1, kind="stable")


def open_of(order: IntArray, closed: BoolArray, width: int) -> BoolArray:
    """(B, H) the first ``width`` interactions in ``order`` (B, H) of those that are not ``closed`` (B, H)."""
    available = ~np.take_along_axis(closed, order, axis=1)
    first = available & (np.cumsum(available, axis=1) <= width)
    marks = np.zeros(closed.shape, dtype=np.bool_)
    np.put_along_axis(marks, order, first, axis=1)
    return marks


def _next_margins(
    search: Search, considered: BoolArray, active: IntArray, targets: Targets, context: Context
) -> FloatArray:
    """(B, H) margins with one more interaction removed; +inf where that is not considered."""
    rows, positions = np.nonzero(considered[active])
    units = active[rows]
    removed = search.removed[units]
    removed[np.arange(len(units)), positions] = True
    edits = Edits.removals(targets.users[units], targets.history[units], removed)
    found = np.full(targets.history.shape, np.inf)
    found[units, positions] = margins(edits, Readers(np.arange(len(units)), units), targets, context)
    return found


def margins_alone(targets: Targets, context: Context) -> FloatArray:
    """(B, H) margin without each interaction alone, +inf at padding."""
    singles = SingleRemovals.of(targets)
    alone = np.full(targets.history.shape, np.inf)
    alone[singles.readers.units, singles.positions[singles.readers.edits]] = margins(
        singles.edits, singles.readers, targets, context
    )
    return alone


def margins(edits: Edits, readers: Readers, targets: Targets, context: Context) -> FloatArray:
    """(P,) margin of each pair (edit, unit): score less the K-th best other candidate, mean over the T items.

    In grid steps, which are whole numbers, so that sums are exact. Where there are not K other candidates the
    item cannot leave; the margin is then its score.
    """
    found = np.empty(len(readers.edits))
    for rows, scores in score_blocks(context.model, edits, context.interactions):
        pairs = readers.within(rows)
        at, units = readers.edits[pairs] - rows.start, readers.units[pairs]
        found[pairs] = item_margins(scores, at, units, targets).mean(axis=1)
    return found
