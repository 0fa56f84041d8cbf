"""Exhaustive over edges, against literal loops over rebuilt graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from cfbench_explainers_gnn.exhaustive_edges import Config, ExhaustiveEdges
from cfbench_explainers_gnn.gradient_greedy import Config as GreedyConfig
from cfbench_explainers_gnn.gradient_greedy import GradientGreedy
from cfbench_explainers_gnn.possible_edits import AdditionsConfig, possible_edits

MakeWorld = Callable[..., Any]


def literal(world: Any, one: Any, max_size: int, additions: AdditionsConfig | None) -> tuple[int, int]:
    """(most items displaced, fewest edits with which), over all sets of at most ``max_size``."""
    scope = possible_edits(one, world.context, additions)
    count, best = len(scope.rows), (0, 0)
    for size in range(1, max_size + 1):
        for some in combinations(range(count), size):
            displaced = world.displaced(one, scope.where(np.isin(np.arange(count), some)), 0)
            best = max(best, (displaced, -size))
    return best[0], -best[1]


@pytest.mark.parametrize(("level", "additions"), [("item", False), ("list", False), ("item", True)])
def test_it_is_brute_force(graph_world: MakeWorld, level: str, additions: bool) -> None:
    world = graph_world("lightgcn", 5, users=5, items=6, density=0.3)
    targets = world.targets(2, level, "user-only", additions).take(slice(0, 6))
    config = Config(max_size=2)
    answer = ExhaustiveEdges(config).counterfactuals(targets, world.context)
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        displaced, size = literal(world, one, 2, config if additions else None)
        assert answer.edits.counts()[row] == size
        assert world.displaced(targets, answer.edits, row) == displaced
        possible = len(possible_edits(one, world.context, config if additions else None).rows)
        all_out = displaced == one.items.shape[1]
        assert answer.details["none_up_to"][row] == (size - 1 if all_out else min(2, possible))
        assert answer.details["proven"][row] == (all_out or possible <= 2)
    assert (answer.edits.counts() > 0).any()


def test_greedy_is_never_better(recommender: str, graph_world: MakeWorld) -> None:
    world = graph_world(recommender, 3, users=6, items=7)
    targets = world.targets(2, "item", "indirect")
    limited = replace(targets, max_edits=2)
    greedy = GradientGreedy(GreedyConfig()).counterfactuals(limited, world.context).edits.counts()
    answer = ExhaustiveEdges(Config(max_size=2)).counterfactuals(targets, world.context)
    smallest = answer.edits.counts()
    assert ((smallest > 0) & (smallest <= greedy))[greedy > 0].all()
    assert (greedy > 0).any()


def test_the_certificate_ends_where_the_budget_does(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 5)
    targets = world.targets(3, "item", "full").take(slice(0, 3))
    edges = world.graph.nnz
    answer = ExhaustiveEdges(Config(max_size=3, budget=edges + 1)).counterfactuals(targets, world.context)
    found = answer.edits.counts() > 0
    assert (answer.details["queries"] <= edges + 1).all()
    assert (answer.details["none_up_to"][~found] == 1).all()
    assert not answer.details["proven"][~found].any()
    assert (answer.details["none_up_to"][found] == answer.edits.counts()[found] - 1).all()
