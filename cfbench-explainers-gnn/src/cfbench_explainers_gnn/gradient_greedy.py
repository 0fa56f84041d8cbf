"""Gradient greedy: again and again the edit that the exact gradient says lowers the margin most.

With m_e in [0, 1] how far edit e of the scope is made and margin(i) = s_i - (the K-th best other candidate's score),
each step makes the edit e (not yet made) with the most negative

    d/dm_e of sum over i in T of max(0, margin(i)),    at the graph as edited so far,

degrees included, queries the real model whether the target has left, and computes the gradient anew. An edit after which
the sum has not fallen is taken back and not tried again: each step is a descent. The search ends when all targets have
left, when the answer has as many edits as the protocol allows, when the gradient says that no edit helps, or when
``patience`` edits in a row were taken back. Ties go to the lower user, then the lower item. The detail ``taken_back``
counts the edits that did not lower the sum.

With several items, at list level, a budget that does not suffice for all of them would be spent on the hardest. So
descents towards all items, then towards fewer and fewer of the easiest, are made in place of this search
(``staged_descent.py``), or after it where ``width`` is above 1. Where items are left at the end, the edits are also tried in
the order of the first gradient, as ``one-gradient`` does: this reference displaces at least as many items. At list level,
and where nothing was displaced, the best answer is then improved by single changes of it on the real model
(``single_changes.py``). The answer is the set met on the way that displaces the most items, then the smallest; none: no
answer.

Not published elsewhere. A reference for every method that follows gradients: it follows the exact one at a real graph,
never at a mixture of graphs. It is not the smallest: a gradient is what an infinitely small part of an edit does, and a
whole one does less, most of all an addition (the first part of a new edge counts most: degrees are under a root). With
``width`` > 1 the steepest ``width`` edits of each step are tried on the real model, and the one is made that leaves
least; advisable where the protocol lets edges be added (see ``possible_edits.py`` for which).
Cost: in each step one evaluation with its gradient, one without, and ``width`` more where that is above 1; at list level
some ten to thirty such steps for each of up to five descents, and up to a few hundred evaluations of single changes. The
lists of a block are searched in lockstep (``lockstep.py``), a block of edited graphs in each evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import UNITS_AT_ONCE, Block, SearchConfig, in_blocks
from cfbench_explainers_gnn.descent import try_prefixes
from cfbench_explainers_gnn.possible_edits import AdditionsConfig
from cfbench_explainers_gnn.single_changes import improve_by_single_changes
from cfbench_explainers_gnn.staged_descent import SLACK, displace_in_stages
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.ranking import GRID
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/gradient-greedy",
    summary="Repeated edits with the steepest exact gradient, verified on the model",
    target=f"{__name__}:GradientGreedy",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove", "add"},
    },
    needs={"recommender": {"access": {"gradients"}}},
    version="3",
    role="reference",
)


@dataclass(frozen=True, kw_only=True)
class Config(AdditionsConfig, SearchConfig):
    width: Annotated[int, Range(minimum=1), Help("steepest edits that are tested in each step")] = 1
    patience: Annotated[
        int,
        Range(minimum=1),
        Help("edits in a row that did not lower the margins, after which the search ends"),
    ] = 10


class GradientGreedy:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        return in_blocks(targets, context, self.config, self._explain)

    def _explain(self, block: Block) -> Answer:
        best = BestAnswers(block)
        several = best.wanted > 1
        edit_by_edit = ~best.finished() & (~several | (self.config.width > 1))
        first_gradient, taken_back = self._search(best, np.flatnonzero(edit_by_edit))
        displace_in_stages(best, np.flatnonzero(several & ~best.finished()), self.config.patience)
        part = block.take(np.flatnonzero((best.displaced < best.wanted) & ~best.finished() & ~edit_by_edit))
        if len(part):
            _, slope = margins_and_slopes(part, np.zeros(len(part.possible.rows), dtype=bool))
            first_gradient[part.edges] = slope
            best.queries[part.units] += 1
        left = (best.displaced < best.wanted)[block.possible.rows] & (first_gradient < 0)
        try_prefixes(best, np.where(left, -first_gradient, -np.inf))
        improve_by_single_changes(best, np.flatnonzero((several | (best.displaced == 0)) & ~best.finished()))
        answer = best.answer()
        return Answer(answer.edits, {**answer.details, "taken_back": taken_back})

    def _search(self, best: BestAnswers, units: IntArray) -> tuple[FloatArray, FloatArray]:
        """Offers to ``best`` what the search edit by edit meets for some units.

        Returns:
            (E,) the first gradient, infinite for other units; (B,) how many edits were taken back.
        """
        block = best.block
        taken_back = np.zeros(len(block))
        part = block.take(units)
        state = _State.start(part)
        first_gradient = np.full(len(block.possible.rows), np.inf)
        first = True
        while len(part):
            best.queries[part.units] += 1
            not_lower = state.update(part)
            if first:
                first_gradient[part.edges] = state.slope
                first = False
            taken_back[part.units[not_lower]] += 1
            units, edges = _steepest(state.open_slope(), part.possible.rows, self.config.width)
            falling = state.in_vain[units] < self.config.patience
            units, edges = units[falling], edges[falling]
            if self.config.width > 1 and len(units):
                units, edges = self._best(part, state.made, units, edges, best)
            state.make(edges)
            displaced = best.test(part, state.made, 0)
            goes_on = np.zeros(len(part), dtype=bool)
            goes_on[units] = True
            goes_on &= displaced < best.wanted[part.units]
            goes_on &= np.bincount(part.possible.rows[state.made], minlength=len(part)) < part.targets.budget
            state = state.take(goes_on, part.possible.rows)
            part = part.take(np.flatnonzero(goes_on))
        return first_gradient, taken_back

    def _best(
        self, part: Block, made: BoolArray, units: IntArray, edges: IntArray, best: BestAnswers
    ) -> tuple[IntArray, IntArray]:
        """Of the edits ``edges`` of ``units`` the one for each unit that leaves least of the margins: really made."""
        import torch

        trials = part.possible.choose(units)
        sizes = trials.counts()
        first = np.searchsorted(part.possible.rows, units) - (np.cumsum(sizes) - sizes)
        edge = first[trials.rows] + np.arange(len(trials.rows))  # which of the part's edits it is
        edits = trials.where(made[edge] | (edge == edges[trials.rows]))
        left = np.empty(len(units))
        with torch.no_grad():
            for low in range(0, len(units), UNITS_AT_ONCE):
                rows = slice(low, min(low + UNITS_AT_ONCE, len(units)))
                some = Block(part.targets.take(units[rows]), edits.take(rows.start, rows.stop), part.context)
                left[rows] = _left(some, torch.ones(len(some.rows), dtype=torch.float64)).cpu().numpy()
        np.add.at(best.queries, part.units[units], 1)
        order = np.lexsort((np.rint(left * GRID), units))  # stable: of equal ones the steeper
        least = order[np.diff(units[order], prepend=-1) > 0]
        return units[least], edges[least]


@dataclass
class _State:
    """The searches of B units with E possible edits.

    Attributes:
        made: (E,) the edits so far. newest: (E,) the last of each unit. barred: (E,) those that were taken back.
        left: (B,) what is left of the margins without the newest edit. slope: (E,) its derivatives there.
        in_vain: (B,) how many edits in a row were taken back.
    """

    made: BoolArray
    newest: BoolArray
    barred: BoolArray
    left: FloatArray
    slope: FloatArray
    in_vain: IntArray

    @staticmethod
    def start(part: Block) -> _State:
        none = np.zeros(len(part.possible.rows), dtype=bool)
        left: FloatArray = np.full(len(part), np.inf)
        return _State(
            none, none.copy(), none.copy(), left, np.zeros(len(none)), np.zeros(len(part), np.int64)
        )

    def update(self, part: Block) -> BoolArray:
        """Evaluates the newest edits and takes back those that lower nothing; (B,) where it took one back."""
        rows = part.possible.rows
        left, slope = margins_and_slopes(part, self.made)
        not_lower: BoolArray = np.rint(left * GRID) >= np.rint(self.left * GRID)
        back = not_lower[rows] & self.newest
        self.made, self.barred = self.made & ~back, self.barred | back
        self.left = np.where(not_lower, self.left, left)
        self.slope = np.where(not_lower[rows], self.slope, slope)
        self.in_vain = np.where(not_lower, self.in_vain + 1, 0)
        return not_lower

    def open_slope(self) -> FloatArray:
        """(E,) the derivatives; infinite for edits that are made or barred."""
        slope: FloatArray = np.where(self.made | self.barred, np.inf, self.slope)
        return slope

    def make(self, edges: IntArray) -> None:
        self.newest = np.zeros(len(self.made), dtype=bool)
        self.newest[edges] = True
        self.made = self.made | self.newest

    def take(self, units: BoolArray, rows: IntArray) -> _State:
        """The state of the marked units; ``rows`` (E,) says to which unit an edit belongs."""
        if units.all():
            return self
        edges = units[rows]
        of_edges = (self.made[edges], self.newest[edges], self.barred[edges])
        return _State(*of_edges, self.left[units], self.slope[edges], self.in_vain[units])


def _left(block: Block, made: Any) -> Any:
    """(B,) tensor: the margins of the items that are still in the list, added up."""
    import torch

    return torch.relu(block.margins(made) + SLACK).sum(dim=1)


def margins_and_slopes(block: Block, made: BoolArray) -> tuple[FloatArray, FloatArray]:
    """(B,) margins of the items in the list, and (E,) their derivatives in units of each unit's steepest one."""
    import torch

    m = torch.as_tensor(made.astype(np.float64)).requires_grad_()
    left = _left(block, m)
    slope: FloatArray = block.gradient(left, m).cpu().numpy()
    return left.detach().cpu().numpy(), slope


def _steepest(slope: FloatArray, rows: IntArray, width: int) -> tuple[IntArray, IntArray]:
    """Units and places of each unit's ``width`` edits with the most negative slope, steepest first."""
    falling = np.flatnonzero(slope < 0)
    if width == 1:
        return _steepest_one(falling, slope[falling], rows[falling])
    falling = falling[np.lexsort((slope[falling], rows[falling]))]
    units = rows[falling]
    place = np.arange(len(units)) - np.searchsorted(units, units)
    return units[place < width], falling[place < width]


def _steepest_one(edges: IntArray, slope: FloatArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Units and each unit's edit with the smallest slope, the first of equals: without a sort, which takes far longer.

    Args:
        edges, slope, rows: (F,) places of edits, their slopes and units, ascending.
    """
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    if not len(starts):
        return rows, edges
    least = np.minimum.reduceat(slope, starts).repeat(np.diff(starts, append=len(rows)))
    ties = np.flatnonzero(slope == least)
    first = ties[np.diff(rows[ties], prepend=-1) > 0]
    return rows[first], edges[first]
