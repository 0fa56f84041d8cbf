"""The published loops of CF-GNNExplainer, CF2 and C2Explainer: equal to literal ones on a dense graph, and unlike ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from cfbench_core.errors import UserError
from cfbench_core.testing import check_component
from cfbench_explainers_gnn import c2explainer, cf2, cf_gnnexplainer
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.c2explainer_paper import PaperC2Explainer
from cfbench_explainers_gnn.cf2_paper import PaperCF2
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_recsys.edits import Edits
from cfbench_recsys.targets import Targets

MakeWorld = Callable[..., Any]
METHODS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "cf-gnnexplainer": (
        cf_gnnexplainer.CFGNNExplainer,
        cf_gnnexplainer,
        {"steps": 60, "learning_rate": 1.0},
    ),
    "cf2": (cf2.CF2, cf2, {"steps": 60, "strength": 100.0, "alpha": 0.2}),
    "c2explainer": (c2explainer.C2Explainer, c2explainer, {"steps": 40, "beta": 0.05}),
}


def explainer(name: str, **more: Any) -> Any:
    """The paper variant with few steps."""
    method, module, options = METHODS[name]
    return method(module.Config(variant="paper", paper=module.PaperOptions(**{**options, **more})))


class Dense:
    """LightGCN on a dense matrix of weights, for one unit: the scores of its candidates, written from the formula."""

    def __init__(self, world: Any, targets: Targets) -> None:
        self.graph = torch.from_numpy(world.graph.toarray())
        users, items = world.graph.shape
        state = [torch.from_numpy(np.asarray(values, dtype=np.float64)) for values in world.state.values()]
        by_size = {len(values): values for values in state}
        self.embeddings = torch.cat([by_size[users], by_size[items]])
        self.layers, self.user, self.k = world.layers, int(targets.users[0]), targets.k
        self.item = int(targets.items[0, 0])

    def scores(self, weights: Any) -> Any:
        """(items,) with seen ones at -inf; ``weights`` (users, items)."""
        users, items = weights.shape
        adjacency = torch.zeros(users + items, users + items, dtype=torch.float64)
        adjacency[:users, users:] = weights
        adjacency[users:, :users] = weights.T
        degrees = adjacency.sum(dim=1)
        scale = torch.where(degrees > 0, degrees.clamp(min=1e-300) ** -0.5, 0.0)
        layer = total = self.embeddings
        for _ in range(self.layers):
            layer = scale[:, None] * (adjacency @ (scale[:, None] * layer))
            total = total + layer
        total = total / (self.layers + 1)
        scores = total[users:] @ total[self.user]
        return scores.masked_fill(self.graph[self.user] > 0, -torch.inf)

    def margin(self, weights: Any) -> Any:
        scores = self.scores(weights)
        others = torch.cat([scores[: self.item], scores[self.item + 1 :]])
        return scores[self.item] - others.sort(descending=True).values[self.k - 1]


def units(world: Any, count: int) -> list[tuple[Targets, Block, Dense]]:
    """Some items with all edges in scope, each alone."""
    targets = world.targets(2, "item", "full")
    found = []
    for row in np.linspace(0, len(targets) - 1, count).astype(int).tolist():
        one = targets.take(slice(row, row + 1))
        block = Block(one, possible_edits(one, world.context), world.context)
        found.append((one, block, Dense(world, one)))
    return found


def answer_of(edits: Edits) -> set[tuple[int, int]]:
    return set(zip(edits.edge_users.tolist(), edits.edge_items.tolist(), strict=True))


def removed_edges(graph: Any, weights: Any) -> set[tuple[int, int]]:
    return set(map(tuple, ((graph > 0) & (weights == 0)).nonzero().tolist()))


def test_cf_gnnexplainer_is_gradient_descent_on_the_gated_likelihood(graph_world: MakeWorld) -> None:
    world, found = graph_world("lightgcn", 4, users=6, items=9), 0
    for targets, _, dense in units(world, 6):
        p, best = torch.ones_like(dense.graph), None
        for _ in range(60):
            p = p.detach().requires_grad_()
            hard = dense.graph * (torch.sigmoid(p) >= 0.5)
            flipped = bool(dense.margin(hard) < 0)
            removed = removed_edges(dense.graph, hard)
            if flipped and (best is None or len(removed) < len(best)):
                best = removed
            soft = dense.graph * torch.sigmoid(p)
            loss = (1.0 - flipped) * dense.scores(soft).log_softmax(dim=0)[dense.item]
            (gradient,) = torch.autograd.grad(loss, p)
            p = p - 1.0 * gradient * min(1.0, 2.0 / (float(gradient.norm()) + 1e-6))
        edits = explainer("cf-gnnexplainer").counterfactuals(targets, world.context).edits
        assert answer_of(edits) == (best or set())
        found += best is not None
    assert found > 1


def test_cf2_is_adam_on_the_norm_and_both_hinges(graph_world: MakeWorld) -> None:
    world, found = graph_world("lightgcn", 5, users=6, items=9), 0
    for targets, block, dense in units(world, 4):
        method = explainer("cf2")
        start = PaperCF2(method.config.paper).start(block)
        to_items, to_users = torch.zeros_like(dense.graph), torch.zeros_like(dense.graph)
        edges = (block.possible.edge_users, block.possible.edge_items)
        to_items[edges], to_users[edges] = start
        to_items.requires_grad_()
        to_users.requires_grad_()
        adam = torch.optim.Adam([to_items, to_users], lr=0.05)

        def mask(graph: Any = dense.graph, a: Any = to_items, b: Any = to_users) -> Any:
            return graph * (torch.sigmoid(a) + torch.sigmoid(b)) / 2

        for _ in range(60):
            adam.zero_grad()
            upheld = torch.sigmoid(dense.margin(mask()))
            left = torch.sigmoid(dense.margin(dense.graph - mask()))
            hinges = 0.2 * torch.relu(1 - upheld) + 0.8 * torch.relu(left)
            (2 * mask().sum() + 100.0 * hinges).backward()
            adam.step()
        hard = dense.graph * (mask() <= 0.5)
        expected = removed_edges(dense.graph, hard) if dense.margin(hard) < 0 else set()
        edits = method.counterfactuals(targets, world.context).edits
        assert answer_of(edits) == expected
        found += bool(expected)
    assert found


def test_c2explainer_is_adam_on_the_straight_through_graph(graph_world: MakeWorld) -> None:
    world, found = graph_world("lightgcn", 6, users=6, items=9), 0
    for targets, block, dense in units(world, 6):
        method = explainer("c2explainer")
        edges = (block.possible.edge_users, block.possible.edge_items)
        p = PaperC2Explainer(method.config.paper).start(block).requires_grad_()
        adam, best = torch.optim.Adam([p], lr=0.1), None

        def graph(hard_only: bool, p: Any = p, like: Any = dense.graph, edges: Any = edges) -> Any:
            there = torch.sigmoid(p).mean(dim=0)
            hard = (there > 0.5).double()
            weights = hard if hard_only else hard + there - there.detach()
            return torch.zeros_like(like).index_put(tuple(map(torch.from_numpy, edges)), weights)

        for _ in range(40):
            adam.zero_grad()
            likelihood = torch.log(1 - torch.sigmoid(dense.margin(graph(hard_only=False))))
            (-likelihood + 0.05 * (1 - torch.sigmoid(p)).sum()).backward()
            adam.step()
            hard = graph(hard_only=True)
            removed = removed_edges(dense.graph, hard)
            if dense.margin(hard) < 0 and (best is None or len(removed) < len(best)):
                best = removed
        edits = method.counterfactuals(targets, world.context).edits
        assert answer_of(edits) == (best or set())
        found += best is not None
    assert found > 1


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("level", ["item", "list"])
def test_answers_are_successes_and_do_not_depend_on_the_batch(
    graph_world: MakeWorld, name: str, level: str
) -> None:
    world = graph_world("lightgcn", 7, users=6)
    targets = world.targets(2, level, "full").take(np.arange(3))
    together = explainer(name).counterfactuals(targets, world.context)
    assert (together.details["queries"] > 0).all()
    for row in range(len(targets)):
        alone = explainer(name).counterfactuals(targets.take(slice(row, row + 1)), world.context)
        assert answer_of(alone.edits) == answer_of(together.edits.take(row, row + 1))
        if together.edits.counts()[row]:
            assert world.displaced(targets, together.edits, row) > 0


@pytest.mark.parametrize("name", METHODS)
def test_the_variants_differ_and_refuse_each_others_options(graph_world: MakeWorld, name: str) -> None:
    method, module, options = METHODS[name]
    world = graph_world("lightgcn", 8, users=6)
    targets = world.targets(2, "item", "full").take(np.arange(4))
    ours = method(module.Config()).counterfactuals(targets, world.context).edits
    theirs = explainer(name).counterfactuals(targets, world.context).edits
    assert answer_of(ours) != answer_of(theirs)
    with pytest.raises(UserError, match="patience: is an option of variant: cfbench"):
        module.Config(variant="paper", patience=3)
    with pytest.raises(UserError, match="paper: these are options of variant: paper"):
        module.Config(paper=module.PaperOptions(**options))


def test_c2explainer_may_add_edges_as_published(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 9, users=6)
    targets = world.targets(2, "item", "full", additions=True).take(np.arange(3))
    edits = explainer("c2explainer").counterfactuals(targets, world.context).edits
    assert (edits.ops == 1).any()
    for row in np.flatnonzero(edits.counts()):
        assert world.displaced(targets, edits, row) == 1


@pytest.mark.parametrize("name", METHODS)
def test_a_unit_without_edges_to_edit_has_no_answer(lightgcn_with: MakeWorld, name: str) -> None:
    world = lightgcn_with([[0, 0, 0], [1, 1, 0]], users=[[1], [1]], items=[[1], [0], [0.1]])
    targets = Targets.of(world.graph, np.array([0]), np.array([[0]]), 1, "item", "user-only")
    answer = explainer(name).counterfactuals(targets, world.context)
    assert answer.edits.counts().tolist() == [0]


@pytest.mark.parametrize("name", METHODS)
def test_the_paper_variant_passes_the_conformance_kit(name: str) -> None:
    report = check_component(f"recsys/explainer/{name}", options=explainer(name, steps=8).config)
    assert report.passed, str(report)
