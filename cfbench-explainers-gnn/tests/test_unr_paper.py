"""The paper variant of UNR-Explainer follows the published search: a literal one on paths finds the same sets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import check_component
from cfbench_explainers_gnn.unr_explainer import Config, UNRExplainer
from cfbench_explainers_gnn.unr_paper import PaperOptions
from cfbench_recsys.edits import Edits
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Answer

Edge = tuple[int, int]


def answers(world: Any, targets: Any, **options: Any) -> Edits:
    explainer = UNRExplainer(Config(variant="paper", paper=PaperOptions(**options)))
    return Answer.of(explainer.counterfactuals(targets, world.context)).edits


def literal_search(
    edges: list[Edge],
    user: int,
    importance: Callable[[frozenset[Edge]], float],
    draws: np.random.Generator,
    options: PaperOptions,
    width: int,
) -> frozenset[Edge]:
    """The search by its description. A position of the tree is a path of nodes; tables hold what is known of paths."""
    near: dict[Any, list[Any]] = {}
    for u, i in edges:
        near.setdefault(("u", u), []).append(("i", i))
        near.setdefault(("i", i), []).append(("u", u))
    root = (("u", user),)
    if root[0] not in near:
        return frozenset()
    children: dict[Any, list[Any]] = {}
    value: dict[Any, float] = {}
    visits: dict[Any, int] = {}

    def expand(path: Any) -> None:
        nodes = sorted(near[path[-1]])
        chosen = draws.choice(len(nodes), min(width, len(nodes)), replace=False)
        children[path] = [(*path, nodes[place]) for place in chosen]

    def ucb1(path: Any) -> float:
        if path not in visits:
            return math.inf
        total = math.log(visits[root]) / visits[path]
        return value[path] + options.exploration * math.sqrt(total)

    expand(root)
    within_two = {root[0], *near[root[0]]} | {n for m in near[root[0]] for n in near[m]}
    tried: list[tuple[float, int, frozenset[Edge]]] = []
    best, without = 0.0, 0
    while True:
        path, steps, passed, last = root, [], [root], ""
        while path in children:
            if draws.random() < options.restart:
                path, last = root, "restart"
                continue
            choice = max(children[path], key=ucb1)  # the first of equal ones
            if last == "restart" and len(children[path]) > 1:
                others = [child for child in children[path] if child != choice]
                choice = others[draws.integers(len(others))]
            steps.append((path[-1], choice[-1]))
            path, last = choice, "step"
            passed.append(path)
        if path in visits:
            expand(path)
            steps.append((path[-1], children[path][0][-1]))
            passed.append(children[path][0])
        removed = frozenset((dict(step)["u"], dict(step)["i"]) for step in steps)
        found = importance(removed)
        for position in passed:
            value[position] = max(value.get(position, 0.0), found)
            visits[position] = visits.get(position, 0) + 1
        tried.append((found, len({node for step in steps for node in step}), removed))
        best, without = (found, 0) if found > best else (best, without + 1)
        if found == 1 or len(within_two) == 2 or (len(within_two) == 3 and len(tried) > 100):
            break
        if without > options.patience and len(tried) > options.walks:
            break
    highest = max(found for found, _, _ in tried)
    fewest = min(nodes for found, nodes, _ in tried if found == highest)
    first = next(edges for found, nodes, edges in tried if (found, nodes) == (highest, fewest))
    return first if highest > 0 else frozenset()


@pytest.mark.parametrize("level", ["item", "list"])
@pytest.mark.parametrize("scope", ["user-only", "k-hop", "full"])
def test_a_literal_search_with_the_same_draws_finds_the_same_set(
    graph_world: Any, level: str, scope: str
) -> None:
    world = graph_world("lightgcn", seed=4)
    targets = world.targets(2, level, scope)
    options = {"walks": 25, "patience": 3, "width": 3}
    edits = answers(world, targets, **options)
    found = 0
    for unit in range(len(targets)):
        one = targets.take(np.array([unit]))
        scope_edges = edges_in_scope(world.graph, one)
        edges = list(zip(scope_edges.users.tolist(), scope_edges.items.tolist(), strict=True))
        wanted = int((one.items >= 0).sum())

        def importance(removed: frozenset[Edge], one: Any = one, wanted: int = wanted) -> float:
            pairs = np.array(sorted(removed)).reshape(-1, 2)
            ops = np.full(len(pairs), -1, dtype=np.int8)
            rows = np.zeros(len(pairs), dtype=np.int64)
            return float(
                world.displaced(one, Edits(one.users, rows, pairs[:, 0], pairs[:, 1], ops), 0) / wanted
            )

        names = ("test", "unr-explainer", int(one.users[0]), *one.items[0].tolist())
        expected = literal_search(
            edges, int(one.users[0]), importance, generator(*names), PaperOptions(**options), 3
        )
        own = edits.take(unit, unit + 1)
        assert frozenset(zip(own.edge_users.tolist(), own.edge_items.tolist(), strict=True)) == expected
        found += bool(expected)
    assert found > 0


def test_the_width_is_the_mean_degree_of_the_graph_and_at_least_three(graph_world: Any) -> None:
    world = graph_world("lightgcn", seed=2, density=0.5)
    degree = round(2 * world.graph.nnz / 21)
    assert degree > 3
    targets = world.targets(1, "item", "full")
    default, same, other = (
        answers(world, targets, walks=30, **width) for width in ({}, {"width": degree}, {"width": 1})
    )
    assert default.edge_items.tolist() == same.edge_items.tolist()
    assert default.edge_items.tolist() != other.edge_items.tolist()


def test_a_set_with_more_edges_than_the_protocol_allows_is_no_answer(graph_world: Any) -> None:
    world = graph_world("lightgcn", seed=4)
    targets = world.targets(2, "item", "full")
    free = answers(world, targets, walks=60)
    bound = answers(world, dataclasses.replace(targets, max_edits=1), walks=60)
    assert free.counts().max() > 1
    assert bound.counts().tolist() == np.where(free.counts() > 1, 0, free.counts()).tolist()


def test_options_of_the_other_variant_are_refused() -> None:
    with pytest.raises(UserError, match="width: is an option of variant: cfbench"):
        Config(variant="paper", width=12)
    with pytest.raises(UserError, match="paper: these are options of variant: paper"):
        Config(paper=PaperOptions(walks=3))
    Config(variant="paper", max_batch_edges=3)


def test_it_passes_the_conformance_kit() -> None:
    options = Config(variant="paper", paper=PaperOptions(walks=20))
    report = check_component("recsys/explainer/unr-explainer", options=options)
    assert report.passed, str(report)
