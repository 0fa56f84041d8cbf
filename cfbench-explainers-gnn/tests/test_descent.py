"""What all methods share: success is what a rebuilt graph confirms, edits stay in the scope, batches do not matter.

A method joins by a line in ``METHODS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_explainers_gnn import (
    c2explainer,
    cf2,
    cf_gnnexplainer,
    gradient_greedy,
    one_gradient,
    random_edges,
)
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.possible_edits import AdditionsConfig, possible_edits
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.scoring import counted
from cfbench_recsys.targets import Answer, Context

METHODS: dict[str, tuple[Any, Any]] = {
    "cf-gnnexplainer": (cf_gnnexplainer.CFGNNExplainer, cf_gnnexplainer.Config),
    "cf2": (cf2.CF2, cf2.Config),
    "c2explainer": (c2explainer.C2Explainer, c2explainer.Config),
    "gradient-greedy": (gradient_greedy.GradientGreedy, gradient_greedy.Config),
    "one-gradient": (one_gradient.OneGradient, one_gradient.Config),
    "random-edges": (random_edges.RandomEdges, random_edges.Config),
}
DESCENTS = ("cf-gnnexplainer", "cf2", "c2explainer")
ADDING = ("c2explainer", "gradient-greedy", "one-gradient", "random-edges")
GUIDED = tuple(name for name in METHODS if name != "random-edges")
World = Any
MakeWorld = Callable[..., World]


def explain(method: str, targets: Any, context: Context, **options: Any) -> Answer:
    implementation, config = METHODS[method]
    answer: Answer = implementation(config(**options)).counterfactuals(targets, context)
    return answer


def triples(edits: Edits, row: int) -> list[tuple[int, int, int]]:
    one = edits.take(row, row + 1)
    return sorted(zip(one.edge_users.tolist(), one.edge_items.tolist(), one.ops.tolist(), strict=True))


@pytest.mark.parametrize("scope", ["indirect", "k-hop", "full"])
@pytest.mark.parametrize("method", METHODS)
def test_it_finds_the_one_edge_of_another_user_that_holds_the_item(
    method: str, scope: str, lightgcn_with: MakeWorld
) -> None:
    """User 0 is recommended item 1, before item 2, only because user 1 has it; nothing else helps.

    Without item 0 user 0 has no embedding: all scores are 0, and the lower index wins, whatever else is removed.
    """
    world = lightgcn_with([[1, 0, 0], [1, 1, 0]], users=[[0], [1]], items=[[1], [0], [0.1]])
    targets = world.targets(1, "item", scope).take(np.array([0]))
    assert targets.users.tolist() == [0] and targets.items.tolist() == [[1]]
    edges = triples(explain(method, targets, world.context).edits, 0)
    if method == "random-edges":
        assert not edges or (1, 1, REMOVE) in edges
    else:
        assert edges == [(1, 1, REMOVE)]


SCOPES = ("user-only", "indirect", "k-hop", "full")
PLACES = [("lightgcn", scope, level) for scope in SCOPES for level in ("item", "list")]
PLACES += [(name, "k-hop", "item") for name in ("simgcl", "gformer")]


@pytest.mark.parametrize(("name", "scope", "level"), PLACES)
@pytest.mark.parametrize("method", METHODS)
def test_a_success_is_one_on_the_rebuilt_graph_and_within_its_scope(
    method: str, name: str, scope: str, level: str, graph_world: MakeWorld
) -> None:
    world = graph_world(name, 1, users=6)
    targets = world.targets(2, level, scope)
    edits = explain(method, targets, world.context).edits
    assert len(edits) == len(targets) and (edits.ops == REMOVE).all()
    assert edits.counts().max() > 0
    allowed = edges_in_scope(world.graph, targets)
    pairs = set(zip(allowed.rows.tolist(), allowed.users.tolist(), allowed.items.tolist(), strict=True))
    edges = list(zip(edits.rows.tolist(), edits.edge_users.tolist(), edits.edge_items.tolist(), strict=True))
    assert set(edges) <= pairs and len(set(edges)) == len(edges)
    for row in np.flatnonzero(edits.counts()):
        assert world.displaced(targets, edits, row) > 0


@pytest.mark.parametrize(
    ("name", "scope"), [*(("lightgcn", s) for s in SCOPES), ("simgcl", "k-hop"), ("gformer", "k-hop")]
)
@pytest.mark.parametrize("method", ADDING)
def test_additions_are_edges_that_were_not_there_and_successes_hold(
    method: str, name: str, scope: str, graph_world: MakeWorld
) -> None:
    world = graph_world(name, 2, users=5)
    targets = world.targets(2, "item", scope, additions=True)
    edits = explain(method, targets, world.context).edits
    assert (edits.ops == ADD).any()
    exists = np.asarray(world.graph[edits.edge_users, edits.edge_items] > 0).ravel()
    assert np.array_equal(exists, edits.ops == REMOVE)
    for row in np.flatnonzero(edits.counts()):
        assert world.displaced(targets, edits, row) > 0
    without = explain(method, world.targets(2, "item", scope), world.context).edits
    assert (without.ops == REMOVE).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_unit_has_the_same_answer_alone_and_in_another_order(
    method: str, recommender: str, graph_world: MakeWorld
) -> None:
    world = graph_world(recommender, 3, users=3)
    targets = world.targets(2, "item", "k-hop", additions=True)
    together = explain(method, targets, world.context)
    order = np.random.default_rng(0).permutation(len(targets))
    shuffled = explain(method, targets.take(order), world.context)
    singly = explain(method, targets, world.context, max_batch_edges=1)
    for place, row in enumerate(order):
        expected = triples(together.edits, row)
        assert triples(shuffled.edits, place) == expected
        assert triples(singly.edits, row) == expected
        assert shuffled.details["queries"][place] == together.details["queries"][row]


@pytest.mark.parametrize("method", GUIDED)
def test_where_one_edge_suffices_one_edge_is_mostly_the_answer(
    method: str, recommender: str, graph_world: MakeWorld
) -> None:
    """Planted by brute force: the units of which some single edge, removed, drops the item."""
    found, planted = 0, 0
    for seed in range(3):
        world = graph_world(recommender, 20 + seed, users=7)
        targets = world.targets(2, "item", "full")
        edits = explain(method, targets, world.context).edits
        sizes = edits.counts()
        for row in range(len(targets)):
            if single_edges_that_suffice(world, targets, row):
                planted += 1
                found += bool(sizes[row] == 1)
    assert planted > 10
    assert found / planted > 0.85


def single_edges_that_suffice(world: World, targets: Any, row: int) -> int:
    users, items = world.graph.nonzero()
    one = np.full(len(users), targets.users[row])
    ops = np.full(len(users), REMOVE, dtype=np.int8)
    singles = Edits(one, np.arange(len(users)), users.astype(np.int64), items.astype(np.int64), ops)
    block = Block(targets, Edits.nothing(targets.users), world.context)
    return int((block.displaced(singles, np.full(len(users), row)) > 0).sum())


@pytest.mark.parametrize("method", METHODS)
def test_the_reported_queries_are_those_that_the_model_counts(method: str, graph_world: MakeWorld) -> None:
    """A unit alone causes no queries for others. The first scores for candidate additions are not counted."""
    world = graph_world("lightgcn", 4)
    targets = world.targets(2, "item", "full")
    for row in range(4):
        model = counted(world.context.model)
        context = Context(model, world.graph, world.graph, world.context.generator)
        answer = explain(method, targets.take(slice(row, row + 1)), context)
        assert answer.details["queries"].tolist() == [model.queries]


@pytest.mark.parametrize("method", DESCENTS)
def test_restarts_never_make_an_answer_worse(method: str, graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 5)
    targets = world.targets(3, "list", "k-hop")
    once, thrice = (explain(method, targets, world.context, restarts=count).edits for count in (1, 3))
    for row in range(len(targets)):
        gain = [world.displaced(targets, edits, row) for edits in (once, thrice)]
        assert gain[1] > gain[0] or (gain[1] == gain[0] and thrice.counts()[row] <= once.counts()[row])


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), scope=st.sampled_from(["user-only", "indirect", "k-hop", "full"]))
@pytest.mark.parametrize("name", ["lightgcn", "simgcl", "gformer"])
def test_edits_wholly_made_are_the_graph_rebuilt_and_none_made_the_graph_itself(
    name: str, seed: int, scope: str, graph_world: MakeWorld
) -> None:
    """For all units of a block at once, removals and additions; margins the literal way."""
    world = graph_world(name, seed, users=5, items=7)
    targets = world.targets(2, "item", scope, additions=True)
    few = AdditionsConfig(own=3, rivals=2, neighbours=2)
    block = Block(targets, possible_edits(targets, world.context, few), world.context)
    made = np.random.default_rng(seed).random(len(block.rows)) < 0.5
    edits = block.possible.where(made)
    scores = block.scores(torch.from_numpy(made.astype(float))).numpy()
    margins = block.margins(torch.from_numpy(made.astype(float))).numpy()
    plain = block.scores(torch.zeros(len(made), dtype=torch.float64)).numpy()
    whole = world.context.model.score_edits(Edits.nothing(targets.users))
    np.testing.assert_allclose(plain, whole, rtol=1e-9, atol=1e-10)
    for row in range(len(targets)):
        expected = world.model_of(world.rebuilt(edits, row)).score_edits(Edits.nothing(targets.users[[row]]))
        np.testing.assert_allclose(scores[row], expected[0], rtol=1e-9, atol=1e-10)
        item = targets.items[row, 0]
        others = sorted(
            (s for j, s in enumerate(expected[0]) if j != item and not world.graph[targets.users[row], j]),
            reverse=True,
        )
        if len(others) >= 2:
            np.testing.assert_allclose(margins[row, 0], expected[0, item] - others[1], atol=1e-9)


def test_an_item_that_ties_with_the_next_is_not_its_own_rival(lightgcn_with: MakeWorld) -> None:
    """Items 1 and 2 have the same score; only user 1's edge with item 1 distinguishes them, once its weight changes."""
    world = lightgcn_with([[1, 0, 0], [1, 1, 1]], users=[[0], [1]], items=[[1], [0], [0]])
    targets = world.targets(1, "item", "full").take(np.array([0]))
    assert targets.items.tolist() == [[1]]
    block = Block(targets, possible_edits(targets, world.context), world.context)
    made = torch.zeros(len(block.rows), dtype=torch.float64, requires_grad=True)
    margins = block.margins(made)
    assert margins.tolist() == [[0.0]]
    (slope,) = torch.autograd.grad(margins.sum(), made)
    edge = block.possible.edge_items.tolist().index(1)
    assert slope[edge] < -0.01
    for method in GUIDED:
        assert triples(explain(method, targets, world.context).edits, 0) == [(1, 1, REMOVE)]


def test_half_made_edits_have_the_gradient_of_finite_differences(
    recommender: str, graph_world: MakeWorld
) -> None:
    """Degrees follow the mask, and so does the gradient."""
    world = graph_world(recommender, 6, users=4, items=6)
    targets = world.targets(2, "item", "full").take(slice(0, 2))
    block = Block(targets, possible_edits(targets, world.context), world.context)
    made = torch.linspace(0.1, 0.9, len(block.rows), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda m: block.margins(m).sum(dim=1), (made,), atol=1e-6)


def test_a_list_with_empty_places_is_explained(graph_world: MakeWorld) -> None:
    """-1 stands where a user has fewer candidates than the list has places."""
    world = graph_world("lightgcn", 7)
    targets = world.targets(3, "list", "full")
    items = targets.items.copy()
    items[:, 2] = -1
    shorter = type(targets)(targets.users, items, 3, "list", targets.history, targets.padding, targets.scope)
    for method in METHODS:
        edits = explain(method, shorter, world.context).edits
        assert len(edits) == len(targets) and edits.counts().max() > 0


@pytest.mark.parametrize("level", [pytest.param("item", marks=pytest.mark.slow), "list"])
@pytest.mark.parametrize("method", METHODS)
def test_prefixes_that_are_scored_together_find_what_one_after_the_other_finds(
    method: str, level: str, graph_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = graph_world("lightgcn", 7, users=8, items=10)
    options: dict[str, Any] = {"prefixes": True, "restarts": 2} if method in DESCENTS else {}
    targets = world.targets(3, level, "k-hop")
    for row in range(len(targets)):
        one = targets.take(slice(row, row + 1))
        alone = explain(method, one, world.context, **options)
        with monkeypatch.context() as patch:
            patch.setattr("cfbench_explainers_gnn.descent.MANY_EDGES", 0)
            together = explain(method, one, world.context, **options)
        assert triples(alone.edits, 0) == triples(together.edits, 0)
        assert together.details["queries"][0] >= alone.details["queries"][0]


@pytest.mark.parametrize("module", [cf2, cf_gnnexplainer, c2explainer])
def test_noise_of_restarts_that_do_not_take_place_is_refused(module: Any) -> None:
    with pytest.raises(UserError, match="restart_noise: has no effect with restarts: 1"):
        module.Config(restart_noise=1.0)
    assert module.Config(restart_noise=1.0, restarts=2).restarts == 2
