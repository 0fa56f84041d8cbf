"""CLEAR: what it learns, what it uses, and the prefixes that it returns."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.clear import CLEAR, Config, Surroundings, loss_terms, removal_logits
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_recsys.edits import REMOVE
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.scoring import counted
from cfbench_recsys.targets import Answer, Context

MakeWorld = Callable[..., Any]
QUICK = {"steps": 30, "batch": 8, "k": 2}


def trained(world: Any, **options: Any) -> tuple[CLEAR, Context]:
    method = CLEAR(Config(**{**QUICK, **options}))
    return method, dataclasses.replace(world.context, state=method.prepare(world.context))


def network_of(context: Context) -> dict[str, Any]:
    assert context.state is not None
    return {name: torch.from_numpy(array) for name, array in context.state.items() if name != "losses"}


def block_of(world: Any, targets: Any, context: Context) -> Block:
    return Block(targets, possible_edits(targets, context), context)


def by_edge(answer: Answer, row: int) -> set[tuple[int, int]]:
    one = answer.edits.take(row, row + 1)
    return set(zip(one.edge_users.tolist(), one.edge_items.tolist(), strict=True))


@pytest.mark.parametrize("scope", ["indirect", "k-hop", "full"])
def test_it_finds_the_one_edge_of_another_user_that_holds_the_item(
    scope: str, lightgcn_with: MakeWorld
) -> None:
    """Pairs of users like those of the planted case of all methods; it learns from all pairs but the first.

    The first of each pair is recommended the second's other item, before the last item, because the second
    has it.
    """
    pairs = 4
    graph = np.zeros((2 * pairs, 2 * pairs + 1))
    for pair in range(pairs):
        graph[2 * pair, 2 * pair] = graph[2 * pair + 1, 2 * pair] = graph[2 * pair + 1, 2 * pair + 1] = 1
    users = np.zeros((2 * pairs, pairs))
    items = np.zeros((2 * pairs + 1, pairs))
    for pair in range(pairs):
        users[2 * pair + 1, pair] = items[2 * pair, pair] = 1.0
    items[-1] = 0.1
    world = lightgcn_with(graph, users=users, items=items)
    others = sparse.diags(np.r_[0.0, 0.0, np.ones(2 * pairs - 2)]) @ world.graph
    others.eliminate_zeros()
    method = CLEAR(Config(steps=150, batch=8, k=1, slack=0.01, training_scope=scope))
    context = dataclasses.replace(world.context, training=others.tocsr())
    context = dataclasses.replace(context, state=method.prepare(context))
    targets = world.targets(1, "item", scope).take(np.array([0]))
    assert targets.users.tolist() == [0] and targets.items.tolist() == [[1]]
    assert by_edge(method.counterfactuals(targets, context), 0) == {(1, 1)}


def test_gradients_of_the_loss_are_those_of_finite_differences(graph_world: MakeWorld) -> None:
    """To every parameter, through the decoder, z, and the recommender's propagation."""
    world = graph_world("lightgcn", 21, users=5)
    _, context = trained(world, steps=1)
    targets = world.targets(2, "item", "full").take(np.arange(4))
    around, block = Surroundings(context), block_of(world, targets, context)
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((len(block), 4)))

    def loss(network: dict[str, Any]) -> Any:
        hinge, retained, apart = loss_terms(network, block, around, noise, slack=5.0)
        return (hinge + 0.02 * retained + 0.01 * apart).sum()

    network = {name: tensor.clone().requires_grad_() for name, tensor in network_of(context).items()}
    loss(network).backward()
    for name, tensor in network.items():
        assert tensor.grad is not None
        place = int(tensor.grad.abs().argmax())
        moved = []
        for step in (1e-6, -1e-6):
            other = {n: t.detach().clone() for n, t in network.items()}
            other[name].view(-1)[place] += step
            moved.append(float(loss(other)))
        assert float(tensor.grad.abs().max()) > 0, name
        np.testing.assert_allclose(
            (moved[0] - moved[1]) / 2e-6, float(tensor.grad.view(-1)[place]), rtol=1e-4, err_msg=name
        )


def test_without_noise_and_beta_the_divergence_is_that_of_two_normal_distributions(
    graph_world: MakeWorld,
) -> None:
    world = graph_world("lightgcn", 22, users=4)
    _, context = trained(world, steps=1)
    block = block_of(world, world.targets(2, "item", "full"), context)
    network, around = network_of(context), Surroundings(context)
    from cfbench_explainers_gnn.clear import _described, _encode, _linear

    x, auxiliaries = _described(block, around)
    mean, log_variance = _encode(network, block, x, auxiliaries)
    prior_mean, prior_log_variance = _linear(network, "prior", auxiliaries).chunk(2, dim=1)
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(
        normal(mean, torch.exp(log_variance / 2)), normal(prior_mean, torch.exp(prior_log_variance / 2))
    ).sum(dim=1)
    found = loss_terms(network, block, around, torch.zeros(len(block), 4, dtype=torch.float64), 0.1)[2]
    torch.testing.assert_close(found, expected)
    assert (found >= 0).all()


def test_training_lowers_the_loss(recommender: str, graph_world: MakeWorld) -> None:
    world = graph_world(recommender, 23, users=8)
    _, context = trained(world, steps=80)
    assert context.state is not None
    losses = context.state["losses"] @ np.array([1.0, Config().beta, Config().kl])
    assert losses[-20:].mean() < 0.8 * losses[:10].mean()


@pytest.mark.parametrize("level", ["item", "list"])
@pytest.mark.parametrize("scope", ["user-only", "indirect", "k-hop", "full"])
def test_successes_hold_on_the_rebuilt_graph_and_edges_are_in_scope(
    scope: str, level: str, recommender: str, graph_world: MakeWorld
) -> None:
    world = graph_world(recommender, 24, users=6)
    method, context = trained(world, steps=5)
    targets = world.targets(2, level, scope)
    edits = method.counterfactuals(targets, context).edits
    assert len(edits) == len(targets) and (edits.ops == REMOVE).all() and edits.counts().max() > 0
    allowed = edges_in_scope(world.graph, targets)
    pairs = set(zip(allowed.rows.tolist(), allowed.users.tolist(), allowed.items.tolist(), strict=True))
    edges = list(zip(edits.rows.tolist(), edits.edge_users.tolist(), edits.edge_items.tolist(), strict=True))
    assert set(edges) <= pairs and len(set(edges)) == len(edges)
    for row in np.flatnonzero(edits.counts()):
        assert world.displaced(targets, edits, row) > 0


def test_an_answer_is_a_prefix_that_just_succeeds(graph_world: MakeWorld) -> None:
    """One edge less, in the order of the decoder, does not displace the item; model queries are counted."""
    world = graph_world("lightgcn", 25)
    method, context = trained(world, steps=2)  # a poor order, so that answers are long
    targets = world.targets(2, "item", "full")
    model = counted(context.model)
    answer = method.counterfactuals(targets, dataclasses.replace(context, model=model))
    assert answer.details["queries"].sum() == model.queries
    block = block_of(world, targets, context)
    logits = removal_logits(network_of(context), block, Surroundings(context))
    lengths = answer.edits.counts()
    assert lengths.max() > 2
    for row in np.flatnonzero(lengths):
        own = np.flatnonzero(block.possible.rows == row)
        ranked = own[np.lexsort((own, -logits[own]))]
        for length, displaced in ((lengths[row], 1), (lengths[row] - 1, 0)):
            edits = block.possible.where(np.isin(np.arange(len(block.rows)), ranked[:length]))
            assert world.displaced(targets, edits, row) == displaced
        assert answer.details["queries"][row] <= 2 * np.log2(len(block.rows)) + 1


def test_it_gives_up_after_the_longest_prefix(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 26)
    targets = world.targets(2, "item", "full")
    for longest in (1, 3):
        method, context = trained(world, steps=2)
        limited = dataclasses.replace(targets, max_edits=longest)
        assert method.counterfactuals(limited, context).edits.counts().max() == longest


def test_a_unit_has_the_same_answer_in_any_batch(recommender: str, graph_world: MakeWorld) -> None:
    world = graph_world(recommender, 27, users=6)
    method, context = trained(world)
    again = CLEAR(Config(**QUICK)).prepare(world.context)
    assert context.state is not None
    for name, array in context.state.items():
        np.testing.assert_array_equal(array, again[name])
    targets = world.targets(2, "list", "k-hop")
    together = method.counterfactuals(targets, context)
    singly = CLEAR(Config(**QUICK, max_batch_edges=1)).counterfactuals(targets, context)
    for row in range(len(targets)):
        alone = method.counterfactuals(targets.take(np.array([row])), context)
        assert by_edge(together, row) == by_edge(alone, 0) == by_edge(singly, row)


def test_it_learns_from_edges_of_training_users_alone(
    graph_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only edges of training users are removed in training, however large the scope, and only these are examples."""
    world = graph_world("lightgcn", 28)
    some = sparse.diags((np.arange(9) < 4).astype(float)) @ world.graph
    some.eliminate_zeros()
    seen: list[Block] = []
    lesson = CLEAR._lesson

    def watched(self: CLEAR, targets: Any, context: Context) -> Block:
        seen.append(lesson(self, targets, context))
        return seen[-1]

    monkeypatch.setattr(CLEAR, "_lesson", watched)
    CLEAR(Config(**QUICK, training_scope="full")).prepare(
        dataclasses.replace(world.context, training=some.tocsr())
    )
    removed = set(itertools.chain.from_iterable(block.possible.edge_users.tolist() for block in seen))
    explained = set(itertools.chain.from_iterable(block.targets.users.tolist() for block in seen))
    assert removed == explained == {0, 1, 2, 3}
    no_users = dataclasses.replace(world.context, training=sparse.csr_matrix(world.graph.shape))
    with pytest.raises(UserError, match="no users to train on"):
        CLEAR(Config(**QUICK)).prepare(no_users)


def test_a_step_holds_no_more_edges_than_allowed(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 29)
    targets = world.targets(2, "item", "full")
    edges = world.graph.nnz
    for allowed, units in ((edges, 1), (3 * edges, 3), (1, 1)):
        assert len(CLEAR(Config(batch_edges=allowed))._lesson(targets, world.context)) == units


def test_descriptions_are_of_the_edge_and_scale_with_nothing(graph_world: MakeWorld) -> None:
    """Embeddings twice as long, scores four times as large: the network sees the same."""
    world = graph_world("lightgcn", 30)
    louder = dataclasses.replace(world, state={name: 2 * array for name, array in world.state.items()})
    targets = world.targets(2, "item", "k-hop")
    block = block_of(world, targets, world.context)
    once = Surroundings(world.context).describe(targets, block.possible)
    twice = Surroundings(louder.context).describe(targets, block.possible)
    for a, b in zip(once, twice, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert np.abs(once[0][:, :16]).max() <= 1 + 1e-12
