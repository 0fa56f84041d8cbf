"""Small graphs with untrained recommenders of the suite on them, shared by the tests of all explainers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.edits import ADD, Edits
from cfbench_recsys.ranking import ranks_of, top_k
from cfbench_recsys.recommenders import gformer, lightgcn, simgcl
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.recommenders.masked_training import (
    ANCHORS,
    ITEM_NEARNESS,
    MATRICES,
    TOPOLOGY,
    USER_NEARNESS,
    nearness,
)
from cfbench_recsys.targets import Context, Targets

MODELS = {
    "lightgcn": (lightgcn.LightGCN, lightgcn.Config),
    "simgcl": (simgcl.SimGCL, simgcl.Config),
    "gformer": (gformer.GFormer, gformer.Config),
}
DIMENSIONS = 4


@dataclass(frozen=True)
class GraphWorld:
    """A recommender with random numbers on a small graph.

    Attributes:
        name: of the recommender. graph: (users, items).
    """

    name: str
    graph: sparse.csr_matrix
    state: Mapping[str, np.ndarray]
    layers: int = 2

    @staticmethod
    def random(name: str, seed: int, users: int = 9, items: int = 12, density: float = 0.35) -> GraphWorld:
        draw = np.random.default_rng(seed)
        graph = (draw.random((users, items)) < density).astype(float)
        graph[np.arange(users), np.arange(users) % items] = 1.0  # every user has one
        return GraphWorld(name, sparse.csr_matrix(graph), _random_state(name, sparse.csr_matrix(graph), draw))

    def model_of(self, graph: sparse.csr_matrix) -> Any:
        """The same recommender on another graph, built from nothing."""
        model_class, config = MODELS[self.name]
        model = model_class(config(layers=self.layers))
        model.load_state(self.state, graph)
        return model

    @functools.cached_property
    def context(self) -> Context:
        streams = functools.partial(generator, "test")
        return Context(self.model_of(self.graph), self.graph, self.graph, streams)

    def targets(self, k: int, level: Any, scope: Any, additions: bool = False) -> Targets:
        """The lists of all users who have full ones."""
        users = np.arange(self.graph.shape[0])
        all_users = Targets.of(self.graph, users, np.zeros((len(users), 1)), k, "item", "full")
        scores = self.context.model.score_edits(Edits.nothing(users))
        lists = top_k(scores, all_users.history, all_users.padding, k)
        full = (lists >= 0).all(axis=1)
        users, lists = users[full], lists[full]
        if level == "item":
            users, lists = np.repeat(users, k), lists.reshape(-1, 1)
        return Targets.of(self.graph, users, lists, k, level, scope, additions)

    def rebuilt(self, edits: Edits, row: int) -> sparse.csr_matrix:
        """The graph that edit ``row`` leaves."""
        graph = self.graph.tolil()
        one = edits.take(row, row + 1)
        for user, item, op in zip(one.edge_users, one.edge_items, one.ops, strict=True):
            graph[user, item] = float(op == ADD)
        return graph.tocsr()

    def displaced(self, targets: Targets, edits: Edits, row: int) -> int:
        """Items of target ``row`` out of the top K of a recommender that was built on the edited graph."""
        unit = targets.take(slice(row, row + 1))
        scores = self.model_of(self.rebuilt(edits, row)).score_edits(Edits.nothing(unit.users))
        return int((ranks_of(scores, unit.items, unit.history, unit.padding) > unit.k).sum())


def _random_state(name: str, graph: sparse.csr_matrix, draw: np.random.Generator) -> dict[str, np.ndarray]:
    state = {
        side: draw.normal(size=(count, DIMENSIONS)).astype(np.float32)
        for side, count in zip((USERS, ITEMS), graph.shape, strict=True)
    }
    if name != "gformer":
        return state
    anchors = draw.choice(sum(graph.shape), size=2, replace=False)
    near = nearness(graph, anchors, 4)
    state[ANCHORS] = anchors
    state[USER_NEARNESS], state[ITEM_NEARNESS] = near[: graph.shape[0]], near[graph.shape[0] :]
    for matrix in MATRICES:
        rows = (2 if matrix == TOPOLOGY else 1) * DIMENSIONS
        state[matrix] = 0.5 * draw.normal(size=(rows, DIMENSIONS)).astype(np.float32)
    return state


@pytest.fixture(scope="session")
def graph_world() -> Callable[..., GraphWorld]:
    return GraphWorld.random


@pytest.fixture(scope="session")
def lightgcn_with() -> Callable[..., GraphWorld]:
    """One layer, with these embeddings on this graph."""

    def make(graph: Any, users: Any, items: Any) -> GraphWorld:
        state = {USERS: np.array(users, dtype=np.float32), ITEMS: np.array(items, dtype=np.float32)}
        return GraphWorld("lightgcn", sparse.csr_matrix(np.array(graph, dtype=float)), state, layers=1)

    return make


@pytest.fixture(params=MODELS)
def recommender(request: pytest.FixtureRequest) -> str:
    return str(request.param)
