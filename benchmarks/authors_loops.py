"""The published loops of UNR-Explainer and GREASE, run from checkouts of their authors' repositories.

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
        return type(name, (), {"__init__": lambda self, *given, **options: None})


def import_from(checkout: Path, name: str, *empty: str) -> Any:
    """A module of the checkout; while it is imported, the modules ``empty`` are empty."""
    names = {".".join(module.split(".")[:end]) for module in empty for end in (1, 2)} - set(sys.modules)
    sys.modules.update({missing: _Empty(missing) for missing in names})
    sys.path.insert(0, str(checkout))
    try:
        return importlib.import_module(name)
    finally:
        for missing in names:
            del sys.modules[missing]


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
        self.module = import_from(checkout, "explainer.unrexplainer", "gensim.models")
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


class _Functional:
    """``torch.nn.functional`` with dropout from a given generator."""

    def __init__(self) -> None:
        self.draws: Any = None

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch.nn.functional, name)

    def dropout(self, values: Any, rate: float, training: bool) -> Any:
        import torch

        if not training:
            return values
        return values * (torch.rand(values.shape, generator=self.draws) >= rate) / (1 - rate)


class Grease:
    """The authors' two networks, dense; their script, which reads files of its own, is restated here."""

    random = True

    def __init__(self, world: World, checkout: Path) -> None:
        import torch

        unused = ("world", "dataloader", "model", "cppimport", "sklearn.metrics")
        self.world = world
        self.fitting = import_from(checkout, "GCN_CLASS", *unused)
        self.searching = import_from(checkout, "gnn_perturb", *unused)
        self.functional = _Functional()
        self.fitting.F = self.searching.F = self.functional

        def reset(layer: Any) -> None:
            for parameter in (layer.weight, layer.bias):
                bound = 1 / parameter.shape[-1] ** 0.5
                drawn = torch.rand(parameter.shape, generator=self.functional.draws)
                parameter.data = drawn * 2 * bound - bound

        self.fitting.GraphConvolution.reset_parameters = reset

    def run(self, same: bool) -> Found:
        from authors_graph_searches import Found

        sets, started = [], time.process_time()
        for unit in range(len(self.world.targets)):
            sets.append(self._explain(unit, same))
        return Found(sets, time.process_time() - started)

    def _explain(self, unit: int, same: bool) -> frozenset[tuple[int, int]]:
        import torch

        from cfbench_explainers_native.grease_paper import Subgraph, embeddings

        world, given = self.world, self.world.options
        one = np.array([unit])
        targets = world.targets.take(one)
        subgraph = Subgraph(targets, world.context, *embeddings(world.context))
        adjacency = torch.zeros(subgraph.size, subgraph.size)
        adjacency[subgraph.ends[0], subgraph.ends[1]] = adjacency[subgraph.ends[1], subgraph.ends[0]] = 1.0
        names = ("grease", int(targets.users[0]), *(int(item) for item in targets.items[0]))
        stream = world.context.generator(*names, *(() if same else ("other",)))
        self.functional.draws = torch.Generator().manual_seed(int(stream.integers(2**62)))
        shape = {
            "nfeat": subgraph.features.shape[1],
            "dims": subgraph.features.shape[1],
            "nhid": given.get("hidden", 800),
            "dropout": 0.8,
            "weight_decay": 5e-4,
            "device": "cpu",
        }
        surrogate = self.fitting.GCN(**shape)
        nodes = torch.arange(subgraph.size)
        count = int(0.99 * len(nodes))
        chosen = torch.from_numpy(stream.choice(len(nodes), count, replace=False))
        self.functional.draws.manual_seed(self.functional.draws.initial_seed())
        steps = given.get("surrogate_steps", 1666)
        surrogate.fit(subgraph.features, adjacency, subgraph.labels, chosen, train_iters=steps, verbose=False)
        searching = self.searching.GCN(num_nodes=subgraph.size, **shape)
        searching.load_state_dict(surrogate.state_dict(), strict=False)
        for name, parameter in searching.named_parameters():
            parameter.requires_grad = name == "P_vec"
        optimizer = torch.optim.SGD([searching.P_vec], lr=0.1)
        return self._search(searching, optimizer, subgraph, adjacency, one, given.get("steps", 360))

    def _search(
        self, network: Any, optimizer: Any, subgraph: Any, adjacency: Any, one: Any, steps: int
    ) -> frozenset[tuple[int, int]]:
        import torch

        k = self.world.targets.k
        removed: list[tuple[int, int]] = []
        place = {
            pair: edge for edge, pair in enumerate(zip(*(end.tolist() for end in subgraph.ends), strict=True))
        }

        def rank() -> int:
            return int(np.minimum(self.world.ranks([frozenset(removed)], one)[0], k + 1).sum())

        full, worst = (k + 1) * len(subgraph.items), rank()
        for _ in range(steps):
            output = network(subgraph.features, adjacency)
            hard = (torch.sigmoid(network.P_hat_symm) >= 0.5).float()
            loss = sum(torch.dot(output[subgraph.user], output[item]) for item in subgraph.items)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([network.P_vec], 10.0)
            optimizer.step()
            gone = torch.nonzero(torch.triu((1 - hard) * adjacency)).tolist()
            for pair in gone:
                user, item = subgraph.edges[place[(pair[0], pair[1])]].tolist()
                if (user, item) in removed:
                    continue
                removed.append((user, item))
                new = rank()
                if new == full:
                    return frozenset(removed)
                if new < worst:
                    removed.pop()
                worst = max(worst, new)
        outside = (self.world.ranks([frozenset(removed)], one)[0] > k).any()
        return frozenset(removed) if outside else frozenset()
