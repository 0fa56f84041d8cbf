"""GREASE: search on a surrogate graph network for the edges without which an item leaves the list.

Chen, Silvestri, Wang, Zhang, Huang, Ahn & Tolomei, "GREASE: Generate Factual and Counterfactual Explanations
for GNN-based Recommendations", 2022 (arXiv:2208.04222), counterfactual part, as in CFExpRec, section 3.4.1.
The recommender is a black box that gives embeddings. A surrogate graph convolution is fitted to them around
the user and the target; which edges to remove is searched with the surrogate's gradients; what is found is
tried on the recommender.

One parameter p_e for each edge in scope, of weight w_e = sigmoid(p_e), hard-removed where p_e < 0. With
margin(i) = s_i - (the K-th best other candidate's score), s = the recommender's scores under the hard mask tried
last (at first: none) plus what the surrogate says that the soft mask changes from there, one step is

    p <- p - learning_rate (g - distance w'),    g = gradient of sum_i margin(i), its largest component scaled to 1,

i over the targets that are still in the list, and w' the derivative of the weight, its value at the start scaled
to 1: an edge is worth removing if it moves the margin by more than ``distance`` times what the steepest edge
does. Whenever the hard mask has changed it is tried on the recommender. The first that works (at list level:
that displaces more than before) is stored. Of its edges, lowest p first, the shortest prefix that works as well is
the answer (of long ones, the shortest of some thirty). An answer with more edits than the protocol allows is none.

Details: ``surrogate fidelity``, Spearman's correlation of the surrogate's and the recommender's scores over the
user's candidates, and ``surrogate list``, the share of the recommender's top K in the surrogate's.

This is ``variant: cfbench``; ``variant: paper`` is the method as published, see ``grease_paper.py``.

Departs from the paper:

- The surrogate is linear and fitted in closed form (``graph_surrogate.py``), in place of a network trained by
  gradient descent for each pair: milliseconds, no random start. Its input are the final embeddings.
- It is fitted on the nodes of the subgraph, but sees the edges that leave it.
- Only changes are taken from the surrogate; they start from the recommender's own scores, anew after each trial.
  Without that the search runs astray where many edges go (on ML-1M, 6 of 8 items displaced in place of 8).
- Gradients start from nothing in each step, there is no dropout, and the distance is on the soft mask, where it
  has a gradient.
- Steps end with the recommender's verdict, not the surrogate's; a growing learning rate reaches large sets.

Cost: for each step and unit a pass there and back over the graph, and at most one evaluation of the recommender;
for each answer at most 32 evaluations more. Memory O(edges), and O(edges in scope) for each unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.graph_surrogate import Neighbourhood
from cfbench_explainers_native.grease_paper import paper_answer
from cfbench_explainers_native.grease_surrogate import PaperOptions
from cfbench_recsys.edits import REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import ranks_of, top_k
from cfbench_recsys.scopes import EdgesInScope, edges_in_scope
from cfbench_recsys.scoring import score_once
from cfbench_recsys.soft_edits import GRID, list_margins, per_unit_scale, seen_mask
from cfbench_recsys.targets import Answer, Context, Targets

if TYPE_CHECKING:
    import torch

SPEC = ComponentSpec(
    id="recsys/explainer/grease",
    summary="Search on a surrogate graph network for the edges that hold an item in the list",
    target=f"{__name__}:Grease",
    version="2",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores", "embeddings"}}},
    papers=("chen2022grease",),
    presets="cfbench_explainers_native:presets/grease.yaml",
)

BLOCK = 64
"""Units that are searched for together."""


PREFIXES = 16
"""Prefixes of an answer that are tried at once."""


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[
        Variant, Help("cfbench: a linear surrogate in closed form; paper: a graph network, as published")
    ] = "cfbench"
    layers: Annotated[int, Range(minimum=1), Search(choices=(1, 2, 3)), Help("of the surrogate")] = 2
    fit_radius: Annotated[
        int, Range(minimum=1), Help("steps around user and target: the nodes that the surrogate is fitted on")
    ] = 2
    ridge: Annotated[
        float, Range(above=0), Search(0.01, 100, log=True), Help("penalty of the surrogate's weights")
    ] = 1.0
    steps: Annotated[int, Range(minimum=1), Help("of the search")] = 20
    learning_rate: Annotated[
        float, Range(above=0), Search(0.3, 3), Help("first step of the steepest edge")
    ] = 1.25
    growth: Annotated[float, Range(minimum=1), Help("factor of the learning rate, from step to step")] = 1.2
    distance: Annotated[
        float, Range(minimum=0), Help("least effect worth an edge, as a share of the steepest edge's")
    ] = 0.01
    start: Annotated[float, Range(above=0), Help("value of every parameter at the start")] = 1.0
    edges: Annotated[
        int, Range(minimum=1), Help("edges in scope of all units that are searched for together, at most")
    ] = 200_000
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self)


class Grease:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each unit, and how faithful its surrogate is."""
        if self.config.variant == "paper":
            return paper_answer(targets, context, self.config.paper)
        model = context.graph_embedding_model
        neighbourhood = Neighbourhood(
            context.interactions, model.user_embeddings(), model.item_embeddings(), self.config.layers
        )
        answers = [
            _Search(self.config, targets.take(units), scope, neighbourhood, context).run()
            for units, scope in self._groups(targets, context)
        ]
        details = {
            name: np.concatenate([answer.details[name] for answer in answers]) for name in answers[0].details
        }
        edits = Edits.concatenate([answer.edits for answer in answers])
        return Answer(targets.within_budget(edits), details)

    def _groups(self, targets: Targets, context: Context) -> Any:
        """Runs of units, with their edges in scope, that are searched for together."""
        for start in range(0, len(targets), BLOCK):
            units = np.arange(start, min(start + BLOCK, len(targets)))
            block = edges_in_scope(context.interactions, targets.take(units))
            ends = np.cumsum(np.bincount(block.rows, minlength=len(units)))
            first = 0
            while first < len(units):
                before = ends[first - 1] if first else 0
                last = max(first + 1, int(np.searchsorted(ends, before + self.config.edges, side="right")))
                edges = slice(before, ends[last - 1])
                scope = EdgesInScope(block.rows[edges] - first, block.users[edges], block.items[edges])
                yield units[first:last], scope
                first = last


class _Search:
    """The search for some units."""

    def __init__(
        self,
        config: Config,
        targets: Targets,
        scope: EdgesInScope,
        neighbourhood: Neighbourhood,
        context: Context,
    ) -> None:
        self.config, self.targets, self.scope, self.context = config, targets, scope, context
        self.surrogate = neighbourhood.fit(targets, config.fit_radius, config.ridge)
        self.part = _Part(self, np.arange(len(targets)))  # the units that are still searched for
        self.removed: BoolArray = np.zeros(len(scope.rows), dtype=np.bool_)  # tried last
        self.inside: BoolArray = targets.items >= 0  # (B, T) the targets that were in the list then
        self.wanted = self.inside.sum(axis=1)
        self.best: BoolArray = self.removed.copy()
        self.order: FloatArray = np.zeros(len(scope.rows))  # of the edges of the best answer: lowest first
        self.gain = np.zeros(len(targets), dtype=np.int64)  # targets that the best answer displaces

    def run(self) -> Answer:
        import torch

        untouched = score_once(
            self.context.model, Edits.nothing(self.targets.users), self.context.interactions
        )
        part = self.part
        with torch.no_grad():
            fitted = part.scores(torch.ones(len(self.scope.rows), dtype=torch.float64))
        self.offset = torch.as_tensor(untouched) - fitted
        p = torch.full((len(self.scope.rows),), self.config.start, dtype=torch.float64)
        rate, slope = self.config.learning_rate, float(_slope(torch.tensor(self.config.start)))
        for _ in range(self.config.steps):
            open_units = np.flatnonzero(self.gain < self.wanted)
            if not len(open_units):
                break
            if len(open_units) < len(part.units):
                part = self.part = _Part(self, open_units)
            own = p[part.edges].requires_grad_()
            margins = part.margins(part.scores(torch.sigmoid(own)) + self.offset[part.units])
            (effect,) = torch.autograd.grad((margins * torch.as_tensor(self.inside[part.units])).sum(), own)
            with torch.no_grad():
                scaled = per_unit_scale(effect, part.rows, len(part.units))
                p[part.edges] -= rate * (scaled - self.config.distance * _slope(own) / slope)
            rate *= self.config.growth
            self.test(p.cpu().numpy())
        self.shorten()
        return Answer(self.edits(self.best), _fidelity(fitted.cpu().numpy(), untouched, self.targets))

    def test(self, p: FloatArray) -> None:
        """Tries the hard masks that changed on the recommender, and stores those that displace more."""
        removed = p < 0
        changed = np.zeros(len(self.targets), dtype=np.bool_)
        changed[self.scope.rows[removed != self.removed]] = True
        changed &= self.gain < self.wanted
        self.removed = removed
        units = np.flatnonzero(changed)
        if not len(units):
            return
        real = score_once(self.context.model, self.edits(removed).choose(units), self.context.interactions)
        self.calibrate(real, units)
        self.inside[units] = self.still_inside(real, units)
        gain = self.wanted - self.inside.sum(axis=1)
        better = changed & (gain > self.gain)
        self.gain[better] = gain[better]
        edges = better[self.scope.rows]
        self.best[edges], self.order[edges] = removed[edges], p[edges]

    def calibrate(self, real: FloatArray, units: IntArray) -> None:
        """From here on the surrogates relate changes to the recommender's scores under the hard mask just tried."""
        import torch

        part = self.part if np.array_equal(units, self.part.units) else _Part(self, units)
        with torch.no_grad():
            fitted = part.scores(torch.as_tensor(~self.removed[part.edges]).to(torch.float64))
        self.offset[units] = torch.as_tensor(real) - fitted

    def still_inside(self, scores: FloatArray, units: IntArray) -> BoolArray:
        """(E, T) which targets of ``units`` (E,) rank within the top K by the scores (E, items)."""
        block = self.targets.take(units)
        inside: BoolArray = ranks_of(scores, block.items, *block.seen) <= self.targets.k
        return inside & (block.items >= 0)

    def shorten(self) -> None:
        """Of each answer's edges in their order, as few as displace as many targets on the recommender."""
        low, high = np.zeros(len(self.targets), dtype=np.int64), self.edits(self.best).counts()
        ordered = np.lexsort((self.order, ~self.best, self.scope.rows))  # each unit's best edges first
        place = np.empty(len(ordered), dtype=np.int64)
        place[ordered] = np.arange(len(ordered))
        place -= np.searchsorted(self.scope.rows, np.arange(len(self.targets)))[self.scope.rows]
        for _ in range(2):
            tries = [(u, n) for u in range(len(low)) for n in lengths_between(low[u], high[u])]
            for start in range(0, len(tries), BLOCK):
                units, lengths = np.array(tries[start : start + BLOCK]).T
                edits = self.prefixes(place, units, lengths)
                scores = score_once(self.context.model, edits, self.context.interactions)
                gain = self.wanted[units] - self.still_inside(scores, units).sum(axis=1)
                succeeds = gain >= self.gain[units]
                np.minimum.at(high, units[succeeds], lengths[succeeds])
            for unit, length in tries:
                if length < high[unit]:
                    low[unit] = max(low[unit], length)
        self.best &= place < high[self.scope.rows]

    def prefixes(self, place: IntArray, units: IntArray, lengths: IntArray) -> Edits:
        """The first ``lengths[j]`` edges of the answer for ``units[j]``."""
        starts = np.searchsorted(self.scope.rows, np.arange(len(self.targets) + 1))
        chosen = [
            np.flatnonzero(place[starts[u] : starts[u + 1]] < n) + starts[u]
            for u, n in zip(units, lengths, strict=True)
        ]
        edges = np.concatenate(chosen)
        rows = np.repeat(np.arange(len(units)), [len(own) for own in chosen])
        return self._removals(self.targets.users[units], rows, edges)

    def edits(self, removed: BoolArray) -> Edits:
        edges = np.flatnonzero(removed)
        return self._removals(self.targets.users, self.scope.rows[edges], edges)

    def _removals(self, users: IntArray, rows: IntArray, edges: IntArray) -> Edits:
        ops = np.full(len(edges), REMOVE, dtype=np.int8)
        return Edits(users, rows, self.scope.users[edges], self.scope.items[edges], ops)


class _Part:
    """Surrogates of some units, ascending, and their edges in scope.

    A unit has the same scores in any part, bit by bit (``cfbench_recsys/batch_products.py``), so one that is finished need
    not be scored with the others.
    """

    def __init__(self, search: _Search, units: IntArray) -> None:
        import torch

        scope, targets = search.scope, search.targets.take(units)
        self.units, self.k = units, targets.k
        self.edges = np.flatnonzero(np.isin(scope.rows, units))
        self.rows = torch.as_tensor(np.searchsorted(units, scope.rows[self.edges]))
        self.ends = tuple(torch.as_tensor(side[self.edges]) for side in (scope.users, scope.items))
        self.surrogate = search.surrogate.choose(units)
        self.users = torch.as_tensor(targets.users)
        self.items = torch.as_tensor(np.maximum(targets.items, 0))
        self.seen = torch.as_tensor(seen_mask(targets, search.context.interactions.shape[1]))

    def scores(self, weight: torch.Tensor) -> torch.Tensor:
        """(U, items) what the surrogates say when these edges have these weights."""
        edge_users, edge_items = self.ends
        return self.surrogate.score_weighted(self.users, self.rows, edge_users, edge_items, weight - 1.0)

    def margins(self, scores: torch.Tensor) -> torch.Tensor:
        """(U, T) the score of each target less that of the K-th best other candidate."""
        return list_margins(scores, self.seen, self.items, self.k)


def lengths_between(low: int, high: int) -> IntArray:
    """At most ``PREFIXES`` lengths above ``low`` and below ``high``, all of them if they are so few."""
    if high - low - 1 <= PREFIXES:
        return np.arange(low + 1, high)
    return np.unique(np.rint(np.geomspace(low + 1, high - 1, PREFIXES)).astype(np.int64))


def _slope(p: torch.Tensor) -> torch.Tensor:
    """The derivative of the sigmoid."""
    weight = p.sigmoid()
    return weight * (1.0 - weight)


def _fidelity(fitted: FloatArray, real: FloatArray, targets: Targets) -> dict[str, FloatArray]:
    """How far the surrogates rank as the recommender does, before anything is removed: two details."""
    lists = [top_k(scores, *targets.seen, targets.k) for scores in (fitted, real)]
    shared = [
        np.isin(own[own >= 0], other).mean() if (own >= 0).any() else np.nan
        for other, own in zip(*lists, strict=True)
    ]
    candidates = ~seen_mask(targets, real.shape[1])
    correlations = [
        _spearman(*(s[row][candidates[row]] for s in (fitted, real))) for row in range(len(targets))
    ]
    return {"surrogate fidelity": np.array(correlations), "surrogate list": np.array(shared)}


def _spearman(first: FloatArray, second: FloatArray) -> float:
    """Correlation of ranks, equal up to rounding being equal; NaN for fewer than two, or where all are equal."""
    if len(first) < 2:
        return float("nan")
    import pandas as pd  # scipy.stats takes three times as long to import

    on_grid = (np.rint(s / max(float(np.abs(s).max()), 1e-300) * GRID) for s in (first, second))
    ranks = [pd.Series(numbers).rank().to_numpy() for numbers in on_grid]
    if any(np.ptp(own) == 0 for own in ranks):
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
