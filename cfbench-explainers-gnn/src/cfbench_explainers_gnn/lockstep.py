"""Searches of several units that go on together, so that the model is queried for all of them at once.

A search of one unit is a generator: it yields what it wants to know (a :class:`Request`) and is sent the answer. Requests
of one class are answered together. As the numbers of a unit do not depend on the other units of a batch (``blocks.py``),
neither does what a search finds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfbench_explainers_gnn.blocks import Block
from cfbench_recsys.edits import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Request:
    """What a search wants to know about its unit of the block."""

    unit: int


Search = Generator[Request, Any, None]

Answers = Callable[[Sequence[Any]], Sequence[Any]]
"""Answers requests of one class, of different units in ascending order, in their order."""


def in_lockstep(searches: Iterable[Search], answers: dict[type[Request], Answers]) -> None:
    """Runs searches, each of another unit, to their ends. ``answers`` says how each class of requests is answered."""
    waiting: list[tuple[Request, Search]] = []
    for search in searches:
        _advance(search, None, waiting)
    while waiting:
        for kind, answer in answers.items():
            same_kind = sorted((one for one in waiting if type(one[0]) is kind), key=lambda one: one[0].unit)
            if not same_kind:
                continue
            waiting = [one for one in waiting if type(one[0]) is not kind]
            found = answer([request for request, _ in same_kind])
            for (_, search), result in zip(same_kind, found, strict=True):
                _advance(search, result, waiting)


def _advance(search: Search, result: Any, waiting: list[tuple[Request, Search]]) -> None:
    try:
        request = search.send(result)
    except StopIteration:
        return
    waiting.append((request, search))


class Parts:
    """Parts of a block by their units; the one that was taken last is stored, as requests mostly are of the same units."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._units: list[int] = []
        self._part = block

    def of(self, requests: Sequence[Request]) -> Block:
        """The block of the units of requests, which ascend."""
        units = [request.unit for request in requests]
        if units != self._units:
            self._units, self._part = units, self._block.take(np.array(units))
        return self._part


def edges_of_units(part: Block) -> list[slice]:
    """Where the possible edits of each unit of a block stand."""
    ends: IntArray = np.cumsum(part.possible.counts())
    return [slice(start, end) for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


def items_of_units(part: Block) -> BoolArray:
    """(B, T) where a unit has an item."""
    real: BoolArray = part.targets.items >= 0
    return real
