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
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.edge_sets import edits_of_sets
from cfbench_explainers_gnn.unr_explainer import SMALLEST_MARGIN, first_margins, outcomes_of
from cfbench_recsys.edits import FloatArray

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


class SingleChanges:
    """The search around the best answer of one unit; what it tests is offered to ``best``."""

    def __init__(self, best: BestAnswers, unit: int) -> None:
        self.best, self.unit = best, unit
        self.part = best.block.take(np.array([unit]))
        self.wanted = int(best.wanted[unit])
        self.first = first_margins(self.part)
        best.queries[unit] += 1

    def improve(self) -> None:
        """All steps above."""
        room = min(self.part.targets.budget, len(self.part.edges))
        if room < FEW and sum(comb(len(self.part.edges), size) for size in range(1, room + 1)) <= TESTS:
            edges = range(len(self.part.edges))
            self._values([chosen for size in range(1, room + 1) for chosen in combinations(edges, size)])
            return
        self._take_back()
        shortened = self._answer()
        if self.best.displaced[self.unit] < self.wanted:
            self._exchange(shortened)
        if self._answer() != shortened:
            self._take_back()

    def _answer(self) -> _Set:
        return tuple(np.flatnonzero(self.best.chosen[self.part.edges]).tolist())

    def _take_back(self) -> None:
        before: _Set = ()
        while (current := self._answer()) != before:
            before = current
            waiting = self._least_important(current, self._slopes(current)[0])
            while waiting and len(current) > 1:
                some = waiting[:TOGETHER]
                values = self._values([_without(current, edge) for edge in some])
                enough = [-value[0] >= self.best.displaced[self.unit] for value in values]
                gone = enough.index(True) if any(enough) else len(some)
                current = _without(current, *some[gone : gone + 1])
                waiting = waiting[gone + 1 :]

    def _exchange(self, current: _Set) -> None:
        (value,) = self._values([current])
        tested = 0
        while tested < TESTS and -value[0] < self.wanted:
            neighbours = self._neighbours(current)
            values = self._values(neighbours)
            tested += len(neighbours)
            least = min(range(len(values)), key=values.__getitem__, default=None)
            if least is None or not values[least] < value:
                return
            current, value = neighbours[least], values[least]

    def _neighbours(self, current: _Set) -> list[_Set]:
        slope, of_items = self._slopes(current)
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

    def _values(self, sets: list[_Set]) -> list[_Value]:
        self.best.queries[self.unit] += len(sets)
        edits = edits_of_sets(self.part, [(0, edges) for edges in sets])
        outcomes = outcomes_of(self.part, edits, np.zeros(len(sets), dtype=np.int64), self.first, 0.0)
        for edges, outcome in zip(sets, outcomes, strict=True):
            chosen = np.zeros(len(self.part.edges), dtype=np.bool_)
            chosen[list(edges)] = True
            self.best.offer(self.part, chosen, np.array([outcome.displaced]), 0)
        return [
            (-outcome.displaced, outcome.left, len(edges))
            for edges, outcome in zip(sets, outcomes, strict=True)
        ]

    def _slopes(self, current: _Set) -> tuple[FloatArray, list[FloatArray]]:
        """(E,) slopes of all margins together, and those of each item that is still in the list."""
        import torch

        self.best.queries[self.unit] += 1
        made = torch.zeros(len(self.part.edges), dtype=torch.float64)
        made[list(current)] = 1.0
        made.requires_grad_()
        unit = torch.as_tensor(np.maximum(self.first[0, : self.wanted], SMALLEST_MARGIN))
        margins = self.part.margins(made)[0][: self.wanted] / unit
        of_items = [self._slope(margin, made) for margin in margins if margin >= 0]
        return self._slope(torch.relu(margins + RESERVE).sum(), made), of_items

    def _slope(self, value: Any, made: Any) -> FloatArray:
        import torch

        (slope,) = torch.autograd.grad(value, made, retain_graph=True)
        normalised: FloatArray = self.part.normalised(slope).cpu().numpy()
        return normalised


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
