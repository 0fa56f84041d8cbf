"""UNR-Explainer: Monte Carlo tree search for a small subgraph whose removal replaces the neighbours.

Kang et al., "UNR-Explainer: Counterfactual Explanations for Unsupervised Node Representation Learning Models", ICLR
2024; adapted to recommendation as in CFExpRec, sec. 3.4.2: the importance of a subgraph is the share of the list that
leaves the top K when it is removed.

With margin_i(S) = s_i - (the K-th best other candidate's score) once the edges S are removed, the reward of S for a
unit with items T is

    R(S) = 1/|T| sum over i in T of  r_i(S),
    r_i  = 1                                                         where i ranks beyond K,
           partial * min(1, max(0, 1 - margin_i(S) / margin_i({})))  where not.

``partial`` 0 gives the paper's importance: at list level the share of the list, at item level 0 or 1, which gives
the search no information before it succeeds.

The search (see ``edge_tree.py``) starts at the user and the explained items and adds, one at a time, an edge in scope
that touches what it has, as the paper's walks with restarts do. A set is worth the best reward seen below it, not the
mean, as in the published code. In each round each unit goes down its tree ``batch`` times, to as many different sets,
and these, of all units, are scored together. With ``prune`` a new best answer is pruned at once: the sets with one
edge less are tried. The answer is the set that displaces most items, then the smallest, as the edited graph
says. "No answer" if none displaces any. A search ends when it has tried ``simulations`` sets, when ``patience`` of
them did not improve its answer, or when no smaller set is left. No set has more edges than the protocol allows.

This is ``variant: cfbench``; ``variant: paper`` is the method as published, see ``unr_paper.py``.

Departures from the paper, and why:
- The search is guided (``prior: gradient``), because scoring a set is what costs. One exact gradient on the untouched
  graph says by how much each removal lowers the margins, to first order. The ``width`` best edges are children (in the
  paper, random ones); which child comes next is chosen by PUCT, with the predicted reward for those not visited, in
  place of UCB1. And in each round the most promising new set is completed: with the gradient taken anew at that set, it
  is tried with as many edges more as promise to suffice, and further from there while they promised too much.
  ``prior: none`` uses nothing but scores: random edges, UCB1.
- The tree is one of sets, not of walks: two walks over the same edges are one subgraph, scored once.
- The smallest set is the one with the fewest edges. The published code counts nodes, and stops at its first success.
- The explained items are starting points in addition to the user: the edges that hold an item in a list are partly its
  own.
- ``patience`` ends a search that has an answer only; the published code gives up after 500 walks.

Cost: one evaluation for each set, one for the untouched graph, and in each round one with its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks, units_at_once
from cfbench_explainers_gnn.edge_sets import edits_of_sets
from cfbench_explainers_gnn.edge_tree import EdgeTree, Outcome, Surroundings, TreeOptions
from cfbench_explainers_gnn.unr_paper import PaperOptions, paper_answer
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/unr-explainer",
    summary="Tree search for a small subgraph whose removal replaces the list",
    target=f"{__name__}:UNRExplainer",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"gradients"}}},
    papers=("kang2024unr",),
    presets="cfbench_explainers_gnn:presets/unr-explainer.yaml",
)

GRID = 2.0**24
"""Rewards and gains are rounded to its steps: rounding noise, which depends on the batch, must not steer the search."""

SMALLEST_MARGIN = 1e-9


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    variant: Annotated[
        Variant, Help("cfbench: the guided search over sets; paper: the search over walks as published")
    ] = "cfbench"
    simulations: Annotated[int, Range(minimum=1), Help("maximum number of tested sets of edges")] = 120
    patience: Annotated[
        int, Range(minimum=1), Help("sets tried without a better answer after which a search ends")
    ] = 96
    batch: Annotated[int, Range(minimum=1), Help("sets of a unit that are scored together")] = 4
    width: Annotated[
        int, Range(minimum=1), Search(choices=(12, 24, 48, 96)), Help("edges that a set may grow by")
    ] = 48
    exploration: Annotated[
        float,
        Range(minimum=0),
        Search(0.1, 2, log=True),
        Help("weight of exploration against exploitation"),
    ] = 0.5
    partial: Annotated[
        float,
        Range(minimum=0, below=1),
        Help("reward of an item that is about to leave; 0: only displaced items count"),
    ] = 0.5
    prior: Annotated[Literal["gradient", "none"], Help("which edges are tried first; none: random ones")] = (
        "gradient"
    )
    connected: Annotated[bool, Help("sets grow from the user and the explained items only")] = True
    prune: Annotated[bool, Help("repeatedly test each new best answer without one of its edges")] = False
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, frozenset({"max_batch_edges"}))


class UNRExplainer:
    """Explicit answers, removals only, for recommenders on graphs."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        return in_blocks(targets, context, self.config, self._explain)

    def _explain(self, block: Block) -> Answer:
        if self.config.variant == "paper":
            return paper_answer(block, self.config.paper)
        all_units = range(len(block))
        first = first_margins(block)
        trees = self._trees(block, first)
        starts = np.searchsorted(block.possible.rows, np.arange(len(block)))
        queries = np.ones(len(block)) + (self.config.prior == "gradient")
        while True:
            proposed = [(unit, edges) for unit in all_units for edges in trees[unit].propose()]
            if not proposed:
                break
            units = np.array([unit for unit, _ in proposed])
            outcomes = outcomes_of(block, edits_of_sets(block, proposed), units, first, self.config.partial)
            for unit in np.unique(units).tolist():
                own = np.flatnonzero(units == unit)
                trees[unit].learn([proposed[p][1] for p in own], [outcomes[p] for p in own])
                queries[unit] += len(own)
            queries += _new_gains(block, starts, trees, first)
        best = edits_of_sets(block, [(unit, trees[unit].best) for unit in all_units])
        return Answer(best, {"queries": queries})

    def _trees(self, block: Block, margins: FloatArray) -> list[EdgeTree]:
        configured = {
            name: getattr(self.config, name)
            for name in TreeOptions.__dataclass_fields__
            if name not in ("guided", "max_edges")
        }
        guided = self.config.prior == "gradient"
        gains: FloatArray = np.zeros(len(block.possible.rows))
        if guided:
            gains = _gains(block, margins, np.zeros(len(gains), dtype=bool))
        trees = []
        counts = block.possible.counts()
        for unit, start in enumerate(np.searchsorted(block.possible.rows, np.arange(len(block)))):
            count = int(counts[unit])
            edges = slice(start, start + count)
            max_edges = max(1, min(block.targets.budget, count))  # of this unit: others must not matter
            options = TreeOptions(**configured, max_edges=max_edges, guided=guided)
            strength: FloatArray = gains[edges]
            if not guided:
                strength = block.generator(unit, "unr-explainer").random(edges.stop - edges.start)
            around = Surroundings(
                block.possible.edge_users[edges],
                block.possible.edge_items[edges],
                strength,
                options.width + options.max_edges,
            )
            items = block.targets.items[unit]
            items = items[items >= 0]
            roots = (block.targets.users[unit : unit + 1], items)
            trees.append(EdgeTree(around, roots, gains[edges], len(items), options))
        return trees


def _new_gains(block: Block, starts: IntArray, trees: list[EdgeTree], first: FloatArray) -> IntArray:
    """Gives trees the gains that they want, at the sets where they want them. (B,) how many each got."""
    wanted = {unit: edges for unit, tree in enumerate(trees) if (edges := tree.wants_gains()) is not None}
    units = np.array(list(wanted), dtype=np.int64)
    if len(units):
        removed = np.zeros(len(block.possible.rows), dtype=bool)
        for unit, edges in wanted.items():
            removed[starts[unit] + np.array(edges, dtype=np.int64)] = True
        part = block.take(units)
        gains = _gains(part, first[units], removed[part.edges])
        ends = np.cumsum(part.possible.counts())
        for unit, own in zip(units.tolist(), np.split(gains, ends[:-1]), strict=True):
            trees[unit].take_gains(own)
    return np.isin(np.arange(len(trees)), units).astype(np.int64)


def _gains(block: Block, first: FloatArray, removed: BoolArray) -> FloatArray:
    """(E,) by how much the mean relative margin of the items that are in the list shrinks when an edge goes, too.

    To first order, on the graph without the edges ``removed`` (E,).
    """
    import torch

    made = torch.as_tensor(removed.astype(np.float64)).requires_grad_()
    real = block.targets.items >= 0
    weights = np.where(real, 1 / np.maximum(first, SMALLEST_MARGIN), 0.0)
    weights /= np.maximum(1, real.sum(axis=1))[:, None]
    left = (torch.relu(block.margins(made)) * torch.as_tensor(weights)).sum()
    (slope,) = torch.autograd.grad(left, made)
    gains: FloatArray = np.rint(-slope.cpu().numpy() * GRID) / GRID
    return gains


def first_margins(block: Block) -> FloatArray:
    """(B, T) margins on the untouched graph."""
    scores = block.context.graph_model.score_edits(Edits.nothing(block.targets.users))
    return _margins(scores, block.targets)


def outcomes_of(block: Block, edits: Edits, of: IntArray, first: FloatArray, partial: float) -> list[Outcome]:
    """What edit p does to unit ``of[p]`` of the block, on the edited graph; ``first``: :func:`first_margins`."""
    found: list[Outcome] = []
    width = units_at_once(block.context)
    for start in range(0, len(edits), width):
        some, units = edits.take(start, min(start + width, len(edits))), of[start : start + width]
        found += _outcomes(
            block.context.graph_model.score_edits(some), block.targets.take(units), first[units], partial
        )
    return found


def _outcomes(scores: FloatArray, targets: Targets, first: FloatArray, partial: float) -> list[Outcome]:
    displaced = ranks_of(scores, targets.items, *targets.seen) > targets.k
    real = targets.items >= 0
    closed = np.clip(1 - _margins(scores, targets) / np.maximum(first, SMALLEST_MARGIN), 0.0, 1.0)
    closed = np.where(displaced, 1.0, np.rint(closed * GRID) / GRID)
    reward = np.where(displaced, 1.0, partial * closed)
    means = (
        np.where(real, a, 0.0).sum(axis=1) / np.maximum(1, real.sum(axis=1)) for a in (reward, 1 - closed)
    )
    columns = (displaced.sum(axis=1), *means)
    return [Outcome(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _margins(scores: FloatArray, targets: Targets) -> FloatArray:
    """(B, T) margins of items that are in the top K; of others no more than 0."""
    candidates = scores.copy()
    seen, absent = targets.seen
    rows, columns = np.nonzero(~absent)
    candidates[rows, seen[rows, columns]] = -np.inf
    place = candidates.shape[1] - targets.k - 1  # of the best candidate that is not in the top K
    if place < 0:
        return np.full(targets.items.shape, 1e9)
    beyond = np.maximum(np.partition(candidates, place, axis=1)[:, place], -1e9)
    own = np.take_along_axis(scores, np.maximum(targets.items, 0), axis=1)
    return own - beyond[:, None]
