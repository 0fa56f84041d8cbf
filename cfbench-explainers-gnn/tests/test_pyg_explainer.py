"""The explainer pyg: answers are verified, units do not influence each other, and Saliency is one exact gradient."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cfbench_core.api import plan
from cfbench_core.errors import UserError
from cfbench_core.testing import check_component
from cfbench_explainers_gnn import pyg_masks
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_explainers_gnn.pyg_explainer import Config, PyGExplainer
from cfbench_explainers_gnn.pyg_recommender import Config as RecommenderConfig
from cfbench_explainers_gnn.pyg_recommender import PyG
from cfbench_recsys.edits import Edits
from cfbench_recsys.recommenders import lightgcn
from cfbench_recsys.targets import Context
from cfbench_recsys.testing import world as kit

sys.path.append(str(Path(__file__).parent))  # where the modules are that factory names

MakeWorld = Callable[..., Any]


def answered(config: Config, targets: Any, context: Context) -> Edits:
    explainer = PyGExplainer(config)
    state = explainer.prepare(context)
    given = Context(context.model, context.interactions, context.training, context.generator, state)
    return explainer.counterfactuals(targets, given).edits


@pytest.mark.parametrize(
    "config",
    [
        Config(epochs=20, learning_rate=0.1),
        Config(algorithm="pgexplainer", epochs=2, training_users=4),
        Config(algorithm="captum"),
        Config(algorithm="captum", attribution="Saliency"),
    ],
)
@pytest.mark.parametrize("level", ["item", "list"])
def test_answers_are_counterfactuals_of_the_model_that_is_built_on_the_edited_graph(
    config: Config, level: str, graph_world: MakeWorld
) -> None:
    if config.algorithm == "captum":
        pytest.importorskip("captum", reason="needs cfbench-explainers-gnn[captum]")
    world = graph_world("lightgcn", 31, users=8, items=9)
    targets = world.targets(2, level, "indirect")
    edits = answered(config, targets, world.context)
    counts = edits.counts()
    assert (counts > 0).mean() >= 0.4
    for row in np.flatnonzero(counts):
        assert world.displaced(targets, edits, int(row)) > 0


def block_of(world: Any, count: int) -> Block:
    targets = world.targets(2, "item", "indirect").take(slice(0, count))
    return Block(targets, possible_edits(targets, world.context), world.context)


def test_gnnexplainer_explains_units_together_as_alone(graph_world: MakeWorld) -> None:
    world = graph_world("simgcl", 32)
    block = block_of(world, 5)
    coefficients = {"edge_size": 0.005, "edge_ent": 1.0}
    together = pyg_masks.gnn_explainer(block, 30, 0.05, coefficients)
    for unit in range(len(block)):
        alone = pyg_masks.gnn_explainer(block.take(np.array([unit])), 30, 0.05, coefficients)
        np.testing.assert_allclose(together[block.possible.rows == unit], alone, rtol=1e-7)


def test_gnnexplainer_minimises_the_objective_of_pytorch_geometric(graph_world: MakeWorld) -> None:
    """One unit, one Adam step after another, with the loss that PyTorch Geometric computes for one graph."""
    from torch_geometric.explain import GNNExplainer

    world = graph_world("lightgcn", 33)
    block = block_of(world, 1)
    original = GNNExplainer(epochs=1)
    original.connect(
        pyg_masks_config(), {"mode": "binary_classification", "task_level": "graph", "return_type": "raw"}
    )
    ours = pyg_masks._gnn_explainer()(block, 1, 0.01, {})
    mask = torch.linspace(-1, 1, len(block.rows), dtype=torch.float64).requires_grad_()
    hard = torch.arange(len(block.rows)) % 4 > 0
    for algorithm in (original, ours):
        algorithm.edge_mask, algorithm.hard_edge_mask, algorithm.hard_node_mask = mask, hard, None
    margin = block.relative_margins(block.margins(1 - mask.sigmoid()))
    expected = original._loss(margin, torch.ones(1, 1))
    assert float(ours._loss(margin, None)) == pytest.approx(float(expected), rel=1e-9)


def pyg_masks_config() -> Any:
    from torch_geometric.explain import ExplainerConfig

    return ExplainerConfig(explanation_type="model", edge_mask_type="object")


def test_saliency_is_the_exact_gradient(graph_world: MakeWorld) -> None:
    pytest.importorskip("captum", reason="needs cfbench-explainers-gnn[captum]")
    world = graph_world("lightgcn", 34)
    block = block_of(world, 4)
    found = pyg_masks.captum_explainer(block, "Saliency")
    made = torch.zeros(len(block.rows), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(block.relative_margins(block.margins(made)).sum(), made)
    np.testing.assert_allclose(found, -slope.numpy(), rtol=1e-5, atol=1e-7)


def test_integrated_gradients_add_up_to_the_change_of_the_margin(graph_world: MakeWorld) -> None:
    pytest.importorskip("captum", reason="needs cfbench-explainers-gnn[captum]")
    world = graph_world("lightgcn", 35)
    block = block_of(world, 1)
    found = pyg_masks.captum_explainer(block, "IntegratedGradients")
    ends = [
        block.margins(torch.full((len(block.rows),), value, dtype=torch.float64))
        for value in (0.0, 1.0 - 1e-6)
    ]
    change = float((ends[0] - ends[1]) / ends[0].abs())
    assert found.sum() == pytest.approx(change, rel=0.3)  # 50 steps, and the path ends where degrees are 0


def test_attention_is_that_of_the_layer(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 36, users=8, items=9)
    model = PyG(RecommenderConfig(factory="pyg_example_modules:Attention"))
    torch.manual_seed(0)
    created = model._created(world.graph.shape)
    state = {
        name.removeprefix("module."): value.numpy() for name, value in created.wrapper.state_dict().items()
    }
    model.load_state(state, world.graph)
    context = Context(model, world.graph, world.graph, world.context.generator)
    module, edge_index, _ = model.explained_module()
    layer, table = module.module.layer, module.module.table.weight
    with torch.no_grad():
        _, (looped, alpha) = layer(table, edge_index, return_attention_weights=True)
    both = {(int(a), int(b)): float(value) for (a, b), value in zip(looped.T, alpha[:, 0], strict=True)}
    targets = world.targets(2, "item", "full").take(slice(0, 3))
    block = Block(targets, possible_edits(targets, context), context)
    from cfbench_explainers_gnn.pyg_explainer import _attention

    expected = [
        max(both[u, 8 + i], both[8 + i, u])
        for u, i in zip(block.possible.edge_users.tolist(), block.possible.edge_items.tolist(), strict=True)
    ]
    np.testing.assert_allclose(_attention(block), expected, rtol=1e-6)
    edits = answered(Config(algorithm="attention"), targets, context)
    assert len(edits) == 3


def test_the_plan_leaves_attention_out_where_there_is_no_module() -> None:
    study = {
        "suite": "recsys", "data": "debian-python", "recommenders": ["lightgcn", "pyg"],
        "explainers": [{"name": "pyg", "algorithm": "attention"}], "protocol": {"level": "item", "format": "explicit"},
    }  # fmt: skip
    skipped = {cell.id.split("/")[1]: cell.skipped for cell in plan(study).cells}
    assert skipped == {"lightgcn": "needs access module, which lightgcn does not offer", "pyg": ""}


def test_attention_without_layers_that_have_it_is_one_clear_line(graph_world: MakeWorld) -> None:
    world = graph_world("lightgcn", 37)
    targets = world.targets(2, "item", "user-only").take(slice(0, 2))
    with pytest.raises(UserError, match="explains the recommender pyg only"):
        answered(Config(algorithm="attention"), targets, world.context)
    model = PyG(RecommenderConfig(options={"embedding_dim": 4}))
    model.load_state(
        {k: v.numpy() for k, v in model._created(world.graph.shape).module.state_dict().items()}, world.graph
    )
    context = Context(model, world.graph, world.graph, world.context.generator)
    with pytest.raises(UserError, match="no layer has attention"):
        answered(Config(algorithm="attention"), targets, context)


@pytest.mark.parametrize("name", ["AttentionToSortedEdges", "AttentionToUsers"])
def test_attention_to_edges_in_another_order_is_not_taken_for_that_to_the_edges_of_the_graph(
    name: str, graph_world: MakeWorld
) -> None:
    """PyTorch Geometric goes by their places: interactions would have the attention of others."""
    world = graph_world("lightgcn", 38, users=8, items=9)
    model = PyG(RecommenderConfig(factory=f"pyg_example_modules:{name}"))
    created = model._created(world.graph.shape).module.state_dict()
    model.load_state({key: value.numpy() for key, value in created.items()}, world.graph)
    context = Context(model, world.graph, world.graph, world.context.generator)
    targets = world.targets(2, "item", "user-only").take(slice(0, 2))
    with pytest.raises(
        UserError, match=f"{name}: its layer GATConv gets other edges .*, or in another order"
    ):
        answered(Config(algorithm="attention"), targets, context)


def test_pgexplainer_learns_from_no_edge_of_an_explained_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges are recorded where they are weighted, in the queries with gradients that the training makes."""
    split = kit.split(60)
    model = lightgcn.LightGCN(lightgcn.Config(dimensions=8, epochs=3))
    model.fit(split, kit.streams)
    weighted: list[np.ndarray] = []
    original = model.score_weighted

    def recorded(users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        weighted.append(edge_users.numpy())
        return original(users, rows, edge_users, edge_items, delta)

    monkeypatch.setattr(model, "score_weighted", recorded)
    context = Context(model, split.profiles, kit.training_part(split.profiles), kit.streams)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", UserWarning
        )  # PyTorch Geometric's own would stand among the lines of a run
        PyGExplainer(Config(algorithm="pgexplainer", epochs=1)).prepare(context)
    edge_users = np.concatenate(weighted)
    assert len(edge_users) and not np.isin(edge_users, kit.EXPLAINED).any()


def trained_lists(config: Config, world: Any, explained: list[int], monkeypatch: pytest.MonkeyPatch) -> Any:
    """(user, item, k) that PGExplainer is trained on, where ``explained`` are the users who are explained."""
    training = world.graph.tolil()
    training[explained] = 0
    training = training.tocsr()
    context = Context(world.context.model, world.graph, training, world.context.generator)
    given: list[Any] = []
    original = pyg_masks.trained_pg_explainer

    def recorded(blocks: list[Block], *rest: Any) -> dict[str, np.ndarray]:
        given.extend(blocks)
        return original(blocks, *rest)

    monkeypatch.setattr(pyg_masks, "trained_pg_explainer", recorded)
    state = PyGExplainer(config).prepare(context)
    assert all(np.isfinite(array).all() for array in state.values())
    return [(int(b.targets.users[0]), int(b.targets.items[0, 0]), b.targets.k) for b in given]


def test_pgexplainer_is_trained_on_the_best_item_out_of_the_top_k(
    graph_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With k = 4, and users of whom some have no more than 4 candidates: there on the longest list that can change."""
    world = graph_world("lightgcn", 38, users=12, items=8, density=0.5)
    found = trained_lists(Config(algorithm="pgexplainer", epochs=1, k=4), world, [0, 1], monkeypatch)
    scores = world.context.model.score_edits(Edits.nothing(np.arange(12)))
    assert len({k for _, _, k in found}) > 1 and not {0, 1} & {user for user, _, _ in found}
    for user, item, k in found:
        unseen = np.flatnonzero(world.graph[user].toarray()[0] == 0)
        assert item == unseen[scores[user, unseen].argmax()]
        assert k == min(4, len(unseen) - 1)


@pytest.mark.parametrize(
    ("rows", "explained", "reason"),
    [
        ([[1, 1, 0], [1, 0, 1]], [0, 1], "all users with interactions are explained"),
        ([[1, 1, 0], [1, 0, 1], [1, 0, 0]], [0], "each of the 2 others has only one interaction, or fewer than two"),
        ([[1, 1, 0, 0], [0, 0, 1, 1]], [0], "no edge of the others is in scope indirect"),
    ],
)  # fmt: skip
def test_pgexplainer_says_why_it_has_nothing_to_learn_from(
    rows: list[list[int]], explained: list[int], reason: str, lightgcn_with: MakeWorld,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    world = lightgcn_with(rows, users=[[1.0]] * len(rows), items=[[1.0]] * len(rows[0]))
    with pytest.raises(UserError, match=reason):
        trained_lists(Config(algorithm="pgexplainer", epochs=1), world, explained, monkeypatch)


OPTIONS: dict[str, Any] = {
    "epochs": 2, "learning_rate": 0.1, "edge_size": 1.0, "edge_ent": 0.5, "attribution": "Saliency",
    "training_users": 3, "k": 2,
}  # fmt: skip
TAKEN = {
    "gnnexplainer": {"epochs", "learning_rate", "edge_size", "edge_ent"},
    "pgexplainer": {"epochs", "learning_rate", "training_users", "k"},
    "captum": {"attribution"},
    "attention": set(),
}


@pytest.mark.parametrize("algorithm", TAKEN)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_has_no_effect_on_the_algorithm_is_refused(algorithm: Any, option: str) -> None:
    study = {
        "suite": "recsys", "data": "debian-python", "recommenders": ["pyg"],
        "explainers": [{"name": "pyg", "algorithm": algorithm, option: OPTIONS[option]}],
        "protocol": {"level": "item", "format": "explicit"},
    }  # fmt: skip
    if option in TAKEN[algorithm]:
        plan(study)
        return
    with pytest.raises(UserError, match=rf"explainers.*{option}: is an option of algorithm") as raised:
        plan(study)
    assert str(raised.value).endswith(f"and the algorithm is {algorithm}")
    assert "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        Config(algorithm="pgexplainer", epochs=1, training_users=3),
        Config(algorithm="captum", attribution="Saliency"),
    ],
)
def test_the_other_algorithms_pass_the_conformance_kit(config: Config) -> None:
    """The default one is checked with all explainers of this distribution."""
    if config.algorithm == "captum":
        pytest.importorskip("captum", reason="needs cfbench-explainers-gnn[captum]")
    report = check_component("recsys/explainer/pyg", options=config)
    assert report.passed, str(report)
