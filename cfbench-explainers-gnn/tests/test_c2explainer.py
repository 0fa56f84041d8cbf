"""C2Explainer: only graphs that could exist are scored, nothing is changed at first, and additions help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.c2explainer import C2Explainer, Config
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_recsys.edits import ADD, Edits
from cfbench_recsys.targets import Context

MakeWorld = Callable[..., Any]


class Watched:
    """A recommender that records its queries."""

    def __init__(self, model: Any) -> None:
        self.model, self.deltas = model, []

    def score_edits(self, edits: Edits) -> Any:
        return self.model.score_edits(edits)

    def score_weighted(self, *arguments: Any) -> Any:
        self.deltas.append(arguments[-1].detach().numpy().copy())
        return self.model.score_weighted(*arguments)


def test_the_recommender_sees_whole_edits_only_and_first_none(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 13, users=4)
    targets = world.targets(2, "item", "k-hop", additions=True)
    watched = Watched(world.context.model)
    context = Context(watched, world.graph, world.graph, world.context.generator)
    C2Explainer(Config()).counterfactuals(targets, context)
    assert not watched.deltas[0].any()
    assert set(np.unique(np.concatenate(watched.deltas))) <= {-1.0, 0.0, 1.0}


def test_the_gradient_is_that_of_the_hard_graph(graph_world: MakeWorld) -> None:
    """Straight through: in p, the same as in how far the edits are made."""
    world = graph_world("lightgcn", 14)
    targets = world.targets(2, "item", "full").take(slice(0, 3))
    block = Block(targets, possible_edits(targets, world.context), world.context)
    inside = torch.from_numpy(targets.items >= 0)
    method = C2Explainer(Config(beta=0.0))
    p = torch.linspace(-1, 0.1, len(block.rows), dtype=torch.float64).requires_grad_()
    (through,) = torch.autograd.grad(method.loss(block, p, inside).sum(), p)
    made = (p.detach() > 0).to(torch.float64).requires_grad_()
    (exact,) = torch.autograd.grad(block.relative_hinge(block.margins(made), 0.1).sum(), made)
    np.testing.assert_allclose(through.numpy(), exact.numpy(), rtol=1e-12)


def test_with_additions_it_explains_what_removals_do_not(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 15, users=5)
    some, more = (
        C2Explainer(Config())
        .counterfactuals(world.targets(2, "item", "user-only", additions=adds), world.context)
        .edits
        for adds in (False, True)
    )
    assert (more.counts() > 0).sum() > (some.counts() > 0).sum()
    assert (more.ops == ADD).any() and not (some.ops == ADD).any()
