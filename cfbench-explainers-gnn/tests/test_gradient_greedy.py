"""Gradient greedy against finite differences and the literal search; random edges against its stream."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.lifecycle.streams import generator
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.exhaustive_edges import Config as ExhaustiveConfig
from cfbench_explainers_gnn.exhaustive_edges import ExhaustiveEdges
from cfbench_explainers_gnn.gradient_greedy import Config, GradientGreedy, _steepest
from cfbench_explainers_gnn.one_gradient import Config as OneConfig
from cfbench_explainers_gnn.one_gradient import OneGradient
from cfbench_explainers_gnn.possible_edits import AdditionsConfig, possible_edits
from cfbench_explainers_gnn.random_edges import Config as RandomConfig
from cfbench_explainers_gnn.random_edges import RandomEdges
from cfbench_recsys.edits import Edits

MakeWorld = Callable[..., Any]


def literal(world: Any, targets: Any, row: int, max_edits: int) -> list[int]:
    """Which edges in scope greedy removes, with central differences for the gradient.

    An edge after which the margin has not fallen is put back and not tried again. Where this displaces nothing, prefixes
    of the order of the first gradient are tried.
    """
    one = targets.take(slice(row, row + 1))
    block = Block(one, possible_edits(one, world.context), world.context)
    made: list[int] = []
    barred: set[int] = set()

    def margin(values: np.ndarray) -> float:
        return float(block.margins(torch.from_numpy(values))[0, 0])

    first: np.ndarray | None = None
    while len(made) < max_edits:
        at = np.zeros(len(block.rows))
        at[made] = 1.0
        slopes = np.full(len(at), np.inf)
        for e in set(range(len(at))) - set(made) - barred:
            step = np.zeros(len(at))
            step[e] = 1e-5
            slopes[e] = (margin(at + step) - margin(at - step)) / 2e-5
        first = slopes if first is None else first
        if not slopes.min() < 0:
            break
        made.append(int(slopes.argmin()))
        chosen = np.isin(np.arange(len(at)), made)
        if world.displaced(one, block.possible.where(chosen), 0):
            return sorted(made)
        if not margin(chosen.astype(float)) < margin(at):
            barred.add(made.pop())
    assert first is not None
    order = [int(e) for e in first.argsort(kind="stable") if first[e] < 0]
    for length in range(1, min(len(order), max_edits) + 1):
        if world.displaced(one, block.possible.where(np.isin(np.arange(len(block.rows)), order[:length])), 0):
            return sorted(order[:length])
    return []


def ties(world: Any, one: Any) -> bool:
    scores = np.sort(world.context.model.score_edits(Edits.nothing(one.users))[0])
    return bool((np.diff(scores) < 1e-9).any())


def test_it_is_the_literal_search_with_finite_differences(recommender: str, graph_world: MakeWorld) -> None:
    world = graph_world(recommender, 16, users=6, items=9)
    targets = world.targets(2, "item", "k-hop").take(slice(0, 5))
    limited = dataclasses.replace(targets, max_edits=4)
    edits = GradientGreedy(Config()).counterfactuals(limited, world.context).edits
    compared = 0
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        if ties(world, one):
            continue  # no gradient there, but one on either side
        scope = possible_edits(one, world.context)
        named = [
            (int(scope.edge_users[e]), int(scope.edge_items[e])) for e in literal(world, targets, row, 4)
        ]
        mine = edits.take(row, row + 1)
        if not named:  # what single changes then find is tested below
            assert not len(mine.rows) or world.displaced(one, mine, 0)
            continue
        assert sorted(zip(mine.edge_users.tolist(), mine.edge_items.tolist(), strict=True)) == sorted(named)
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("additions", [False, True])
def test_as_wide_as_the_scope_its_first_edit_is_the_best_of_all_that_fall(
    additions: bool, graph_world: MakeWorld
) -> None:
    """Each edit alone, on the real model; the margin that is left, no less than 0, is what counts."""
    world = graph_world("lightgcn", 19, users=6, items=6)
    targets = world.targets(2, "item", "full", additions=additions)
    limited = dataclasses.replace(targets, max_edits=1)
    answer = GradientGreedy(Config(width=1000)).counterfactuals(limited, world.context)
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        possible = possible_edits(one, world.context, AdditionsConfig() if additions else None)
        block = Block(one, possible, world.context)
        start = torch.zeros(len(block.rows), dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(block.margins(start).sum(), start)
        falling = np.flatnonzero(slope.numpy() < 0)
        alone = [
            bool(world.displaced(one, possible.where(np.arange(len(slope)) == e), 0))
            for e in range(len(slope))
        ]
        assert answer.edits.counts()[row] == any(alone)  # of those that do not fall, too, if it must be
        if np.array(alone)[falling].any():
            assert answer.details["queries"][row] == 1 + len(falling) + 1


def test_a_larger_budget_never_loses_an_answer(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 17, users=6)
    targets = world.targets(3, "list", "full")
    few, many = (
        GradientGreedy(Config())
        .counterfactuals(dataclasses.replace(targets, max_edits=count), world.context)
        .edits
        for count in (2, 12)
    )
    for row in range(len(targets)):
        assert world.displaced(targets, many, row) >= world.displaced(targets, few, row)


def test_random_edges_are_the_shortest_prefix_of_a_random_order(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 18, users=5)
    targets = world.targets(2, "item", "full")
    edits = RandomEdges(RandomConfig()).counterfactuals(targets, world.context).edits
    assert edits.counts().max() > 1
    for row in np.flatnonzero(edits.counts() > 1):
        one, mine = targets.take(slice(row, row + 1)), edits.take(row, row + 1)
        assert world.displaced(one, mine, 0)
        fewer = [
            world.displaced(one, mine.where(np.arange(len(mine.rows)) != e), 0) for e in range(len(mine.rows))
        ]
        assert not all(fewer)  # without the edge that was drawn last it is no success
    streams = [lambda *names, run=run: generator(run, *names) for run in ("one", "other")]
    first, again, other = (
        RandomEdges(RandomConfig())
        .counterfactuals(targets, dataclasses.replace(world.context, generator=stream))
        .edits
        for stream in (streams[0], streams[0], streams[1])
    )
    assert np.array_equal(first.edge_users, again.edge_users)
    assert not np.array_equal(first.counts(), other.counts())


def test_the_reference_displaces_as_many_items_as_the_baseline(
    recommender: str, graph_world: MakeWorld
) -> None:
    world = graph_world(recommender, 5, users=8, items=8)
    for additions in (False, True):
        asked = dataclasses.replace(world.targets(3, "list", "k-hop", additions=additions), max_edits=8)
        counts = {}
        for name, made in (
            ("reference", GradientGreedy(Config(patience=1))),
            ("baseline", OneGradient(OneConfig())),
        ):
            edits = made.counterfactuals(asked, world.context).edits
            counts[name] = [
                world.displaced(asked.take(slice(row, row + 1)), edits.take(row, row + 1), 0)
                for row in range(len(asked))
            ]
        assert (np.array(counts["reference"]) >= np.array(counts["baseline"])).all()


def test_where_few_sets_are_possible_a_list_has_the_best_of_all(
    recommender: str, graph_world: MakeWorld
) -> None:
    """The exhaustive search tries them, too: every set of a user's own edges."""
    several = 0
    for seed in range(4):
        world = graph_world(recommender, 60 + seed, users=7, items=10, density=0.3)
        targets = world.targets(3, "list", "user-only")
        targets = targets.take(np.flatnonzero((~targets.padding).sum(axis=1) <= 7))
        explainers = (
            GradientGreedy(Config()),
            ExhaustiveEdges(ExhaustiveConfig(max_size=7, budget=100_000)),
        )
        mine, best = (made.counterfactuals(targets, world.context).edits for made in explainers)
        for row in range(len(targets)):
            assert world.displaced(targets, mine, row) == world.displaced(targets, best, row)
            assert mine.counts()[row] == best.counts()[row]
            several += mine.counts()[row] > 1
    assert several >= 3


@pytest.mark.parametrize("recommender", ["simgcl", "gformer"])
def test_an_item_that_no_descent_displaces_leaves_if_any_few_edits_make_it_leave(
    recommender: str, graph_world: MakeWorld
) -> None:
    """Every set of a user's own edges within the budget is tried: there is an answer where the exhaustive search has one."""
    answered = 0
    for seed in range(6):
        world = graph_world(recommender, 80 + seed, users=7, items=10, density=0.3)
        targets = dataclasses.replace(world.targets(3, "item", "user-only"), max_edits=2)
        explainers = (GradientGreedy(Config()), ExhaustiveEdges(ExhaustiveConfig(max_size=2)))
        mine, best = (made.counterfactuals(targets, world.context).edits for made in explainers)
        assert ((mine.counts() > 0) == (best.counts() > 0)).all()
        answered += np.count_nonzero(mine.counts())
    assert answered >= 20


@pytest.mark.parametrize("additions", [False, True])
def test_no_edit_of_a_list_can_be_taken_back(additions: bool, graph_world: MakeWorld) -> None:
    """As many items stay displaced without it, on the real model, one edit after the other."""
    edits_seen = 0
    for seed in range(3):
        world = graph_world("lightgcn", 70 + seed, users=8, items=14)
        targets = world.targets(4, "list", "k-hop", additions=additions)
        edits = GradientGreedy(Config()).counterfactuals(targets, world.context).edits
        for row in range(len(targets)):
            one, mine = targets.take(slice(row, row + 1)), edits.take(row, row + 1)
            whole = world.displaced(one, mine, 0)
            edits_seen += len(mine.rows)
            for edge in range(len(mine.rows)):
                assert world.displaced(one, mine.where(np.arange(len(mine.rows)) != edge), 0) < whole
    assert edits_seen >= 40


@pytest.mark.slow
def test_of_a_list_it_displaces_nearly_what_the_best_set_within_the_budget_does(
    graph_world: MakeWorld,
) -> None:
    """Brute force says the most that two and three edits displace; the baseline has a quarter less than that."""
    displaced = {"reference": 0, "baseline": 0, "most": 0}
    for seed in range(8):
        world = graph_world("lightgcn", 40 + seed, users=6, items=9, density=0.4)
        for size in (2, 3):
            targets = dataclasses.replace(world.targets(3, "list", "k-hop"), max_edits=size)
            explainers = {
                "reference": GradientGreedy(Config()),
                "baseline": OneGradient(OneConfig()),
                "most": ExhaustiveEdges(ExhaustiveConfig(max_size=size, budget=100_000)),
            }
            counts = {}
            for name, explainer in explainers.items():
                edits = explainer.counterfactuals(targets, world.context).edits
                counts[name] = [world.displaced(targets, edits, row) for row in range(len(targets))]
                displaced[name] += sum(counts[name])
            for baseline, reference, most in zip(
                counts["baseline"], counts["reference"], counts["most"], strict=True
            ):
                assert baseline <= reference <= most
    assert displaced["baseline"] < displaced["reference"]
    assert displaced["reference"] >= 0.97 * displaced["most"]


@given(st.lists(st.lists(st.integers(-2, 1), max_size=6), max_size=5), st.integers(1, 3))
def test_the_steepest_edits_are_those_of_a_sorted_list(slopes: list[list[int]], width: int) -> None:
    rows = np.repeat(np.arange(len(slopes)), [len(own) for own in slopes])
    flat = [slope for own in slopes for slope in own]
    units, edges = _steepest(np.array(flat, dtype=float), rows, width)
    wanted = []
    for unit in range(len(slopes)):
        own = [edge for edge in range(len(flat)) if rows[edge] == unit and flat[edge] < 0]
        wanted += [(unit, edge) for edge in sorted(own, key=lambda edge: flat[edge])[:width]]  # stable
    assert list(zip(units.tolist(), edges.tolist(), strict=True)) == wanted
