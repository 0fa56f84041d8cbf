"""CF2: what the factual term adds, and what the prefixes of the mask's order do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from cfbench_core.errors import UserError
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.cf2 import CF2, Config
from cfbench_explainers_gnn.possible_edits import possible_edits

MakeWorld = Callable[..., Any]


def test_the_loss_by_hand(lightgcn_with: MakeWorld) -> None:
    """One layer, one dimension: s(0, 1) = 1/4 w(0,0) w(1,1) / sqrt of degrees; removing (1, 1) by half, and upholding it."""
    world = lightgcn_with([[1, 0, 0], [1, 1, 0]], users=[[0], [1]], items=[[1], [0], [0.1]])
    targets = world.targets(1, "item", "full").take(np.array([0]))
    block = Block(targets, possible_edits(targets, world.context), world.context)
    inside = torch.from_numpy(targets.items >= 0)
    mask = np.array([0.1, 0.2, 0.5])  # of the edges (0, 0), (1, 0), (1, 1)

    def margin(weights: np.ndarray) -> float:
        a, b, c = weights
        to_user = a / np.sqrt(a * (a + b))  # of item 0 to user 0
        to_item = c / np.sqrt((b + c) * c)  # of user 1 to item 1
        return float((to_user * to_item - to_user * 0.1) / 4)

    p = torch.from_numpy(np.log(mask / (1 - mask)))
    unit, slack = max(abs(margin(1 - mask)), 0.1), 0.1
    flips = max(0.0, margin(1 - mask) + slack) / unit
    upholds = max(0.0, slack - margin(mask)) / unit
    alone = CF2(Config(beta=0.02)).loss(block, p, inside)
    np.testing.assert_allclose(alone.numpy(), [flips + 0.02 * mask.sum()])
    both = CF2(Config(beta=0.02, factual=True, alpha=0.6)).loss(block, p, inside)
    np.testing.assert_allclose(both.numpy(), [0.4 * flips + 0.6 * upholds + 0.02 * mask.sum()])


def test_the_factual_term_costs_twice_and_still_succeeds(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 11)
    targets = world.targets(2, "item", "full")
    answer = CF2(Config(factual=True, prefixes=False, steps=3)).counterfactuals(targets, world.context)
    assert (answer.details["queries"] >= 2).all()
    for row in np.flatnonzero(answer.edits.counts()):
        assert world.displaced(targets, answer.edits, row) == 1


def test_prefixes_answer_no_less_and_no_larger(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 12, users=6)
    targets = world.targets(2, "item", "full")
    without, with_prefixes = (
        CF2(Config(prefixes=prefixes, beta=0.1, steps=6))
        .counterfactuals(targets, world.context)
        .edits.counts()
        for prefixes in (False, True)
    )
    answered = without > 0
    assert (with_prefixes[answered] <= without[answered]).all() and (with_prefixes[answered] > 0).all()
    assert (with_prefixes > 0).sum() > answered.sum()


def test_the_share_of_a_factual_part_that_is_off_is_refused() -> None:
    with pytest.raises(UserError, match="alpha: has no effect without factual: true"):
        Config(alpha=0.3)
    assert Config(alpha=0.3, factual=True).alpha == 0.3
