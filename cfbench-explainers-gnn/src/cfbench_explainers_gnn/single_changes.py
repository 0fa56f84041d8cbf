"""Single changes of the best answer, of none to begin with: edits taken back, made or exchanged, tested on the real model.

A gradient says little about a set of edits that is far from where it was taken. So, after descents have found an answer:

1. Edits are taken back, one at a time, those that matter least first, while as many items stay displaced; again and again,
   until none can be.
2. If items are left, the answer is compared with its neighbours: sets with one edit more, one less, or one exchanged. The
   edits that come in are the steepest ones at the answer, of all margins together and of each remaining item's; those that
   go matter least. The best neighbour takes the place of the answer if it displaces more items, or as many and less is
   left of the margins of the others; and so on, until none does, or ``TESTS`` neighbours were tested.
3. Edits are taken back once more.

Where all sets within the budget are no more than ``TESTS``, all of them are tested instead: then nothing is better.

Slopes are those of the sum of max(0, margin(i) / (margin(i) at the untouched graph) + ``RESERVE``): an item that has just
left counts as well, so that what displaces it matters.

The changes of several units are searched in lockstep (``lockstep.py``).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.edge_sets import edits_of_sets
from cfbench_explainers_gnn.edge_tree import Outcome
from cfbench_explainers_gnn.lockstep import (
    Parts,
    Request,
    Search,
    edges_of_units,
    in_lockstep,
    items_of_units,
)
from cfbench_explainers_gnn.unr_explainer import SMALLEST_MARGIN, first_margins, outcomes_of
from cfbench_recsys.edits import FloatArray, IntArray

TESTS = 128
"""Neighbours that are tested for one unit, by the end of the round in which there are so many."""
OF_ALL, OF_AN_ITEM = 12, 4
"""How many of the steepest edits may come in: by all margins, by each item's."""
EXCHANGED, EXCHANGED_OF_ALL = 6, 3
"""How many edits may go for another, and for how many of those that are steepest by all margins; for an item's, all."""
TOGETHER = 8
"""Sets that are tested together when edits are taken back."""
FEW = 10
"""With so many edits there are more sets than ``TESTS``."""
RESERVE = 0.25

_Set = tuple[int, ...]
_Value = tuple[int, float, int]
"""Less is better: minus the items that leave, what is left of the margins of the others, and the number of edits."""


class _First(Request):
    """(T,) margins on the untouched graph."""


@dataclass(frozen=True, eq=False)
class _Outcomes(Request):
    """What sets of edges do on the real model; ``first``: (T,) of :class:`_First`."""

    sets: list[_Set]
    first: FloatArray


@dataclass(frozen=True, eq=False)
class _Slopes(Request):
    """(E,) slopes of all margins together at a set of edges, and those of each item that is still in the list."""

    current: _Set
    first: FloatArray


def improve_by_single_changes(best: BestAnswers, units: IntArray) -> None:
    """All steps above for some units; what is tested is offered to ``best``."""
    parts = Parts(best.block)
    in_lockstep(
        [_SingleChanges(best, unit).improve() for unit in units.tolist()],
        {
            _First: lambda requests: list(first_margins(parts.of(requests))),
            _Slopes: lambda requests: _slopes(parts.of(requests), requests),
            _Outcomes: lambda requests: _outcomes(parts.of(requests), requests),
        },
    )


class _SingleChanges:
    """The search around the best answer of one unit."""

    def __init__(self, best: BestAnswers, unit: int) -> None:
        self.best, self.unit = best, unit
        self.part = best.block.take(np.array([unit]))
        self.wanted = int(best.wanted[unit])

    def improve(self) -> Search:
        self.first = yield _First(self.unit)
        self.best.queries[self.unit] += 1
        room = min(self.part.targets.budget, len(self.part.edges))
        if room < FEW and sum(comb(len(self.part.edges), size) for size in range(1, room + 1)) <= TESTS:
            edges = range(len(self.part.edges))
            yield from self._values(
                [chosen for size in range(1, room + 1) for chosen in combinations(edges, size)]
            )
            return
        yield from self._take_back()
        shortened = self._answer()
        if self.best.displaced[self.unit] < self.wanted:
            yield from self._exchange(shortened)
        if self._answer() != shortened:
            yield from self._take_back()

    def _answer(self) -> _Set:
        return tuple(np.flatnonzero(self.best.chosen[self.part.edges]).tolist())

    def _take_back(self) -> Search:
        before: _Set = ()
        while (current := self._answer()) != before:
            before = current
            slope, _ = yield from self._slopes(current)
            waiting = self._least_important(current, slope)
            while waiting and len(current) > 1:
                some = waiting[:TOGETHER]
                values = yield from self._values([_without(current, edge) for edge in some])
                enough = [-value[0] >= self.best.displaced[self.unit] for value in values]
                gone = enough.index(True) if any(enough) else len(some)
                current = _without(current, *some[gone : gone + 1])
                waiting = waiting[gone + 1 :]

    def _exchange(self, current: _Set) -> Search:
        (value,) = yield from self._values([current])
        tested = 0
        while tested < TESTS and -value[0] < self.wanted:
            neighbours = yield from self._neighbours(current)
            values = yield from self._values(neighbours)
            tested += len(neighbours)
            least = min(range(len(values)), key=values.__getitem__, default=None)
            if least is None or not values[least] < value:
                return
            current, value = neighbours[least], values[least]

    def _neighbours(self, current: _Set) -> Generator[Request, Any, list[_Set]]:
        slope, of_items = yield from self._slopes(current)
        steepest = _steepest(slope, current, OF_ALL)
        for_items = [edge for own in of_items for edge in _steepest(own, current, OF_AN_ITEM)]
        come = dict.fromkeys(steepest + for_items)
        go = self._least_important(current, slope)[:EXCHANGED]
        found = [(*current, edge) for edge in come if len(current) < self.part.targets.budget]
        if len(current) > 1:
            found += [_without(current, gone) for gone in go]
        exchanged = dict.fromkeys(steepest[:EXCHANGED_OF_ALL] + for_items)
        found += [(*_without(current, gone), edge) for gone in go for edge in exchanged]
        return [tuple(sorted(edges)) for edges in found]

    def _least_important(self, current: _Set, slope: FloatArray) -> list[int]:
        """The edits of a set, those first that lower the margins least."""
        return sorted(current, key=lambda edge: -slope[edge])

    def _values(self, sets: list[_Set]) -> Generator[Request, Any, list[_Value]]:
        self.best.queries[self.unit] += len(sets)
        outcomes: list[Outcome] = yield _Outcomes(self.unit, sets, self.first)
        for edges, outcome in zip(sets, outcomes, strict=True):
            chosen = np.zeros(len(self.part.edges), dtype=np.bool_)
            chosen[list(edges)] = True
            self.best.offer(self.part, chosen, np.array([outcome.displaced]), 0)
        return [
            (-outcome.displaced, outcome.left, len(edges))
            for edges, outcome in zip(sets, outcomes, strict=True)
        ]

    def _slopes(self, current: _Set) -> Generator[Request, Any, tuple[FloatArray, list[FloatArray]]]:
        self.best.queries[self.unit] += 1
        found: tuple[FloatArray, list[FloatArray]] = yield _Slopes(self.unit, current, self.first)
        return found


def _outcomes(part: Block, requests: Sequence[_Outcomes]) -> list[list[Outcome]]:
    """For each unit what its sets do."""
    edits = edits_of_sets(part, [(unit, edges) for unit, one in enumerate(requests) for edges in one.sets])
    counts = [len(one.sets) for one in requests]
    first = np.stack([one.first for one in requests])
    found = outcomes_of(part, edits, np.repeat(np.arange(len(requests)), counts), first, 0.0)
    ends = np.cumsum(counts).tolist()
    return [found[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _slopes(part: Block, requests: Sequence[_Slopes]) -> list[tuple[FloatArray, list[FloatArray]]]:
    """For each unit what its request is for."""
    import torch

    edges_of, real = edges_of_units(part), items_of_units(part)
    made = torch.zeros(len(part.edges), dtype=torch.float64)
    for edges, request in zip(edges_of, requests, strict=True):
        made[edges][list(request.current)] = 1.0
    made.requires_grad_()
    unit = np.maximum(np.stack([request.first for request in requests]), SMALLEST_MARGIN)
    margins = part.margins(made) / torch.as_tensor(unit)
    inside = (margins.detach().cpu().numpy() >= 0) & real

    def slopes(value: Any) -> FloatArray:
        (slope,) = torch.autograd.grad(value.sum(), made, retain_graph=True)
        normalised: FloatArray = part.normalised(slope).cpu().numpy()
        return normalised

    of_items = {item: slopes(margins[:, item]) for item in np.flatnonzero(inside.any(axis=0)).tolist()}
    of_all = slopes(torch.relu(margins + RESERVE))
    return [
        (of_all[edges], [of_items[item][edges] for item in np.flatnonzero(own).tolist()])
        for edges, own in zip(edges_of, inside, strict=True)
    ]


def _without(edges: _Set, *gone: int) -> _Set:
    return tuple(edge for edge in edges if edge not in gone)


def _steepest(slope: FloatArray, current: _Set, count: int) -> list[int]:
    """The edits with the smallest slopes that are not in a set, the smallest first; of equal ones the first leads."""
    count = min(count, len(slope) - len(current))
    if count == 0:
        return []
    slope = slope.copy()
    slope[list(current)] = np.inf
    steepest = np.flatnonzero(slope <= np.partition(slope, count - 1)[count - 1])
    found: list[int] = steepest[np.argsort(slope[steepest], kind="stable")[:count]].tolist()
    return found
