"""The published loops of UNR-Explainer, CLEAR and GREASE, run from checkouts of their authors' repositories.

Each class imports the authors' modules and gives them the recommender and the random numbers of ``World`` (see
``authors_graph_searches.py``); what their modules import besides, and do not use here, is replaced by empty modules.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from authors_graph_searches import Found, World


class _Empty(types.ModuleType):
    """A module in which every name is there, and useless."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _import(checkout: Path, name: str, *empty: str) -> Any:
    for module in empty:
        for end in range(1, module.count(".") + 2):
            sys.modules.setdefault(".".join(module.split(".")[:end]), _Empty(module))
    sys.path.insert(0, str(checkout))
    return importlib.import_module(name)


class _Draws:
    """``numpy.random`` as far as the authors' code of UNR-Explainer uses it, from a generator."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def rand(self) -> float:
        return float(self.generator.random())

    def choice(self, a: Any, size: int, replace: bool = True) -> Any:
        if isinstance(a, list):
            return [a[int(self.generator.integers(len(a)))]]
        return self.generator.choice(a, size, replace=replace)


class _NumPy:
    """NumPy with other random numbers."""

    def __init__(self, random: Any) -> None:
        self.random = random

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class UNRExplainer:
    random = True

    def __init__(self, world: World, checkout: Path) -> None:
        import torch

        self.world = world
        self.module = _import(checkout, "explainer.unrexplainer", "gensim.models")
        self.draws = _Draws()
        self.module.np = _NumPy(self.draws)
        self.module.print = lambda *words, **options: None
        graph = world.graph
        self.arguments = types.SimpleNamespace(
            expansion_num=max(round(2 * graph.nnz / sum(graph.shape)), 3), c1=1.0, restart=0.2
        )
        self.data = types.SimpleNamespace(x=torch.zeros(1), edge_index=torch.zeros(2, 1))

    def run(self, same: bool) -> Found:
        from authors_graph_searches import Found

        sets, started = [], time.process_time()
        for unit in range(len(self.world.targets)):
            sets.append(self._explain(unit, same))
        return Found(sets, time.process_time() - started)

    def _explain(self, unit: int, same: bool) -> frozenset[tuple[int, int]]:
        import networkx

        from cfbench_recsys.scopes import edges_in_scope

        world = self.world
        one = np.array([unit])
        targets = world.targets.take(one)
        edges = edges_in_scope(world.graph, targets)
        graph, user = networkx.Graph(), ("u", int(targets.users[0]))
        for edge in zip(edges.users.tolist(), edges.items.tolist(), strict=True):
            graph.add_edge(("u", edge[0]), ("i", edge[1]))
        if user not in graph:
            return frozenset()
        for node in graph:
            graph.nodes[node]["label"] = node
        wanted = targets.items[0] >= 0
        # a set is scored once, as in the variant, so that the seconds compare the searches

        @functools.cache
        def share(removed: frozenset[tuple[int, int]]) -> float:
            return float((world.ranks([removed], one)[0] > targets.k)[wanted].mean())

        def importance(*given: Any) -> float:
            return share(self._removed(given[-2]))

        self.module.ut.importance = importance
        names = ("unr-explainer", user[1], *(int(item) for item in targets.items[0]))
        self.draws.generator = world.context.generator(*names, *(() if same else ("other",)))
        subgraph, score = self.module.explainer(
            self.arguments, None, graph, self.data, (None, None), user, "cpu"
        )
        return self._removed(subgraph.edges()) if score > 0 else frozenset()

    def _removed(self, edges: Any) -> frozenset[tuple[int, int]]:
        pairs = (dict((first, second)) for first, second in edges)
        return frozenset((pair["u"], pair["i"]) for pair in pairs)


LOOPS = {"unr-explainer": UNRExplainer}
