"""The paper variant of GREASE: its surrogate is the network on dense matrices and, with dropout, that of automatic
differentiation over lists of edges; its descent is the published one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import check_component
from cfbench_explainers_native.grease import Config, Grease
from cfbench_explainers_native.grease_paper import embeddings, masks
from cfbench_explainers_native.grease_surrogate import FIT_SHARE, PaperOptions, Slopes, Subgraph, Surrogate
from cfbench_recsys.edits import Edits
from cfbench_recsys.ranking import ranks_of, top_k
from cfbench_recsys.recommenders.lightgcn import Config as LightGCNConfig
from cfbench_recsys.recommenders.lightgcn import LightGCN
from cfbench_recsys.targets import Answer, Context, Targets

QUICK = PaperOptions(
    hidden=24, dropout=0.2, surrogate_steps=80, surrogate_learning_rate=0.02, learning_rate=0.5
)


def world(seed: int = 0, users: int = 8, items: int = 11) -> tuple[Context, dict[str, np.ndarray]]:
    draw = np.random.default_rng(seed)
    dense = draw.random((users, items)) < 0.35
    dense[:, 0] = True
    graph = sparse.csr_matrix(dense.astype(float))
    state = {
        "user_embedding.weight": draw.normal(size=(users, 4)).astype(np.float32),
        "item_embedding.weight": draw.normal(size=(items, 4)).astype(np.float32),
    }
    return Context(model_on(graph, state), graph, graph, lambda *names: generator("test", *names)), state


def model_on(graph: sparse.csr_matrix, state: dict[str, np.ndarray]) -> LightGCN:
    model = LightGCN(LightGCNConfig(dimensions=4, layers=2, device="cpu"))
    model.load_state(state, graph)
    return model


def targets_of(context: Context, level: Any, k: int = 2) -> Targets:
    graph = context.interactions
    users = np.arange(graph.shape[0])
    blank = Targets.of(graph, users, np.zeros((len(users), 1), dtype=np.int64), k, "item", "full")
    scores = context.graph_model.score_edits(Edits.nothing(users))
    lists = top_k(scores, blank.history, blank.padding, k)
    if level == "item":
        users, lists = np.repeat(users, k), lists.reshape(-1, 1)
    return Targets.of(graph, users, lists, k, level, "k-hop", hops=2)


def explained(targets: Targets, context: Context, options: PaperOptions) -> Edits:
    return Answer.of(Grease(Config(variant="paper", paper=options)).counterfactuals(targets, context)).edits


def score_and_slope(surrogate: Surrogate, weights: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Of all edges: those that the search leaves out have no gradient."""
    slopes, whole = Slopes(surrogate, weights), torch.zeros(len(weights))
    score, found = slopes.score_and_slopes(weights[slopes.edges])
    whole[slopes.edges] = found
    return score.item(), whole


class Literal:
    """The surrogate as the formula says, over lists of edges, differentiated automatically."""

    def __init__(self, subgraph: Subgraph, options: PaperOptions, stream: np.random.Generator) -> None:
        self.subgraph, self.options, self.stream = subgraph, options, stream
        self.draws = torch.Generator().manual_seed(int(stream.integers(2**62)))
        self.left, self.right = torch.from_numpy(subgraph.ends)
        width = subgraph.features.shape[1]
        self.parameters = []
        for shape in ((width, options.hidden), (options.hidden,), (options.hidden, width), (width,)):
            bound = 1 / shape[-1] ** 0.5
            drawn = torch.rand(shape, generator=self.draws) * 2 * bound - bound
            self.parameters.append(drawn.requires_grad_())

    def propagate(self, values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        fixed = weights.detach()
        degrees = torch.ones(self.subgraph.size).index_add_(0, self.left, fixed)
        degrees.index_add_(0, self.right, fixed)
        scaled = values * degrees.rsqrt()[:, None]
        summed = scaled.index_add(0, self.left, weights[:, None] * scaled[self.right])
        summed = summed.index_add(0, self.right, weights[:, None] * scaled[self.left])
        return summed * degrees.rsqrt()[:, None]

    def outputs(self, weights: torch.Tensor) -> torch.Tensor:
        weight1, bias1, weight2, bias2 = self.parameters
        hidden = torch.relu(self.propagate(self.subgraph.features, weights) @ weight1 + bias1)
        chance = torch.rand(hidden.shape, generator=self.draws)
        hidden = hidden * (chance >= self.options.dropout) / (1 - self.options.dropout)
        return self.propagate(hidden @ weight2, weights) + bias2

    def fit(self) -> None:
        options, subgraph = self.options, self.subgraph
        count = max(1, int(FIT_SHARE * subgraph.size))
        nodes = torch.from_numpy(self.stream.choice(subgraph.size, count, replace=False))
        optimizer = torch.optim.Adam(
            self.parameters, lr=options.surrogate_learning_rate, weight_decay=options.weight_decay
        )
        for _ in range(options.surrogate_steps):
            optimizer.zero_grad()
            outputs = self.outputs(torch.ones(len(subgraph.edges)))
            (outputs[nodes] - subgraph.labels[nodes]).square().mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def score(self, weights: torch.Tensor) -> torch.Tensor:
        outputs = self.outputs(weights)
        return (outputs[self.subgraph.items] @ outputs[self.subgraph.user]).sum()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), level=st.sampled_from(["item", "list"]))
def test_with_dropout_it_is_the_literal_network_with_the_same_draws(seed: int, level: str) -> None:
    context, _ = world(seed, users=5 + seed % 9, items=4 + seed % 7)
    targets = targets_of(context, level)
    unit = targets.take(slice(seed % len(targets), seed % len(targets) + 1))
    subgraph = Subgraph(unit, context, *embeddings(context))
    options = PaperOptions(hidden=20, dropout=0.5, surrogate_steps=15, surrogate_learning_rate=0.02)
    mine, literal = (kind(subgraph, options, np.random.default_rng(seed)) for kind in (Surrogate, Literal))
    mine.fit()
    literal.fit()
    for own, other in zip(mine.parameters, literal.parameters, strict=True):
        assert own.numpy() == pytest.approx(other.detach().numpy(), rel=1e-3, abs=1e-4)
    mine.parameters = [parameter.detach() for parameter in literal.parameters]  # rounding apart
    weights = torch.from_numpy(np.random.default_rng(seed).random(len(subgraph.edges)).astype(np.float32))
    weights = weights.requires_grad_()
    score = literal.score(weights)
    (expected,) = torch.autograd.grad(score, weights)
    own_score, slope = score_and_slope(mine, weights.detach())
    assert own_score == pytest.approx(score.item(), rel=1e-4, abs=1e-5)
    assert slope.numpy() == pytest.approx(expected.numpy(), rel=1e-3, abs=1e-5)
    assert literal.draws.get_state().equal(mine.draws.get_state())


def test_the_surrogate_and_its_gradient_are_those_of_dense_matrices() -> None:
    context, state = world()
    unit = targets_of(context, "list").take(slice(3, 4))
    subgraph = Subgraph(unit, context, *embeddings(context))
    surrogate = Surrogate(subgraph, dataclasses.replace(QUICK, dropout=0.0), np.random.default_rng(1))
    surrogate.fit()
    p = torch.linspace(-2, 2, len(subgraph.edges))
    own_score, slope = score_and_slope(surrogate, torch.sigmoid(p))

    users, items = (np.unique(side) for side in subgraph.edges.T)
    items = np.union1d(items, unit.items[0])
    dense = torch.zeros(len(users) + len(items), len(users) + len(items))
    q = torch.sigmoid(p).requires_grad_()
    for number, (user, item) in enumerate(subgraph.edges.tolist()):
        ends = int(np.flatnonzero(users == user)[0]), len(users) + int(np.flatnonzero(items == item)[0])
        one = torch.zeros_like(dense)
        one[ends] = one[ends[::-1]] = 1.0
        dense = dense + one * q[number]
    dense = dense + torch.eye(len(dense))
    roots = torch.diag(dense.sum(dim=1).detach() ** -0.5)
    adjacency = roots @ dense @ roots
    x = torch.from_numpy(
        np.concatenate([state["user_embedding.weight"][users], state["item_embedding.weight"][items]])
    )
    w1, b1, w2, b2 = surrogate.parameters
    out = adjacency @ (torch.relu(adjacency @ (x @ w1) + b1) @ w2) + b2
    user = out[int(np.flatnonzero(users == unit.users[0])[0])]
    score = sum(out[len(users) + int(np.flatnonzero(items == item)[0])] @ user for item in unit.items[0])
    (expected,) = torch.autograd.grad(score, q)  # type: ignore[arg-type]
    assert own_score == pytest.approx(score.item(), rel=1e-4)  # type: ignore[union-attr]
    assert slope.numpy() == pytest.approx(expected.numpy(), rel=1e-3, abs=1e-5)


def test_fitting_makes_the_surrogate_resemble_the_embeddings() -> None:
    context, _ = world(1)
    unit = targets_of(context, "item").take(slice(0, 1))
    errors = []
    for steps in (1, 400):
        subgraph = Subgraph(unit, context, *embeddings(context))
        options = dataclasses.replace(QUICK, dropout=0.0, surrogate_steps=steps)
        errors.append(Surrogate(subgraph, options, np.random.default_rng(1)).fit())
    assert errors[1] < 0.5 * errors[0]


def test_gradients_add_up_and_are_clipped_as_in_a_literal_loop() -> None:
    costs = np.array([30.0, 0.2, -1.0, 0.05], dtype=np.float32)
    options = PaperOptions(steps=60, learning_rate=0.1, clip=3.0)
    found = list(masks(lambda weights: torch.from_numpy(costs), len(costs), options))
    p, gradient = np.ones(4), np.zeros(4)
    for removed in found:
        weight = 1 / (1 + np.exp(-p))
        gradient = gradient + costs * weight * (1 - weight)
        gradient *= min(1.0, 3.0 / np.linalg.norm(gradient))
        assert removed.tolist() == (weight < 0.5).tolist()
        p = p - 0.1 * gradient
    assert found[-1].tolist() == [True, True, False, False]


@pytest.mark.parametrize("level", ["item", "list"])
def test_answers_displace_their_items_on_a_rebuilt_graph(level: str) -> None:
    context, state = world(2)
    targets = targets_of(context, level)
    edits = explained(targets, context, QUICK)
    assert (edits.counts() > 0).mean() > 0.3
    for unit in np.flatnonzero(edits.counts()):
        one, own = targets.take(slice(unit, unit + 1)), edits.take(unit, unit + 1)
        graph = context.interactions.tolil()
        graph[own.edge_users, own.edge_items] = 0
        rebuilt = graph.tocsr()
        rebuilt.eliminate_zeros()
        scores = model_on(rebuilt, state).score_edits(Edits.nothing(one.users))
        outside = ranks_of(scores, one.items, one.history, one.padding) > one.k
        assert outside.all() if level == "item" else outside.any()


@pytest.mark.slow
def test_a_search_that_the_budget_ends_early_answers_as_one_that_goes_on() -> None:
    """The answers of an unlimited search that fit into the budget, and none in place of the others."""
    context, _ = world(2)
    targets = targets_of(context, "item")
    whole = explained(targets, context, QUICK)
    sizes = whole.counts()
    assert sizes.max() > 2
    limited = explained(dataclasses.replace(targets, max_edits=2), context, QUICK)
    expected = whole.where((sizes <= 2)[whole.rows])
    for name in ("rows", "edge_users", "edge_items"):
        assert getattr(limited, name).tolist() == getattr(expected, name).tolist()


def test_it_differs_from_the_other_variant_and_refuses_its_options() -> None:
    context, _ = world(2)
    targets = targets_of(context, "item")
    paper = explained(targets, context, QUICK)
    other = Answer.of(Grease(Config()).counterfactuals(targets, context)).edits
    assert (
        paper.rows.tolist() != other.rows.tolist() or paper.edge_items.tolist() != other.edge_items.tolist()
    )
    with pytest.raises(UserError, match="ridge: is an option of variant: cfbench"):
        Config(variant="paper", ridge=2.0)
    with pytest.raises(UserError, match="paper: these are options of variant: paper"):
        Config(paper=QUICK)


@pytest.mark.slow
def test_it_passes_the_conformance_kit() -> None:
    options = Config(variant="paper", paper=dataclasses.replace(QUICK, surrogate_steps=10, steps=10))
    report = check_component("recsys/explainer/grease", options=options)
    assert report.passed, str(report)
