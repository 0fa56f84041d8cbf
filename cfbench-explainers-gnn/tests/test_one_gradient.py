"""One gradient against finite differences, and against the literal test of each prefix on a rebuilt graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cfbench_explainers_gnn.one_gradient import Config, OneGradient
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_recsys.edits import Edits

MakeWorld = Callable[..., Any]


def weighted_margin(world: Any, one: Any, possible: Edits, weights: np.ndarray) -> float:
    """The sum of the margins of the items, from scores under edits that are partly made."""
    import torch

    numbers = (one.users, possible.rows, possible.edge_users, possible.edge_items, possible.ops * weights)
    scores = world.context.model.score_weighted(*map(torch.as_tensor, numbers))[0].numpy()
    seen = set(one.history[0][~one.padding[0]].tolist())
    total = 0.0
    for item in one.items[0].tolist():
        others = sorted((s for j, s in enumerate(scores) if j != item and j not in seen), reverse=True)
        total += max(0.0, scores[item] - others[one.k - 1])
    return total


def literal(world: Any, one: Any, possible: Edits, max_edits: int) -> list[tuple[int, int]]:
    """The shortest prefix that displaces the most, in the order of central differences at the untouched graph."""
    edges = len(possible.rows)
    slope = np.empty(edges)
    for e in range(edges):
        step = np.eye(edges)[e] * 1e-5
        above, below = (weighted_margin(world, one, possible, sign * step) for sign in (1, -1))
        slope[e] = (above - below) / 2e-5
    order = [e for e in np.argsort(slope, kind="stable") if slope[e] < -1e-7][:max_edits]
    prefixes = [possible.where(np.isin(np.arange(edges), order[: n + 1])) for n in range(len(order))]
    displaced = [world.displaced(one, edits, 0) for edits in prefixes]
    if not displaced or not max(displaced):
        return []
    best = prefixes[int(np.argmax(displaced))]
    return sorted(zip(best.edge_users.tolist(), best.edge_items.tolist(), strict=True))


@pytest.mark.parametrize("level", ["item", "list"])
def test_it_is_the_shortest_prefix_in_the_order_of_finite_differences(
    level: str, recommender: str, graph_world: MakeWorld
) -> None:
    world = graph_world(recommender, 16, users=6, items=7)
    targets = world.targets(2, level, "full")
    edits = OneGradient(Config()).counterfactuals(replace(targets, max_edits=5), world.context).edits
    compared = 0
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        scores = np.sort(world.context.model.score_edits(Edits.nothing(one.users))[0])
        if (np.diff(scores) < 1e-4).any():
            continue  # the margin has a kink there
        mine = edits.take(row, row + 1)
        named = sorted(zip(mine.edge_users.tolist(), mine.edge_items.tolist(), strict=True))
        assert named == literal(world, one, possible_edits(one, world.context), 5)
        compared += 1
    assert compared >= 3


def test_it_takes_one_gradient_and_no_more_edits_than_it_may(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 18, users=8)
    targets = world.targets(3, "list", "full")
    for most in (1, 3):
        answer = OneGradient(Config()).counterfactuals(replace(targets, max_edits=most), world.context)
        assert 0 < answer.edits.counts().max() <= most
        assert answer.details["queries"].max() <= 1 + most
