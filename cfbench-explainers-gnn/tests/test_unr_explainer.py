"""UNR-Explainer finds the edge that matters, rewards as a rebuilt graph does, and claims no success that this denies."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_explainers_gnn.unr_explainer import Config, UNRExplainer, first_margins, outcomes_of
from cfbench_recsys.edits import REMOVE, Edits
from cfbench_recsys.ranking import top_k
from cfbench_recsys.recommenders.gformer import Config as GFormerConfig
from cfbench_recsys.recommenders.gformer import GFormer
from cfbench_recsys.recommenders.lightgcn import Config as LightGCNConfig
from cfbench_recsys.recommenders.lightgcn import LightGCN
from cfbench_recsys.recommenders.simgcl import Config as SimGCLConfig
from cfbench_recsys.recommenders.simgcl import SimGCL
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Context, Targets


def embeddings(users: int, items: int, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {
        "user_embedding.weight": draw.normal(size=(users, 4)),
        "item_embedding.weight": draw.normal(size=(items, 4)),
    }


def world(
    seed: int = 0, users: int = 7, items: int = 9, share: float = 0.35
) -> tuple[LightGCN, sparse.csr_matrix]:
    dense = np.random.default_rng(seed).random((users, items)) < share
    dense[:, 0] = dense[0, 1] = True
    graph = sparse.csr_matrix(dense.astype(float))
    model = LightGCN(LightGCNConfig(dimensions=4, layers=2, device="cpu"))
    model.load_state(embeddings(users, items, seed), graph)
    return model, graph


def context(model: Any, graph: sparse.csr_matrix) -> Context:
    return Context(model, graph, graph, lambda *names: generator("test", *names))


def targets_of(model: Any, graph: sparse.csr_matrix, level: str, scope: str, k: int = 2) -> Targets:
    users = np.arange(graph.shape[0])
    nothing = Targets.of(graph, users, np.zeros((len(users), 1), dtype=np.int64), k, "item", "full")
    lists = top_k(model.score_edits(Edits.nothing(users)), nothing.history, nothing.padding, k)
    if level == "list":
        return Targets.of(graph, users, lists, k, "list", scope)  # type: ignore[arg-type]
    return Targets.of(graph, np.repeat(users, k), lists.reshape(-1, 1), k, "item", scope)  # type: ignore[arg-type]


def answers(targets: Targets, where: Context, config: Config) -> Edits:
    return UNRExplainer(config).counterfactuals(targets, where).edits


def scores_after(model: Any, graph: sparse.csr_matrix, removed: Any) -> np.ndarray:
    """(users, items) on a graph that never had the edges ``removed``: dense matrices; GFormer is placed anew."""
    dense = graph.toarray()
    for user, item in removed:
        assert dense[user, item] == 1
        dense[user, item] = 0
    users = dense.shape[0]
    if isinstance(model, GFormer):
        again = GFormer(model.config)
        again.load_state(model.state(), sparse.csr_matrix(dense))
        return again.user_embeddings() @ again.item_embeddings().T
    adjacency = np.block([[np.zeros((users, users)), dense], [dense.T, np.zeros((dense.shape[1],) * 2)]])
    roots = np.where(adjacency.any(axis=1), np.maximum(adjacency.sum(axis=1), 1) ** -0.5, 0)
    normalised = roots[:, None] * adjacency * roots
    layer, weights = np.concatenate(list(model.state().values())), model.layer_weights()
    total = np.zeros_like(layer)
    for weight in weights:
        total = total + weight * layer / sum(weights)
        layer = normalised @ layer
    scores: np.ndarray = total[:users] @ total[users:].T
    return scores


def rank_and_margin(
    scores: np.ndarray, graph: sparse.csr_matrix, user: int, item: int, k: int
) -> tuple[int, float]:
    """By sorting the candidates, one by one; on the grid on which scores tie."""
    own = np.round(scores[user] * 2**30)
    seen = set(graph[[user]].indices.tolist())
    others = sorted((-own[j], j) for j in range(graph.shape[1]) if j not in seen and j != item)
    rank = 1 + sum(other < (-own[item], item) for other in others)
    return rank, float(own[item] + others[k - 1][0]) / 2**30 if len(others) >= k else np.inf


def test_it_finds_the_one_edge_that_holds_the_item_in_the_list() -> None:
    graph = sparse.csr_matrix(np.array([[1.0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 1]]))
    vectors = {
        "user_embedding.weight": np.zeros((3, 2)),
        # item 1 alone points where item 3 is, the others a little to item 4
        "item_embedding.weight": np.array([[0.0, 0.2], [1, 0], [0, 0.2], [1, 0], [0, 1]]),
    }
    model = LightGCN(LightGCNConfig(dimensions=2, layers=2, device="cpu"))
    model.load_state(vectors, graph)
    targets = Targets.of(graph, np.array([0]), np.array([[3]]), 1, "item", "user-only")
    for prior in ("gradient", "none"):
        edits = answers(targets, context(model, graph), Config(prior=prior))
        assert (edits.edge_users.tolist(), edits.edge_items.tolist()) == ([0], [1])


@pytest.mark.parametrize("prior", ["gradient", "none"])
@pytest.mark.parametrize("level", ["item", "list"])
def test_searched_to_the_end_it_finds_the_smallest_set_that_brute_force_finds(level: str, prior: Any) -> None:
    model, graph = world(3)
    targets = targets_of(model, graph, level, "user-only")
    config = Config(simulations=100_000, patience=100_000, width=1000, batch=64, prior=prior)
    edits = answers(replace(targets, max_edits=3), context(model, graph), config)
    for unit in range(len(targets)):
        user, wanted = int(targets.users[unit]), targets.items[unit]
        best = (0, 0)  # displaced, minus the number of edges
        for size in (1, 2, 3):
            for removed in combinations(graph[[user]].indices.tolist(), size):
                after = scores_after(model, graph, [(user, item) for item in removed])
                ranks = [rank_and_margin(after, graph, user, int(item), 2)[0] for item in wanted]
                displaced = sum(rank > 2 for rank in ranks)
                best = max(best, (displaced, -size if displaced else 0))
        found = edits.take(unit, unit + 1)
        after = scores_after(
            model, graph, zip(found.edge_users.tolist(), found.edge_items.tolist(), strict=True)
        )
        ranks = [rank_and_margin(after, graph, user, int(item), 2)[0] for item in wanted]
        assert (sum(rank > 2 for rank in ranks) if len(found.rows) else 0, -len(found.rows)) == best


def test_on_the_whole_graph_no_pair_of_edges_is_smaller_than_its_answer() -> None:
    model, graph = world(5, users=4, items=7, share=0.3)
    targets = targets_of(model, graph, "item", "full")
    config = Config(simulations=100_000, patience=100_000, width=1000, batch=64, connected=False)
    edits = answers(replace(targets, max_edits=2), context(model, graph), config)
    edges = list(zip(*graph.nonzero(), strict=True))
    after = {
        removed: scores_after(model, graph, removed)
        for size in (1, 2)
        for removed in combinations(edges, size)
    }
    for unit in range(len(targets)):
        user, item = int(targets.users[unit]), int(targets.items[unit, 0])
        sizes = [
            len(removed)
            for removed, changed in after.items()
            if rank_and_margin(changed, graph, user, item, 2)[0] > 2
        ]
        assert edits.counts()[unit] == min(sizes, default=0)


def test_the_reward_follows_its_formula_on_rebuilt_graphs() -> None:
    model, graph = world(1)
    targets = targets_of(model, graph, "list", "full")
    where, partial = context(model, graph), 0.25
    block = Block(targets, possible_edits(targets, where), where)
    first, draw, rewards = first_margins(block), np.random.default_rng(0), []
    untouched = scores_after(model, graph, [])
    users, items = graph.nonzero()
    for unit in np.tile(np.arange(len(targets)), 3):
        user = int(targets.users[unit])
        chosen = np.concatenate([np.flatnonzero(users == user)[:1], draw.choice(graph.nnz, 2, replace=False)])
        chosen = np.unique(chosen)
        removed = list(zip(users[chosen].tolist(), items[chosen].tolist(), strict=True))
        edits = Edits(
            np.array([user]),
            np.zeros(len(chosen), dtype=np.int64),
            users[chosen].astype(np.int64),
            items[chosen].astype(np.int64),
            np.full(len(chosen), REMOVE, dtype=np.int8),
        )
        (outcome,) = outcomes_of(block, edits, np.array([unit]), first, partial)
        after, expected, left = scores_after(model, graph, removed), [], []
        for item in targets.items[unit].tolist():
            before = rank_and_margin(untouched, graph, user, item, 2)[1]
            rank, margin = rank_and_margin(after, graph, user, item, 2)
            closed = 1.0 if rank > 2 else min(1.0, max(0.0, 1 - margin / before))
            expected.append(1.0 if rank > 2 else partial * closed)
            left.append(1 - closed)
        assert outcome.reward == pytest.approx(np.mean(expected), abs=1e-6)
        assert outcome.left == pytest.approx(np.mean(left), abs=1e-6)
        rewards.append(outcome.reward)
    assert len(set(rewards)) > 3


def recommender(name: str) -> tuple[Any, sparse.csr_matrix]:
    model, graph = world(4)
    if name == "lightgcn":
        return model, graph
    users, items = graph.shape
    state = embeddings(users, items, 4)
    if name == "simgcl":
        other: Any = SimGCL(SimGCLConfig(dimensions=4, layers=2, device="cpu"))
    else:
        other = GFormer(GFormerConfig(dimensions=4, layers=2, heads=2, anchors=2, device="cpu"))
        draw = np.random.default_rng(4)
        state |= {f"{n}.weight": draw.normal(size=(4, 4)) for n in ("query", "key")}
        state |= {"topology.weight": draw.normal(size=(8, 4)), "anchors": np.array([0, users])}
        state |= {"user_nearness": draw.random((users, 2)), "item_nearness": draw.random((items, 2))}
    other.load_state(state, graph)
    return other, graph


@pytest.mark.parametrize(
    ("name", "scope"),
    [(name, "k-hop") for name in ("simgcl", "gformer")]
    + [("lightgcn", scope) for scope in ("user-only", "indirect", "k-hop", "full")],
)
def test_answers_are_in_scope_connected_and_successes_on_a_rebuilt_graph(name: str, scope: str) -> None:
    model, graph = recommender(name)
    for level in ("item", "list"):
        targets = targets_of(model, graph, level, scope)
        targets = targets.take(slice(0, 5))
        edits = answers(targets, context(model, graph), Config(simulations=24))
        allowed = edges_in_scope(graph, targets)
        pairs = set(zip(allowed.rows.tolist(), allowed.users.tolist(), allowed.items.tolist(), strict=True))
        named = list(
            zip(edits.rows.tolist(), edits.edge_users.tolist(), edits.edge_items.tolist(), strict=True)
        )
        assert len(set(named)) == len(named) > 0 and set(named) <= pairs and (edits.ops == REMOVE).all()
        for unit in np.flatnonzero(edits.counts()):
            user, wanted = int(targets.users[unit]), targets.items[unit].tolist()
            own = [(u, i) for row, u, i in named if row == unit]
            after = scores_after(model, graph, own)
            assert any(rank_and_margin(after, graph, user, item, 2)[0] > 2 for item in wanted)


@pytest.mark.parametrize("prior", ["gradient", "none"])
def test_a_unit_has_the_same_answer_alone_in_a_batch_and_in_a_second_call(prior: Any) -> None:
    model, graph = world(2)
    targets, where = targets_of(model, graph, "item", "k-hop"), context(model, graph)
    config = Config(prior=prior, simulations=30)
    together, again = answers(targets, where, config), answers(targets, where, config)
    assert np.array_equal(together.edge_users, again.edge_users)
    assert np.array_equal(together.edge_items, again.edge_items)
    for unit in range(len(targets)):
        alone, own = (
            answers(targets.take(slice(unit, unit + 1)), where, config),
            together.take(unit, unit + 1),
        )
        assert np.array_equal(alone.edge_users, own.edge_users)
        assert np.array_equal(alone.edge_items, own.edge_items)


def test_it_tries_no_more_sets_than_it_may() -> None:
    model, graph = world(6)
    targets, where = targets_of(model, graph, "item", "full"), context(model, graph)
    config = Config(simulations=10, batch=2)
    queries = UNRExplainer(config).counterfactuals(targets, where).details["queries"]
    assert (queries <= 1 + 2 * (1 + 10) + 6).all()  # gradients, and what the last round began


def test_pruned_answers_can_spare_no_edge() -> None:
    model, graph = world(7)
    targets, where = targets_of(model, graph, "item", "full"), context(model, graph)
    edits = answers(targets, where, Config(simulations=5, batch=1, connected=False, prune=True))
    assert edits.counts().max() > 1
    for unit in np.flatnonzero(edits.counts() > 1):
        own = edits.take(int(unit), int(unit) + 1)
        removed = list(zip(own.edge_users.tolist(), own.edge_items.tolist(), strict=True))
        user, item = int(targets.users[unit]), int(targets.items[unit, 0])
        for spared in removed:
            after = scores_after(model, graph, [edge for edge in removed if edge != spared])
            assert rank_and_margin(after, graph, user, item, 2)[0] <= 2


def test_an_item_that_nothing_moves_has_no_answer() -> None:
    model, graph = world()
    everything = graph.shape[1] - len(graph[[0]].indices)  # as many places as candidates
    targets = targets_of(model, graph, "item", "full", everything).take(slice(0, 1))
    edits = answers(targets, context(model, graph), Config())
    assert len(edits) == 1 and len(edits.rows) == 0
