"""The recommender pyg against cfbench's own LightGCN, and against the same module on the edited graph."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.nn.models import LightGCN

from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.testing import check_component
from cfbench_explainers_gnn import pyg_recommender
from cfbench_explainers_gnn.pyg_recommender import Config, PyG
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.links import link_of
from cfbench_recsys.recommenders import lightgcn
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.testing import world as kit

USERS_COUNT, ITEMS_COUNT, DIMENSIONS = 9, 12, 5
NODES = USERS_COUNT + ITEMS_COUNT


sys.path.append(str(Path(__file__).parent))  # where the modules are that factory names


def own(name: str) -> str:
    return f"pyg_example_modules:{name}"


def graph_of(seed: int) -> sparse.csr_matrix:
    draw = np.random.default_rng(seed)
    graph = draw.random((USERS_COUNT, ITEMS_COUNT)) < 0.35
    graph[np.arange(USERS_COUNT), np.arange(USERS_COUNT)] = True
    return sparse.csr_matrix(graph.astype(float))


LIGHT = {"embedding_dim": DIMENSIONS, "num_layers": 3}
MODULES = {
    "light": Config(options={"embedding_dim": DIMENSIONS}),
    "union": Config(factory=own("UnionLightGCN"), options=LIGHT),
    "two tables": Config(factory=own("TwoTables")),
    "gcn": Config(
        factory="torch_geometric.nn.models:GCN",
        options={"hidden_channels": 6, "num_layers": 2, "out_channels": 4},
        features=DIMENSIONS,
    ),
    "gat": Config(
        factory="torch_geometric.nn.models:GAT",
        options={"hidden_channels": 6, "num_layers": 2, "out_channels": 4},
        features=DIMENSIONS,
    ),
    "matrix of items": Config(factory=own("MatrixOfItems"), options={"width": ITEMS_COUNT}),
    "gate of nodes": Config(factory=own("TwoOfNodes"), options={"width": NODES}),
    "offset of users": Config(factory=own("OffsetOfUsers")),
    "whole graph": Config(factory=own("WholeGraph"), options=LIGHT),
}
ONE_BY_ONE = ["offset of users", "whole graph"]
WEIGHTED = [name for name in MODULES if name != "gat"]


def model_of(config: Config, graph: sparse.csr_matrix, seed: int = 0) -> PyG:
    """Untrained, with random numbers."""
    model = PyG(config)
    torch.manual_seed(seed)
    created = model._created(graph.shape)
    for parameter in created.wrapper.parameters():
        torch.nn.init.normal_(parameter)
    model.load_state(
        {name.removeprefix("module."): value.numpy() for name, value in created.wrapper.state_dict().items()},
        graph,
    )
    return model


def random_edits(graph: sparse.csr_matrix, seed: int, count: int = 7) -> Edits:
    """Some remove, some add, one empties its user, one does nothing."""
    draw = np.random.default_rng(seed)
    rows, users, items = [], [], []
    for row in range(count - 2):
        for edge in draw.choice(graph.shape[0] * graph.shape[1], size=4, replace=False):
            rows.append(row)
            users.append(int(edge) // graph.shape[1])
            items.append(int(edge) % graph.shape[1])
    for item in graph[3].indices:
        rows.append(count - 2)
        users.append(3)
        items.append(int(item))
    exists = np.asarray(graph[users, items]).ravel() > 0
    of = draw.integers(0, graph.shape[0], count)
    of[count - 2] = 3
    arrays = (np.array(part, dtype=np.int64) for part in (rows, users, items))
    return Edits(of, *arrays, np.where(exists, REMOVE, ADD).astype(np.int8))


def rebuilt(graph: sparse.csr_matrix, edits: Edits, row: int) -> sparse.csr_matrix:
    changed, one = graph.tolil(), edits.take(row, row + 1)
    for user, item, op in zip(one.edge_users, one.edge_items, one.ops, strict=True):
        changed[user, item] = float(op == ADD)
    return changed.tocsr()


def tensors_of(edits: Edits) -> list[torch.Tensor]:
    arrays = (edits.users, edits.rows, edits.edge_users, edits.edge_items, edits.ops.astype(np.float64))
    return [torch.from_numpy(array) for array in arrays]


@pytest.mark.parametrize("factory", ["light", "union"])
def test_pytorch_geometrics_lightgcn_scores_as_our_own_with_the_same_weights(factory: str) -> None:
    graph = graph_of(1)
    model = model_of(MODULES[factory], graph)
    table = model.state()["embedding.weight"]
    ours = lightgcn.LightGCN(lightgcn.Config(layers=3, device="cpu"))
    ours.load_state({USERS: table[:USERS_COUNT], ITEMS: table[USERS_COUNT:]}, graph)
    edits = random_edits(graph, 2)
    np.testing.assert_allclose(model.score_edits(edits), ours.score_edits(edits), rtol=1e-5, atol=1e-6)
    *edges, delta = tensors_of(edits)
    fractions = 0.4 * delta
    np.testing.assert_allclose(
        model.score_weighted(*edges, fractions), ours.score_weighted(*edges, fractions), rtol=1e-5, atol=1e-6
    )


def test_its_link_is_that_of_a_ranking_loss_or_the_configured_one() -> None:
    assert link_of(PyG(Config())) == "softmax"
    assert link_of(PyG(Config(link="sigmoid"))) == "sigmoid"


def test_it_scores_as_the_module_itself_in_pytorch_geometric() -> None:
    graph = graph_of(1)
    model = model_of(MODULES["light"], graph)
    module = LightGCN(NODES, DIMENSIONS, 3)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in model.state().items()})
    users, items = (torch.from_numpy(part.astype(np.int64)) for part in graph.nonzero())
    ends = torch.stack([users, USERS_COUNT + items])
    with torch.no_grad():
        found = module.get_embedding(torch.cat([ends, ends.flip(0)], dim=1)).numpy()
    expected = found[:USERS_COUNT] @ found[USERS_COUNT:].T
    scores = model.score_edits(Edits.nothing(np.arange(USERS_COUNT)))
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)  # the module computes in float32


@pytest.mark.parametrize("name", MODULES)
def test_scores_under_edits_are_those_of_the_edited_graph(name: str) -> None:
    graph = graph_of(3)
    model, edits = model_of(MODULES[name], graph), random_edits(graph, 4)
    scores = model.score_edits(edits)
    for row in range(len(edits)):
        other = PyG(MODULES[name])
        other.load_state(model.state(), rebuilt(graph, edits, row))
        expected = other.score_edits(Edits.nothing(edits.users[row : row + 1]))[0]
        np.testing.assert_allclose(scores[row], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["two tables", "matrix of items", "gate of nodes", *ONE_BY_ONE])
def test_scores_under_edits_are_those_of_the_module_itself(name: str) -> None:
    """Which is called with the edges of each edited graph, by no code of ours."""
    graph = graph_of(16)
    model, edits = model_of(MODULES[name], graph), random_edits(graph, 17)
    scores = model.score_edits(edits)
    module = model._created(graph.shape).module.double().eval()
    module.load_state_dict({key: torch.from_numpy(array) for key, array in model.state().items()})
    call = getattr(module, "get_embedding", module)
    for row in range(len(edits)):
        users, items = rebuilt(graph, edits, row).nonzero()
        ends = torch.from_numpy(np.stack([users, USERS_COUNT + items]).astype(np.int64))
        edge_index = torch.cat([ends, ends.flip(0)], dim=1)
        with torch.no_grad():
            found = call(edge_index, torch.ones(edge_index.shape[1], dtype=torch.float64)).numpy()
        expected = found[edits.users[row]] @ found[USERS_COUNT:].T
        np.testing.assert_allclose(scores[row], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", WEIGHTED)
def test_gradients_are_those_of_central_differences(name: str) -> None:
    graph = graph_of(5)
    model, edits = model_of(MODULES[name], graph), random_edits(graph, 6, count=4)
    *edges, delta = tensors_of(edits)
    at = (0.3 * delta).requires_grad_()
    mix = torch.linspace(-1, 1, ITEMS_COUNT, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((model.score_weighted(*edges, at) @ mix).sum(), at)
    for place in range(len(at)):
        change = torch.zeros_like(at)
        change[place] = 1e-6
        with torch.no_grad():
            up, down = ((model.score_weighted(*edges, at + sign * change) @ mix).sum() for sign in (1, -1))
        assert float(gradient[place]) == pytest.approx(float(up - down) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", WEIGHTED)
def test_whole_edits_by_weight_are_edits(name: str) -> None:
    graph = graph_of(7)
    model, edits = model_of(MODULES[name], graph), random_edits(graph, 8)
    *edges, delta = tensors_of(edits)
    delta.requires_grad_()
    scores = model.score_weighted(*edges, delta)
    np.testing.assert_allclose(scores.detach(), model.score_edits(edits), rtol=1e-8, atol=1e-9)
    (gradient,) = torch.autograd.grad(scores.sum(), delta)
    assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize("name", MODULES)
def test_only_a_module_that_needs_it_is_evaluated_one_graph_at_a_time(
    name: str, recwarn: pytest.WarningsRecorder
) -> None:
    graph = graph_of(9)
    model, edits = model_of(MODULES[name], graph), random_edits(graph, 10)
    said = [str(warning.message) for warning in recwarn if warning.category is ResultWarning]
    sizes: list[int] = []
    layer = model._graph.wrapper.register_forward_pre_hook(
        lambda module, given: sizes.append(int(given[0].max()) // NODES + 1)
    )
    model.score_edits(edits)
    layer.remove()
    if name in ONE_BY_ONE:
        assert set(sizes) == {1} and len(sizes) == len(np.unique(edits.rows))
        assert "is evaluated one graph at a time" in said[0]
    else:
        assert not said
        assert name == "light" or max(sizes) > 1  # "light" is a polynomial, whose module is not called


@pytest.mark.parametrize("in_memory", [0, 8_000_000])
def test_numbers_do_not_depend_on_how_many_graphs_are_in_a_union(
    in_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(9)
    model, edits = model_of(MODULES["two tables"], graph), random_edits(graph, 10)
    *edges, delta = tensors_of(edits)

    def scores_and_gradient() -> tuple[np.ndarray, torch.Tensor]:
        at = (0.5 * delta).requires_grad_()
        found = model.score_weighted(*edges, at)
        return found.detach().numpy(), torch.autograd.grad((found**2).sum(), at)[0]

    together = scores_and_gradient()
    monkeypatch.setattr(pyg_recommender, "NUMBERS_AT_ONCE", 1)
    monkeypatch.setattr(pyg_recommender, "NUMBERS_IN_MEMORY", in_memory)
    alone = scores_and_gradient()
    np.testing.assert_allclose(together[0], alone[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(together[1], alone[1], rtol=1e-9, atol=1e-11)


def test_the_product_of_the_embeddings_is_the_score() -> None:
    graph = graph_of(11)
    for config in MODULES.values():
        model = model_of(config, graph)
        scores = model.score_edits(Edits.nothing(np.arange(USERS_COUNT)))
        np.testing.assert_allclose(model.user_embeddings() @ model.item_embeddings().T, scores, atol=1e-9)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            Config(factory=own("DropsInEvaluation"), options=LIGHT),
            r"two evaluations of pyg_example_modules:DropsInEvaluation on the same graph differ: is dropout",
        ),
        (Config(factory=own("Cached")), "do not follow the edges: .* cached=True"),
        (Config(factory=own("Cached"), options={"both": True}), "do not follow the edges: .* cached=True"),
        (Config(factory=own("CachedByHand"), options=LIGHT), "do not follow the edges: .* cached=True"),
        (
            Config(factory=own("WithoutShape")),
            "scale has no shape; create it with one, not as UninitializedParameter",
        ),
        (
            Config(factory=own("WrongShape"), options=LIGHT),
            r"one vector for each node, \(21, d\): returned \(20, 5\)",
        ),
        (Config(factory=own("Fails"), options=LIGHT), "fails on a graph of 21 nodes: KeyError"),
        (Config(factory=own("TwoTables"), options={"depth": 2}), "cannot be created"),
        (Config(factory=own("a_word"), options={"name": "x"}), "returned str, not a torch module"),
        (Config(factory="torch:load"), "must be code of your own"),
        (Config(factory=own("absent")), "has no 'absent'"),
        (Config(factory="torch.nn:Linear"), "must be code of your own"),
    ],
)
def test_a_bad_module_is_one_clear_line(config: Config, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        model_of(config, graph_of(12))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"factory": "torch_geometric.nn.models:Node2Vec"}, "with one of GAT, GCN"),
        (
            {"factory": "torch_geometric.nn:Sequential"},
            "is in an installed package; it must be code of your own",
        ),
        ({"factory": own("TwoTable")}, "has no 'TwoTable'. Did you mean 'TwoTables'?"),
        (
            {"options": {"hidden": 3}},
            "'hidden' is no option of the default factory, which takes embedding_dim",
        ),
    ],
)
def test_what_is_known_without_importing_a_module_is_said_by_the_plan(
    option: dict[str, object], said: str
) -> None:
    """In a process of its own, which must not have imported torch to say it."""
    study = {
        "suite": "recsys", "data": "debian-python", "recommenders": [{"name": "pyg", **option}],
        "explainers": ["gradient-greedy"],
    }  # fmt: skip
    program = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from cfbench_core.api import plan
from cfbench_core.errors import ResultWarning, UserError
try:
    plan({study!r})
except UserError as error:
    print(error)
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.parametrize("frozen", [False, True])
def test_a_module_is_checked_in_evaluation_and_each_part_is_left_as_it_was(frozen: bool) -> None:
    created = PyG(Config(factory=own("Regularised"), options={"frozen": frozen}))._created(graph_of(12).shape)
    before = {name: value.clone() for name, value in created.wrapper.state_dict().items()}
    assert created.check(graph_of(12)) == ""
    assert created.module.training and created.module.dropout.training
    assert created.module.norm.training is not frozen
    after = created.wrapper.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)  # statistics too


@pytest.mark.slow
def test_functions_that_pytorch_geometric_replaces_count_as_nobodys_change() -> None:
    """In a process of its own: what matters is that torch was noted before PyTorch Geometric was imported."""
    program = """
import torch
from cfbench_core.isolation import protection
protection.note_functions()
old = torch.index_select
import torch_geometric
assert torch.index_select is not old, "nothing to test: PyTorch Geometric left torch as it was"
assert protection.replaced_functions() == [], protection.replaced_functions()
torch.index_select = lambda *values: None
assert [str(place) for place in protection.replaced_functions()] == ["torch.index_select"]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_weights_that_do_not_fit_are_one_clear_line() -> None:
    graph = graph_of(12)
    state = model_of(MODULES["light"], graph).state()
    with pytest.raises(UserError, match=r"do not fit .* size mismatch for embedding.weight") as raised:
        PyG(MODULES["light"]).load_state({**state, "embedding.weight": state["embedding.weight"][1:]}, graph)
    assert "\n" not in str(raised.value)
    of_parallel = {f"module.{name}": array for name, array in state.items()}  # as DataParallel names them
    with pytest.raises(
        UserError, match=r'Missing .* "embedding.weight"\. Unexpected .* "module.embedding.weight"'
    ):
        PyG(MODULES["light"]).load_state(of_parallel, graph)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (Config(factory=own("WithoutWeights"), options=LIGHT), "takes no edge weights"),
        (MODULES["gat"], "takes no edge weights"),
    ],
)
def test_a_module_that_ignores_edge_weights_has_scores_but_no_gradients(config: Config, reason: str) -> None:
    graph = graph_of(13)
    model, edits = model_of(config, graph), random_edits(graph, 14)
    assert np.isfinite(model.score_edits(edits)).all()
    with pytest.raises(UserError, match=reason):
        model.score_weighted(*tensors_of(edits))


def test_weights_are_read_from_a_state_dict_and_nothing_in_it_is_executed(tmp_path: Path) -> None:
    from cfbench_recsys.given_weights import given_weights

    graph = graph_of(15)
    users, items = np.arange(USERS_COUNT).astype(str), np.arange(ITEMS_COUNT).astype(str)
    data = Interactions("toy", graph, users, items, items)
    module = LightGCN(NODES, DIMENSIONS, 3)
    torch.save(module.state_dict(), tmp_path / "model.pt")
    state = given_weights(tmp_path / "model.pt", data)
    model = PyG(MODULES["light"])
    model.load_state(state, graph)
    assert np.array_equal(model.state()["embedding.weight"], module.embedding.weight.detach().numpy())
    torch.save(module, tmp_path / "whole.pt")
    with pytest.raises(
        UserError, match="read safely: it holds more than tensors; save the module's weights by"
    ):
        given_weights(tmp_path / "whole.pt", data)


def test_complex_weights_are_refused_and_do_not_lose_their_imaginary_part() -> None:
    graph = graph_of(12)
    state = model_of(MODULES["light"], graph).state()
    state["embedding.weight"] = state["embedding.weight"] * np.complex64(1 + 2j)
    with pytest.raises(UserError, match="weight must be real numbers, has the type complex64"):
        PyG(MODULES["light"]).load_state(state, graph)


def test_a_module_in_bfloat16_is_trained_and_its_weights_keep_their_values() -> None:
    split = kit.split(40)
    model = PyG(Config(factory=own("HalfPrecision"), epochs=2))
    model.fit(split, kit.streams)
    for array in model.state().values():
        assert array.dtype == np.float32
        rounded = torch.from_numpy(array.copy()).bfloat16().float().numpy()
        np.testing.assert_array_equal(rounded, array)
    created = model._created(split.profiles.shape)
    assert created.module.users.weight.dtype == torch.bfloat16
    other = PyG(Config(factory=own("TwoTables")))
    other.load_state(model.state(), split.profiles)
    nothing = Edits.nothing(np.arange(5))
    np.testing.assert_array_equal(model.score_edits(nothing), other.score_edits(nothing))


@pytest.mark.parametrize(
    "options",
    [
        None,
        Config(factory=own("TwoTables"), options={"width": 16}, epochs=60, learning_rate=0.05),
        Config(factory=own("Regularised"), epochs=60, learning_rate=0.05),
        Config(
            factory="torch_geometric.nn.models:GCN",
            options={"hidden_channels": 16, "num_layers": 2, "dropout": 0.2, "norm": "batch_norm"},
            epochs=60,
        ),
    ],
)
def test_it_fulfils_the_contract_of_the_suite(options: Config | None) -> None:
    report = check_component("recsys/recommender/pyg", kind="recommender", options=options)
    assert report.passed, str(report)
