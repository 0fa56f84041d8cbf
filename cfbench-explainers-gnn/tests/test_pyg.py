"""Explanations for PyTorch Geometric and back; its k-hop subgraphs and convolution agree with ours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch_geometric.explain import Explanation
from torch_geometric.nn import LGConv
from torch_geometric.utils import k_hop_subgraph

from cfbench_core.errors import UserError
from cfbench_explainers_gnn.pyg import from_explanation, importances_from_explanation, to_explanation
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.recommenders.lightgcn import Config as LightGCNConfig
from cfbench_recsys.recommenders.lightgcn import LightGCN
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Targets


def graph_of(seed: int, users: int = 7, items: int = 9) -> sparse.csr_matrix:
    dense = np.random.default_rng(seed).random((users, items)) < 0.3
    dense[:, 0] = True
    return sparse.csr_matrix(dense.astype(float))


def edge_index_of(graph: sparse.csr_matrix) -> torch.Tensor:
    users, items = graph.nonzero()
    ends = np.stack([users, graph.shape[0] + items])
    return torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1).astype(np.int64))


def targets_of(graph: sparse.csr_matrix, user: int, items: list[int], scope: str = "k-hop") -> Targets:
    level = "item" if len(items) == 1 else "list"
    return Targets.of(graph, np.array([user]), np.array([items]), 2, level, scope)  # type: ignore[arg-type]


def edges_of(edits: Edits) -> set[tuple[int, int, int]]:
    triples = zip(edits.edge_users, edits.edge_items, edits.ops, strict=True)
    return {(int(user), int(item), int(op)) for user, item, op in triples}


def test_an_edit_becomes_a_mask_over_the_subgraph_and_comes_back() -> None:
    graph = sparse.csr_matrix(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    targets = targets_of(graph, 0, [2])
    one = np.zeros(1, dtype=np.int64)
    edits = Edits(one, one, np.array([1]), np.array([1]), np.array([REMOVE], dtype=np.int8))
    explanation = to_explanation(targets, edits, graph)
    assert isinstance(explanation, Explanation) and explanation.validate()
    assert explanation.num_edges == 8 and explanation.edge_mask.sum() == 2  # both directions
    marked = explanation.node_id[explanation.edge_index[:, explanation.edge_mask > 0]]
    assert {tuple(pair) for pair in marked.T.tolist()} == {
        (1, 3),
        (3, 1),
    }  # user 1 and item 1, two users ahead
    assert explanation.get_explanation_subgraph().num_edges == 2
    assert edges_of(from_explanation(explanation)) == {(1, 1, REMOVE)}


@given(seed=st.integers(0, 10_000), level=st.sampled_from(["item", "list"]))
@settings(max_examples=25, deadline=None)
def test_edits_survive_the_way_there_and_back(seed: int, level: str) -> None:
    draw, graph = np.random.default_rng(seed), graph_of(seed)
    user = int(draw.integers(graph.shape[0]))
    targets = targets_of(graph, user, [3] if level == "item" else [3, 5], "full")
    edited = draw.random(graph.shape) < 0.15  # anywhere, near or far
    users, items = np.nonzero(edited)
    ops = np.where(graph.toarray()[users, items] > 0, REMOVE, ADD).astype(np.int8)
    edits = Edits(np.array([user]), np.zeros(len(users), dtype=np.int64), users, items, ops)
    explanation = to_explanation(targets, edits, graph)
    back = from_explanation(explanation)
    assert back.users.tolist() == [user] and edges_of(back) == edges_of(edits)
    assert explanation.node_id[explanation.target].tolist() == [graph.shape[0] + i for i in targets.items[0]]
    assert int(explanation.node_id[explanation.user]) == user


def test_importances_survive_the_way_there_and_back() -> None:
    graph = graph_of(1)
    targets = Targets.of(graph, np.array([0, 4]), np.array([[3], [5]]), 2, "item", "user-vector")
    importances = np.random.default_rng(1).random(targets.history.shape)
    for unit in range(2):
        explanation = to_explanation(targets, importances, graph, unit)
        back = importances_from_explanation(explanation, targets, unit)
        expected = np.where(targets.padding[unit], 0, importances[unit])
        np.testing.assert_allclose(back, expected, atol=1e-7)


def test_another_explainers_mask_becomes_an_edit() -> None:
    explanation = Explanation(
        edge_index=torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]]),
        edge_mask=torch.tensor([0.2, 0.9, 0.3, 0.1]),  # the directions differ
        node_id=torch.tensor([0, 5, 6]),
        num_users=5,
        user=0,
    )
    assert edges_of(from_explanation(explanation)) == {(0, 0, REMOVE)}
    assert edges_of(from_explanation(explanation, 0.25)) == {(0, 0, REMOVE), (0, 1, REMOVE)}


def test_missing_attributes_of_an_explanation_are_reported() -> None:
    with pytest.raises(UserError, match="no node_id, num_users, user"):
        from_explanation(Explanation(edge_index=torch.zeros(2, 1).long(), edge_mask=torch.ones(1)))
    strange = Explanation(
        edge_index=torch.tensor([[0], [1]]),
        edge_mask=torch.ones(1),
        node_id=torch.tensor([0, 1]),
        num_users=5,
        user=0,
    )
    with pytest.raises(UserError, match="does not join a user and an item"):
        from_explanation(strange)


@given(seed=st.integers(0, 10_000), hops=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_the_scope_is_the_union_of_pygs_k_hop_subgraphs(seed: int, hops: int) -> None:
    graph = graph_of(seed)
    user, item = (int(n) for n in np.random.default_rng(seed).integers(0, [7, 9]))
    ours = edges_in_scope(graph, replace(targets_of(graph, user, [item]), hops=hops))
    theirs = set()
    for start in (user, graph.shape[0] + item):
        _, ends, _, _ = k_hop_subgraph(start, hops, edge_index_of(graph), num_nodes=sum(graph.shape))
        theirs |= {(u, i - graph.shape[0]) for u, i in ends.T.tolist() if u < i}
    assert set(zip(ours.users.tolist(), ours.items.tolist(), strict=True)) == theirs


@pytest.mark.parametrize("layers", [1, 3])
def test_lightgcn_propagates_as_lgconv_does_on_the_edited_graph_too(layers: int) -> None:
    graph, draw = graph_of(2), np.random.default_rng(2)
    users, items = graph.shape
    state = {
        "user_embedding.weight": draw.normal(size=(users, 4)).astype(np.float32),
        "item_embedding.weight": draw.normal(size=(items, 4)).astype(np.float32),
    }
    model = LightGCN(LightGCNConfig(dimensions=4, layers=layers, device="cpu"))
    model.load_state(state, graph)

    def scores(edited: sparse.csr_matrix) -> np.ndarray:
        values = torch.from_numpy(np.concatenate(list(state.values())).astype(np.float64))
        total, convolution = values.clone(), LGConv()
        for _ in range(layers):
            values = convolution(values, edge_index_of(edited))
            total += values
        final = (total / (layers + 1)).numpy()
        return final[:users] @ final[users:].T  # type: ignore[no-any-return]

    all_users = np.arange(users)
    np.testing.assert_allclose(model.score_edits(Edits.nothing(all_users)), scores(graph), atol=1e-12)
    user, item = (int(n[3]) for n in graph.nonzero())
    removal = Edits(
        all_users,
        all_users,
        np.full(users, user),
        np.full(users, item),
        np.full(users, REMOVE, dtype=np.int8),
    )
    rebuilt = graph.tolil()
    rebuilt[user, item] = 0
    np.testing.assert_allclose(model.score_edits(removal), scores(rebuilt.tocsr()), atol=1e-12)
