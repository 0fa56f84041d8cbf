"""CF-GNNExplainer: learn which few edges to remove so that the prediction flips.

Lucic et al., "CF-GNNExplainer: Counterfactual Explanations for Graph Neural Networks", AISTATS 2022; adapted to
recommendation as in paper 000, sec. 3.4.2: the prediction flips when the target leaves the top K (item level), or
when the items of the list do (list level).

One parameter p_e for each edge e in scope; edge e has weight w_e = sigmoid(p_e) while learning, and is removed in the
answer where w_e < 0.5. With margin(i) = s_i - (the K-th best other candidate's score), the loss of a unit with targets T
and E edges in scope is

    L = 1/|T| sum over i in T of max(0, margin(i) + slack) / unit_i  +  beta / E * sum over e of (1 - w_e)

where unit_i = max(|margin(i) at the start|, slack), minimised by gradient descent. The answer is the smallest set of
removals met on the way that flips the prediction *with hard masks on the real model*; at list level the one that
displaces most items, then the smallest. "No answer" if none does.

Departures from the paper, and why:
- The prediction loss is a hinge on the margin in place of the negative log-likelihood of a class: ranks have no classes,
  and it vanishes once the target is out, as the paper's indicator function does.
- Each unit's gradient is divided by its largest component before a step: scores of recommenders differ in scale by
  orders of magnitude. (Adam, which divides each component, would move all edges at one speed, and remove them together.)
  It is then rounded to a grid of 2**-24, so that rounding noise, which depends on the batch, cannot grow over the steps.
- Removals are tested on the real model whenever the hard mask changed.
- The degree normalisation follows the mask, and so do its gradients (the papers' public code detaches them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_recsys.edits import REMOVE, BoolArray, Edits, IntArray
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.scopes import EdgesInScope, edges_in_scope
from cfbench_recsys.targets import Context, Targets

if TYPE_CHECKING:
    import torch


BLOCK = 64
"""Units that are optimised together."""

GRID = 2.0**24


@dataclass(frozen=True, kw_only=True)
class Config:
    steps: Annotated[int, Range(minimum=1), Help("of the descent")] = 30
    learning_rate: Annotated[float, Range(above=0), Help("step of the steepest edge's parameter")] = 2.0
    beta: Annotated[
        float, Range(minimum=0), Help("weight of the number of removed edges against the margin")
    ] = 0.1
    slack: Annotated[
        float, Range(minimum=0), Help("how far below the K-th place the target is pushed, in logits")
    ] = 0.1
    start: Annotated[
        float, Help("value of every parameter at the start; sigmoid(1) = 0.73 as in the paper")
    ] = 1.0
    patience: Annotated[
        int, Range(minimum=1), Help("steps without a smaller answer after which a unit rests")
    ] = 10
    hops: Annotated[int, Range(minimum=1), Help("levels of the scope k-hop")] = 2
    alone_above: Annotated[
        int,
        Range(minimum=1),
        Help("units with more edges in scope are optimised one at a time, to bound memory"),
    ] = 20_000


class CFGNNExplainer:
    """Explicit answers, removals only, for recommenders with gradients over edges."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        """One edit for each target; without edges where none was found."""
        answers = []
        for start in range(0, len(targets), BLOCK):
            block = targets.take(slice(start, min(start + BLOCK, len(targets))))
            answers += self._explain_block(block, context)
        return Edits.concatenate(answers)

    def _explain_block(self, targets: Targets, context: Context) -> list[Edits]:
        scope = edges_in_scope(context.interactions, targets, self.config.hops)
        sizes = np.bincount(scope.rows, minlength=len(targets))
        together = np.flatnonzero(sizes <= self.config.alone_above)
        groups = [together] if len(together) else []
        groups += [np.array([row]) for row in np.flatnonzero(sizes > self.config.alone_above)]
        found: dict[int, Edits] = {}
        for rows in groups:
            edits = _Descent(self.config, targets.take(rows), _select(scope, rows), context).run()
            found |= {int(row): edits.take(place, place + 1) for place, row in enumerate(rows)}
        return [found[row] for row in range(len(targets))]


def _select(scope: EdgesInScope, rows: IntArray) -> EdgesInScope:
    """The scopes of some units, renumbered in the order given."""
    starts = np.searchsorted(scope.rows, rows)
    counts = np.searchsorted(scope.rows, rows, side="right") - starts
    edges = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(
        counts.sum()
    )
    return EdgesInScope(np.repeat(np.arange(len(rows)), counts), scope.users[edges], scope.items[edges])


class _Descent:
    """Gradient descent for one block of units."""

    def __init__(self, config: Config, targets: Targets, scope: EdgesInScope, context: Context) -> None:
        import torch

        self.config = config
        self.targets = targets
        self.scope = scope
        self.model = context.model
        self.rows = torch.from_numpy(scope.rows)
        self.users = torch.from_numpy(targets.users)
        self.edge_users = torch.from_numpy(scope.users)
        self.edge_items = torch.from_numpy(scope.items)
        self.items = torch.from_numpy(targets.items)
        self.seen = _seen(targets, context.interactions.shape[1])
        self.sizes = torch.bincount(self.rows, minlength=len(targets)).clamp(min=1)
        self.best: BoolArray = np.zeros(len(scope.rows), dtype=bool)
        self.best_gain = np.zeros(len(targets), dtype=np.int64)  # items displaced by the best answer
        self.best_size = np.full(len(targets), np.iinfo(np.int64).max)
        self.improved_at = np.zeros(len(targets), dtype=np.int64)
        self.tested: BoolArray = np.zeros(len(scope.rows), dtype=bool)  # the hard mask of nothing removed

    def run(self) -> Edits:
        import torch

        p = torch.full((len(self.scope.rows),), self.config.start, dtype=torch.float64, requires_grad=True)
        unit: torch.Tensor | None = None
        for step in range(self.config.steps):
            weight = torch.sigmoid(p)
            scores = self.model.score_weighted(
                self.users, self.rows, self.edge_users, self.edge_items, weight - 1
            )
            margins = self.margins(scores)
            if unit is None:
                unit = margins.detach().abs().clamp(min=max(self.config.slack, 1e-12))
            hinge = (torch.relu(margins + self.config.slack) / unit).mean(dim=1)
            removed = torch.zeros(len(self.targets), dtype=torch.float64).index_add_(0, self.rows, 1 - weight)
            loss = (hinge + self.config.beta * removed / self.sizes).sum()
            (gradient,) = torch.autograd.grad(loss, p)
            awake = torch.from_numpy(~self.resting(step))[
                self.rows
            ]  # so that nobody's neighbours prolong the search
            with torch.no_grad():
                p -= self.config.learning_rate * awake * self.normalised(gradient)
            self.test((p < 0).numpy(), step)
            if self.resting(step).all():
                break
        return self.answer()

    def normalised(self, gradient: Any) -> Any:
        """(E,) the gradient in units of each unit's largest component, on the grid."""
        import torch

        largest = torch.zeros(len(self.targets), dtype=torch.float64)
        largest.scatter_reduce_(0, self.rows, gradient.abs(), "amax")
        return torch.round(gradient / largest.clamp(min=1e-300)[self.rows] * GRID) / GRID

    def margins(self, scores: Any) -> Any:
        """(B, T) score of each target less that of the K-th best other candidate."""
        import torch

        candidates = scores.masked_fill(self.seen, -torch.inf)
        own = scores.gather(1, self.items)
        k = min(self.targets.k + 1, candidates.shape[1])
        best = candidates.topk(
            k, dim=1
        ).values  # with the target among them, the K-th other is one place further
        ahead = own >= best[:, -2:-1] if k > self.targets.k else own >= best[:, -1:]
        other = torch.where(ahead, best[:, -1:], best[:, -2:-1]) if k > self.targets.k else best[:, -1:]
        return own - other.clamp(min=-1e9)

    def test(self, removed: BoolArray, step: int) -> None:
        """Scores the units whose hard mask changed on the really edited graph, and keeps the better answers."""
        changed = np.zeros(len(self.targets), dtype=bool)
        changed[self.scope.rows[removed != self.tested]] = True
        self.tested = removed
        if not changed.any():
            return
        edits = self.edits(removed & changed[self.scope.rows])
        ranks = ranks_of(
            self.model.score_edits(edits), self.targets.items, self.targets.history, self.targets.padding
        )
        gain = (ranks > self.targets.k).sum(axis=1)
        size = edits.counts()
        better = changed & (gain > 0)
        better &= (gain > self.best_gain) | ((gain == self.best_gain) & (size < self.best_size))
        self.best_gain[better], self.best_size[better] = gain[better], size[better]
        self.improved_at[better] = step
        of_better = better[self.scope.rows]
        self.best[of_better] = removed[of_better]

    def resting(self, step: int) -> BoolArray:
        """(B,) units that have an answer which did not get smaller for a while."""
        return (self.best_gain > 0) & (step - self.improved_at >= self.config.patience)

    def edits(self, removed: BoolArray) -> Edits:
        rows = self.scope.rows[removed]
        ops = np.full(len(rows), REMOVE, dtype=np.int8)
        return Edits(self.targets.users, rows, self.scope.users[removed], self.scope.items[removed], ops)

    def answer(self) -> Edits:
        return self.edits(self.best)


def _seen(targets: Targets, items: int) -> Any:
    """(B, items) True for the interactions of the user, which are no candidates."""
    import torch

    seen = np.zeros((len(targets), items), dtype=bool)
    rows, columns = np.nonzero(~targets.padding)
    seen[rows, targets.history[rows, columns]] = True
    return torch.from_numpy(seen)
