"""The paper variant of CLEAR: its network is the published one, its counterfactual loss that of the recommender."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.nn import DenseGCNConv

from cfbench_core.errors import UserError
from cfbench_core.testing import check_component
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.clear import CLEAR, Config
from cfbench_explainers_gnn.clear_paper import (
    Nodes,
    PaperOptions,
    counterfactual_loss,
    divergence,
    forward,
    make_network,
    reconstruction,
    unit_graphs,
    with_edges_of,
)
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_recsys.targets import Answer

QUICK = PaperOptions(epochs=12, plain=6, units=8, nodes=10, hidden=5, latent=3, k=2)


def block_of(world: Any, level: str) -> Block:
    targets = world.targets(2, level, "k-hop")
    return Block(targets, possible_edits(targets, world.context), world.context)


def test_the_graph_of_a_unit_has_the_nodes_nearest_to_its_user_and_items(graph_world: Any) -> None:
    world = graph_world("lightgcn", seed=1)
    block, around = block_of(world, "item"), Nodes(world.context)
    everything, few = (next(unit_graphs(block, around, size)) for size in (21, 6))
    user, item = int(block.targets.users[0]), 9 + int(block.targets.items[0, 0])
    assert everything.features[:2].numpy() == pytest.approx(around.vectors[[user, item]], rel=1e-5)
    assert everything.edges.tolist() == list(range(int(block.possible.counts()[0])))
    assert few.adjacency.tolist() == everything.adjacency[:6, :6].tolist()
    direct = (everything.adjacency[0] + everything.adjacency[1]) > 0
    assert direct[:6].all()


def test_the_network_is_that_of_pytorch_geometric_and_the_formulas() -> None:
    torch.manual_seed(0)
    network = make_network(4, QUICK).eval()
    x, u = torch.randn(3, 10, 4), torch.rand(3, 1)
    a = (torch.rand(3, 10, 10) < 0.4).float()
    a = ((a + a.mT + torch.eye(10)) > 0).float()
    made = forward(network, x, a, u)

    convolution = DenseGCNConv(4, 5)
    convolution.lin.weight.data = network["convolution"].weight.data
    convolution.bias.data = network["convolution"].bias.data
    inputs = torch.cat([convolution(x, a).sum(dim=1), u, torch.ones(3, 1)], dim=1)
    mean, log_variance = network["mean"](inputs), torch.sigmoid(network["variance"][:3](inputs))
    assert made["mean"].detach().numpy() == pytest.approx(mean.detach().numpy(), abs=1e-5)
    assert made["log_variance"].detach().numpy() == pytest.approx(log_variance.detach().numpy(), abs=1e-5)
    q = torch.distributions.Normal(mean, torch.exp(log_variance / 2))
    prior = torch.distributions.Normal(made["prior_mean"], torch.exp(made["prior_log_variance"] / 2))
    expected = torch.distributions.kl_divergence(q, prior).mean()
    assert divergence(made).item() == pytest.approx(expected.item(), abs=1e-5)
    apart, entropy = reconstruction(made, x, a)
    distances = [torch.linalg.norm(x[b] - made["features"][b] + 1e-6) for b in range(3)]
    assert apart.item() == pytest.approx(float(sum(d.item() for d in distances)) / 12, rel=1e-4)
    p = made["adjacency"].detach()
    likelihood = (a * torch.log(p) + (1 - a) * torch.log(1 - p)).mean()
    assert entropy.item() == pytest.approx(-likelihood.item(), rel=1e-4)


@pytest.mark.parametrize("level", ["item", "list"])
def test_the_counterfactual_loss_has_the_gradient_of_finite_differences(graph_world: Any, level: str) -> None:
    world = graph_world("lightgcn", seed=1)
    block, around = block_of(world, level), Nodes(world.context)
    graphs = list(unit_graphs(block, around, 8))
    block = with_edges_of(graphs, block)
    draw = np.random.default_rng(0)
    numbers = draw.uniform(0.2, 0.8, (len(graphs), 8, 8))

    def loss(values: np.ndarray) -> float:
        return counterfactual_loss(torch.from_numpy(values), [block], graphs)[0]

    tensor = torch.from_numpy(numbers.copy()).requires_grad_()
    value, through = counterfactual_loss(tensor, [block], graphs)
    (slope,) = torch.autograd.grad(through, tensor)
    direction = draw.normal(size=numbers.shape)
    numeric = (loss(numbers + 1e-5 * direction) - loss(numbers - 1e-5 * direction)) / 2e-5
    assert value > 0
    assert float((slope.numpy() * direction).sum()) == pytest.approx(numeric, rel=1e-3)


def test_training_ends_with_a_lower_loss_and_answers_differ_from_the_other_variant(graph_world: Any) -> None:
    world = graph_world("lightgcn", seed=1)
    options = dataclasses.replace(QUICK, epochs=150, plain=0, learning_rate=0.01)
    explainer = CLEAR(Config(variant="paper", paper=options))
    state = explainer.prepare(world.context)
    losses = state["losses"]
    assert losses[-20:, :2].sum(axis=1).mean() < losses[:20, :2].sum(axis=1).mean()
    targets = world.targets(2, "item", "k-hop")
    where = dataclasses.replace(world.context, state=state)
    edits = Answer.of(explainer.counterfactuals(targets, where)).edits
    other = CLEAR(Config(steps=5))
    where = dataclasses.replace(world.context, state=other.prepare(world.context))
    others = Answer.of(other.counterfactuals(targets, where)).edits
    assert edits.counts().sum() > 0
    assert edits.edge_items.tolist() != others.edge_items.tolist()


def test_options_of_the_other_variant_are_refused() -> None:
    with pytest.raises(UserError, match="beta: is an option of variant: cfbench"):
        Config(variant="paper", beta=0.5)
    with pytest.raises(UserError, match="paper: these are options of variant: paper"):
        Config(paper=QUICK)


def test_it_passes_the_conformance_kit() -> None:
    options = Config(variant="paper", paper=dataclasses.replace(QUICK, epochs=3, plain=1))
    report = check_component("recsys/explainer/clear", options=options)
    assert report.passed, str(report)
