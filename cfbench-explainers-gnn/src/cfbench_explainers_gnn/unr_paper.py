"""UNR-Explainer as published: Monte Carlo tree search over walks with restarts, by UCB1.

Kang et al., "UNR-Explainer: Counterfactual Explanations for Unsupervised Node Representation Learning Models", ICLR
2024; read from the authors' code (github.com/hjkng/unrexplainer, commit 1b8cddd), which is followed where it differs
from the paper. ``variant: paper`` of ``unr-explainer``.

A node of the tree is a position of a walk on the graph that begins at the user. Its children are at most ``width``
random neighbours of that position, the one that the walk came from among them. A walk goes down the tree:

- with probability ``restart`` it returns to the user (the root of the tree);
- else it goes to the child with the highest UCB1 = V + exploration * sqrt(ln N / n), where V is the highest importance of a
  walk through the child, n their number, and N the number of all walks so far (the parent's in UCB1 as it is usually
  defined); children without a walk come first. Directly after a restart any other child is drawn, if there is one.

It ends at a position without children. If a walk ended there before, the position gets children, and the walk goes on to
the first of them. The edges of the walk are the set S. Its importance is the share of the targets that leave the top K when
S is removed. Every position of the walk learns it.

The search stops at importance 1; from the 501st walk on (``walks`` 500), when more than ``patience`` walks in a row did not
improve the highest importance; after 101 walks if only three nodes lie within two steps of the user, after one if two
do. The explanation is the set with the highest importance; of these, the one with the fewest nodes; of these, the first.
If its importance is 0, or if it has more edges than the protocol allows, there is no answer. There is no gradient, no
pruning, and no test of smaller sets. Random numbers: a stream for each unit.

Adaptations to recommendation (CFExpRec, sec. 3.4.2):
- The walks stay on the edges in scope. The width is from the whole graph, as published: its mean degree, at least 3.
- The importance is the share of the explained items that leave the list, of one item 0 or 1, in place of the share of the K
  nearest neighbours that are replaced. An item that the user has seen is no candidate.
- A set that was scored before is not scored again. This changes no number.

Agreement with the authors' loop: on 100 items of 20 users of Amazon Fashion (LightGCN, K = 5, k-hop 3) it returns the same
set for each when it draws the same random numbers, PN-S .73 with 2.0 edges; with others .75 with 2.4 edges and the same
set for 64 of 100 (``benchmarks/authors_graph_searches.py``, ``docs/results/authors-graph-searches.csv``).

Cost: a query for each new set; the largest cost is 501 of them for each unit without a success.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.edge_sets import edits_of_sets
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.targets import Answer

FEW_NODES_WALKS = 100
"""Walks after which a search ends that has three nodes within two steps of the user."""


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code."""

    exploration: Annotated[float, Range(minimum=0), Help("weight of exploration in UCB1")] = 1.0
    restart: Annotated[
        float, Range(minimum=0, below=1), Help("probability that a walk returns to the user")
    ] = 0.2
    walks: Annotated[int, Range(minimum=1), Help("number of walks before patience may end the search")] = 500
    patience: Annotated[
        int, Range(minimum=1), Help("walks in a row without a higher importance, after which it ends")
    ] = 10
    width: Annotated[
        int | None, Range(minimum=1), Help("maximum number of children; null: the mean degree, at least 3")
    ] = None


def paper_answer(block: Block, options: PaperOptions) -> Answer:
    """The answers of the units of a block; their searches take turns, so that their sets are scored together."""
    width = options.width or mean_degree_width(block)
    searches = [WalkSearch(UnitGraph.of(block, unit), options, width) for unit in range(len(block))]
    loops = [search.run(block.generator(unit, "unr-explainer")) for unit, search in enumerate(searches)]
    known: list[dict[tuple[int, ...], float]] = [{} for _ in searches]
    queries = np.zeros(len(block))
    pending: dict[int, tuple[int, ...]] = {}
    for unit in range(len(block)):
        _advance(unit, None, loops, known, pending)
    wanted = np.count_nonzero(block.targets.items >= 0, axis=1)
    while pending:
        units = np.array(list(pending), dtype=np.int64)
        sets = [(unit, pending[unit]) for unit in units.tolist()]
        importances = block.displaced(edits_of_sets(block, sets), units) / wanted[units]
        queries[units] += 1
        for (unit, edges), importance in zip(sets, importances.tolist(), strict=True):
            known[unit][edges] = importance
            del pending[unit]
            _advance(unit, importance, loops, known, pending)
    best = edits_of_sets(block, [(unit, search.explanation()) for unit, search in enumerate(searches)])
    return Answer(block.targets.within_budget(best), {"queries": queries})


_Loop = Generator[tuple[int, ...], float, None]


def _advance(
    unit: int,
    importance: float | None,
    loops: list[_Loop],
    known: list[dict[tuple[int, ...], float]],
    pending: dict[int, tuple[int, ...]],
) -> None:
    """Continues the search of a unit until it ends or needs the importance of a set that is not known."""
    try:
        edges = next(loops[unit]) if importance is None else loops[unit].send(importance)
        while edges in known[unit]:
            edges = loops[unit].send(known[unit][edges])
    except StopIteration:
        return
    pending[unit] = edges


def mean_degree_width(block: Block) -> int:
    """The mean degree of the whole graph, rounded, and at least 3."""
    graph = block.context.interactions
    degree: float = 2 * graph.nnz / sum(graph.shape)
    return max(round(degree), 3)


@dataclass(frozen=True)
class UnitGraph:
    """The edges in scope of a unit; nodes are numbers, users before items.

    Attributes:
        user: the node where walks begin; -1 if no edge in scope touches it.
        neighbours: of each node, in ascending order: (node, number of the edge).
    """

    user: int
    neighbours: tuple[tuple[tuple[int, int], ...], ...]

    @staticmethod
    def of(block: Block, unit: int) -> UnitGraph:
        own = block.possible.rows == unit
        users, items = block.possible.edge_users[own], block.possible.edge_items[own]
        user_ids, user_nodes = np.unique(users, return_inverse=True)
        item_ids, item_nodes = np.unique(items, return_inverse=True)
        found: list[list[tuple[int, int]]] = [[] for _ in range(len(user_ids) + len(item_ids))]
        for edge, (user, item) in enumerate(zip(user_nodes.tolist(), item_nodes.tolist(), strict=True)):
            found[user].append((len(user_ids) + item, edge))
            found[len(user_ids) + item].append((user, edge))
        place = int(np.searchsorted(user_ids, block.targets.users[unit]))
        here = place < len(user_ids) and user_ids[place] == block.targets.users[unit]
        return UnitGraph(place if here else -1, tuple(tuple(sorted(near)) for near in found))

    def nodes_within_two_steps(self) -> int:
        near = {node for node, _ in self.neighbours[self.user]}
        return len({self.user} | near | {node for middle in near for node, _ in self.neighbours[middle]})


class _Position:
    """A node of the tree. ``value``: the highest importance of a walk through it, ``visits`` their number."""

    __slots__ = ("children", "edge", "node", "value", "visits")

    def __init__(self, node: int, edge: int) -> None:
        self.node, self.edge = node, edge
        self.value, self.visits = 0.0, 0
        self.children: list[_Position] | None = None


class WalkSearch:
    """The search of one unit: :meth:`run` yields sets of edges and is sent their importance."""

    def __init__(self, graph: UnitGraph, options: PaperOptions, width: int) -> None:
        self.graph, self.options, self.width = graph, options, width
        self.tried: list[tuple[float, int, tuple[int, ...]]] = []
        """Of each walk: importance, number of nodes, edges in ascending order."""

    def explanation(self) -> tuple[int, ...]:
        """The edges of the set with the highest importance, then the fewest nodes, then the first; () if it has none."""
        best = min(self.tried, key=lambda tried: (-tried[0], tried[1]), default=(0.0, 0, ()))
        return best[2] if best[0] > 0 else ()

    def run(self, draws: np.random.Generator) -> _Loop:
        if self.graph.user < 0:
            return
        self._root = _Position(self.graph.user, -1)
        self._expand(self._root, draws)
        near = self.graph.nodes_within_two_steps()
        highest, since = 0.0, 0
        while True:
            walk = self._walk(draws)
            edges = tuple(sorted({position.edge for position in walk}))
            nodes = len({self.graph.user} | {position.node for position in walk})
            importance = yield edges
            self._learn(walk, importance)
            self.tried.append((importance, nodes, edges))
            highest, since = (importance, 0) if importance > highest else (highest, since + 1)
            few = near == 2 or (near == 3 and len(self.tried) > FEW_NODES_WALKS)
            tired = since > self.options.patience and len(self.tried) > self.options.walks
            if importance >= 1.0 or few or tired:
                return

    def _expand(self, position: _Position, draws: np.random.Generator) -> list[_Position]:
        """Gives a position its children."""
        near = self.graph.neighbours[position.node]
        chosen = draws.choice(len(near), min(self.width, len(near)), replace=False)
        position.children = [_Position(*near[place]) for place in chosen.tolist()]
        return position.children

    def _walk(self, draws: np.random.Generator) -> list[_Position]:
        """The positions of a walk, without the user's own at its beginning and at restarts."""
        position, walk, restarted = self._root, list[_Position](), False
        while (children := position.children) is not None:
            if draws.random() < self.options.restart:
                position, restarted = self._root, True
                continue
            place = int(self._ucb1(children).argmax())
            if restarted and len(children) > 1:
                others = [other for other in range(len(children)) if other != place]
                place = others[int(draws.integers(len(others)))]
            position, restarted = children[place], False
            walk.append(position)
        if position.visits > 0:
            walk.append(
                self._expand(position, draws)[0]
            )  # its neighbours include the one that the walk came from
        return walk

    def _ucb1(self, children: list[_Position]) -> FloatArray:
        visits = np.array([child.visits for child in children])
        values = np.array([child.value for child in children])
        bonus = np.sqrt(np.log(max(self._root.visits, 1)) / np.maximum(visits, 1))
        scores: FloatArray = np.where(visits > 0, values + self.options.exploration * bonus, np.inf)
        return scores

    def _learn(self, walk: list[_Position], importance: float) -> None:
        for position in [self._root, *walk]:
            position.value = max(position.value, importance)
            position.visits += 1
