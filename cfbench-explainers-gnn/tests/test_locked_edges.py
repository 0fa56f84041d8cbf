"""Interactions that are locked are no part of a scope: a search goes around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from cfbench_explainers_gnn import (
    c2explainer,
    cf2,
    cf_gnnexplainer,
    clear,
    exhaustive_edges,
    gradient_greedy,
    one_gradient,
    random_edges,
    unr_explainer,
)
from cfbench_recsys.edits import REMOVE, Edits
from cfbench_recsys.scopes import edges_in_scope

MakeWorld = Callable[..., Any]
EXPLAINERS: dict[str, Callable[[], Any]] = {
    "c2explainer": lambda: c2explainer.C2Explainer(c2explainer.Config(steps=8)),
    "cf2": lambda: cf2.CF2(cf2.Config(steps=8)),
    "cf-gnnexplainer": lambda: cf_gnnexplainer.CFGNNExplainer(cf_gnnexplainer.Config(steps=8, restarts=2)),
    "clear": lambda: clear.CLEAR(clear.Config(steps=4, batch=6, k=2)),
    "gradient-greedy": lambda: gradient_greedy.GradientGreedy(gradient_greedy.Config()),
    "one-gradient": lambda: one_gradient.OneGradient(one_gradient.Config()),
    "random-edges": lambda: random_edges.RandomEdges(random_edges.Config()),
    "unr-explainer": lambda: unr_explainer.UNRExplainer(unr_explainer.Config(simulations=10)),
}


def answer_of(explainer: Any, targets: Any, context: Any) -> Any:
    if hasattr(explainer, "prepare"):
        context = replace(context, state=explainer.prepare(context))
    return explainer.counterfactuals(targets, context).edits


def own_items(edits: Any) -> list[int]:
    """The items of the user's own edges that a one-unit answer edits."""
    found: list[int] = edits.edge_items[edits.edge_users == edits.users[0]].tolist()
    return found


@pytest.mark.parametrize("scope", ["user-only", "indirect", "k-hop", "full"])
def test_a_locked_edge_is_out_of_scope_and_only_for_its_user(scope: str, graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 4)
    targets = world.targets(2, "item", scope)
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        item = int(one.history[0, 0])
        free = edges_in_scope(world.graph, one)
        rest = edges_in_scope(world.graph, replace(one, locked=(item,)))
        edges = [set(zip(found.users.tolist(), found.items.tolist(), strict=True)) for found in (free, rest)]
        assert edges[1] == edges[0] - {(int(one.users[0]), item)}


@pytest.mark.parametrize("method", EXPLAINERS)
def test_a_search_goes_around_a_locked_interaction(method: str, graph_world: MakeWorld) -> None:
    world, locked, found_another = graph_world("lightgcn", 3, users=7, items=9), 0, 0
    targets = world.targets(2, "item", "k-hop")
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        own = own_items(answer_of(EXPLAINERS[method](), one, world.context))
        if own:
            again = answer_of(EXPLAINERS[method](), replace(one, locked=(own[0],)), world.context)
            assert own[0] not in own_items(again)
            locked, found_another = locked + 1, found_another + bool(len(again.rows))
    assert locked and found_another


def test_the_smallest_answer_under_a_lock_is_brute_force(graph_world: MakeWorld) -> None:
    world, different = graph_world("lightgcn", 5, users=5, items=6, density=0.4), 0
    targets = world.targets(2, "item", "user-only")
    explainer = exhaustive_edges.ExhaustiveEdges(exhaustive_edges.Config(max_size=2))
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        own = own_items(explainer.counterfactuals(one, world.context).edits)
        if not own:
            continue
        scope = edges_in_scope(world.graph, one)
        free = np.flatnonzero(scope.items != own[0])
        sizes = [
            size
            for size in (1, 2)
            for some in combinations(free.tolist(), size)
            if world.displaced(one, removed(one, scope, some), 0)
        ]
        found = explainer.counterfactuals(replace(one, locked=(own[0],)), world.context).edits
        assert len(found.rows) == min(sizes, default=0)
        different += len(found.rows) != len(own)
    assert different


def removed(one: Any, scope: Any, some: tuple[int, ...]) -> Any:
    places = np.array(some)
    rows = np.zeros(len(places), dtype=np.int64)
    return Edits(
        one.users,
        rows,
        scope.users[places],
        scope.items[places],
        np.full(len(places), REMOVE, dtype=np.int8),
    )
