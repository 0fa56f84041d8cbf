"""Searches in lockstep: each finds what it would find alone, and the model is queried for all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cfbench_explainers_gnn.gradient_greedy import Config, GradientGreedy
from cfbench_explainers_gnn.lockstep import Request, Search, in_lockstep

MakeWorld = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Half(Request):
    of: int


@dataclass(frozen=True, eq=False)
class Triple(Request):
    of: int


def collatz(unit: int, start: int, found: dict[int, list[int]]) -> Search:
    """Halves even numbers, and triples odd ones and adds 1, down to 1."""
    found[unit] = [start]
    while (number := found[unit][-1]) > 1:
        if number % 2:
            tripled = yield Triple(unit, number)
            found[unit].append(tripled + 1)
        else:
            halved = yield Half(unit, number)
            found[unit].append(halved)


def test_each_search_gets_its_own_answers_and_equal_requests_are_answered_together() -> None:
    found: dict[int, list[int]] = {}
    batches: list[list[tuple[int, int]]] = []

    def answered(calculate: Callable[[int], int]) -> Callable[[Sequence[Any]], list[int]]:
        def answer(requests: Sequence[Any]) -> list[int]:
            batches.append([(request.unit, request.of) for request in requests])
            return [calculate(request.of) for request in requests]

        return answer

    starts = {4: 4, 0: 1, 2: 6, 1: 4}
    in_lockstep(
        [collatz(unit, start, found) for unit, start in starts.items()],
        {Half: answered(lambda number: number // 2), Triple: answered(lambda number: number * 3)},
    )
    assert found[0] == [1]
    assert found[1] == found[4] == [4, 2, 1]
    assert found[2] == [6, 3, 10, 5, 16, 8, 4, 2, 1]
    assert batches[0] == [(1, 4), (2, 6), (4, 4)], "those that ask the same, in the order of their units"
    assert batches[1] == [(2, 3)]
    assert sum(map(len, batches)) == 8 + 2 + 2


def evaluations(context: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that a model is queried with from now on."""
    sizes: list[int] = []
    model = context.model
    for name in ("score_weighted", "score_edits"):
        method = getattr(model, name)

        def counted(first: Any, *others: Any, method: Any = method) -> Any:
            sizes.append(len(first))
            return method(first, *others)

        monkeypatch.setattr(model, name, counted)
    return sizes


@pytest.mark.slow
@pytest.mark.parametrize("additions", [False, True])
def test_lists_together_have_the_answers_and_queries_of_each_alone_in_fewer_batches(
    graph_world: MakeWorld, additions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = graph_world("lightgcn", 7, users=12, items=24, density=0.25)
    targets = world.targets(3, "list", "k-hop", additions)
    assert len(targets) >= 10
    sizes = evaluations(world.context, monkeypatch)
    together = GradientGreedy(Config()).counterfactuals(targets, world.context)
    batches = len(sizes)
    for unit in range(len(targets)):
        one = targets.take(slice(unit, unit + 1))
        alone = GradientGreedy(Config()).counterfactuals(one, world.context)
        own = together.edits.take(unit, unit + 1)
        for name in ("edge_users", "edge_items", "ops"):
            assert np.array_equal(getattr(own, name), getattr(alone.edits, name))
        assert {name: values[unit] for name, values in together.details.items()} == {
            name: values[0] for name, values in alone.details.items()
        }
    assert batches < 0.5 * (len(sizes) - batches)
