"""The published loops of UNR-Explainer, GREASE and CLEAR, run from checkouts of their authors' repositories.

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


def _import(checkout: Path, name: str, *empty: str) -> Any:
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
        self.fitting = _import(checkout, "GCN_CLASS", *unused)
        self.searching = _import(checkout, "gnn_perturb", *unused)
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


class _Torch:
    """PyTorch with other Bernoulli draws."""

    def __init__(self, bernoulli: Any) -> None:
        self.bernoulli = bernoulli

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)


class _Classifier:
    """The recommender in place of the authors' classifier of graphs; class 1: the items of a unit have left the list.

    With L the mean of softplus(margin) over the items of a unit, the logits are (log(exp(L) - 1), 0): the cross-entropy for
    class 1 is L. The gradient of L is taken block after block, so that the recommender's memory is that of one block.
    """

    def __init__(self, blocks: list[Any], graphs: list[Any]) -> None:
        self.blocks = blocks
        self.places: list[Any] = []
        """Of each block: (e,) the unit, the two nodes, and the possible edit of each edge in a unit's graph."""
        first = 0
        for block in blocks:
            parts = []
            for unit in range(len(block)):
                graph = graphs[first + unit]
                edits = np.flatnonzero(block.possible.rows == unit)[graph.edges]
                parts.append(np.stack([np.full(len(edits), first + unit), *graph.ends.numpy(), edits]))
            self.places.append(np.concatenate(parts, axis=1))
            first += len(block)

    def eval(self) -> None:
        pass

    def __call__(self, features: Any, adjacency: Any) -> dict[str, Any]:
        import torch

        losses = torch.zeros(len(adjacency), dtype=torch.float64)
        first = 0
        for block, places in zip(self.blocks, self.places, strict=True):
            unit, left, right, edits = torch.from_numpy(places)
            gone = 1.0 - (adjacency[unit, left, right] + adjacency[unit, right, left]).double() / 2
            made = torch.zeros(len(block.possible.rows), dtype=torch.float64)
            made[edits] = gone.detach()
            made.requires_grad_()
            real = torch.from_numpy(block.targets.items >= 0)
            each = (torch.nn.functional.softplus(block.margins(made)) * real).sum(dim=1) / real.sum(dim=1)
            (slope,) = torch.autograd.grad(each.sum(), made)
            own = torch.arange(first, first + len(block))
            losses = losses.index_add(0, own, each.detach())
            losses = losses.index_add(0, unit, slope[edits] * (gone - gone.detach()))
            first += len(block)
        logits = torch.log(torch.expm1(losses))
        return {"y_pred": torch.stack([logits, torch.zeros_like(logits)], dim=1)}


class _Drawn:
    """A classifier of no use, which remembers the first graphs that it is given: those that were drawn."""

    def __init__(self) -> None:
        self.adjacency: Any = None

    def eval(self) -> None:
        pass

    def __call__(self, features: Any, adjacency: Any) -> dict[str, Any]:
        import torch

        if self.adjacency is None:
            self.adjacency = adjacency
        return {"y_pred": torch.zeros(len(adjacency), 2)}


class Clear:
    """The authors' model, losses, training and evaluation, on the graphs of the variant."""

    random = True
    names = (
        ("graph_model.lin", "convolution"),
        ("graph_model", "convolution"),
        ("prior_mean.fc.0", "prior_mean"),
        ("prior_var.0.fc.0", "prior_variance.0"),
        ("encoder_mean", "mean"),
        ("encoder_var", "variance"),
        ("decoder_x", "features"),
        ("decoder_a", "adjacency"),
    )
    """Layers of the authors' model, and of the variant's."""

    def __init__(self, world: World, checkout: Path) -> None:
        import torch_geometric.nn  # noqa: F401  (before modules are replaced by empty ones)

        from cfbench_explainers_gnn.clear_paper import PaperOptions

        self.world, self.options = world, PaperOptions(**world.options)
        if (self.options.plain, self.options.alpha) != (450, 5.0):
            sys.exit("clear: plain and alpha are numbers in the authors' code: 450 and 5")
        given, sys.argv = sys.argv, sys.argv[:1]  # their module reads the command line
        try:
            folder = checkout / "src"
            self.module = _import(folder, "main", "torchvision.utils", "data_preprocessing", "plot")
        finally:
            sys.argv = given
        self.module.print = lambda *words, **options: None

    def run(self, same: bool) -> Found:
        import torch
        from authors_graph_searches import Found

        started = time.process_time()
        with torch.random.fork_rng(devices=[]):
            model = self._train(same)
        training = time.process_time() - started
        started = time.process_time()
        sets = self._explain(model, same)
        return Found(sets, time.process_time() - started, training)

    def _train(self, same: bool) -> Any:
        import torch

        from cfbench_explainers_gnn.clear_paper import Nodes, _training_blocks, make_network, unit_graph

        context, options = self.world.context, self.options
        random = context.generator("clear", "fit")
        learned = context.training.multiply(context.interactions).tocsr()
        learned.eliminate_zeros()
        blocks, around = _training_blocks(context, learned, options, random), Nodes(context)
        graphs = [
            unit_graph(block, unit, around, options.nodes) for block in blocks for unit in range(len(block))
        ]
        width = around.vectors.shape[1]
        stream = random if same else context.generator("clear", "fit", "other")
        torch.manual_seed(int(stream.integers(2**62)))
        if same:
            network = make_network(width, options)
            state = torch.get_rng_state()
            model = self._model(width)
            unmatched = model.load_state_dict(self._renamed(network.state_dict()), strict=False).missing_keys
            assert all(name.startswith("graph_norm.") for name in unmatched)  # a layer that is never called
            torch.set_rng_state(state)
        else:
            model = self._model(width)
        optimizer = torch.optim.Adam(
            model.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
        )
        losses = dict.fromkeys(("loss", "loss_kl", "loss_sim", "loss_cfe"), 0.0)
        evaluation, self.module.test = self.module.test, lambda given: losses  # it would only print
        try:
            self.module.train(
                {
                    "epochs": options.epochs - 1,  # one more than this is run
                    "pred_model": _Classifier(blocks, graphs),
                    "model": model,
                    "optimizer": optimizer,
                    "y_cf": torch.ones(len(graphs), 1),
                    "train_loader": [self._batch(graphs)],
                    **dict.fromkeys(("val_loader", "test_loader", "exp_i", "dataset", "variant")),
                    "metrics": [],
                    "save_model": False,
                }
            )
        finally:
            self.module.test = evaluation
        return model

    def _explain(self, model: Any, same: bool) -> list[frozenset[tuple[int, int]]]:
        import torch

        from cfbench_explainers_gnn.blocks import Block
        from cfbench_explainers_gnn.clear_paper import Nodes, unit_graph
        from cfbench_explainers_gnn.possible_edits import possible_edits

        world = self.world
        block = Block(world.targets, possible_edits(world.targets, world.context), world.context)
        around = Nodes(world.context)
        graphs = [unit_graph(block, unit, around, self.options.nodes) for unit in range(len(block))]

        def bernoulli(probabilities: Any) -> Any:
            """An edge, which is two entries, is drawn once, with the mean of the two."""
            drawn = torch.zeros_like(probabilities)
            for unit, graph in enumerate(graphs):
                names = ("clear", "draw", *(() if same else ("other",)))
                numbers = torch.from_numpy(block.generator(unit, *names).random(len(graph.edges)))
                left, right = graph.ends
                both = (probabilities[unit][left, right] + probabilities[unit][right, left]) / 2
                drawn[unit][left, right] = drawn[unit][right, left] = (numbers < both).float()
            return drawn

        drawn = _Drawn()
        self.module.torch = _Torch(bernoulli)
        try:
            with torch.no_grad():
                self.module.test(
                    {
                        "model": model,
                        "data_loader": [self._batch(graphs)],
                        "pred_model": drawn,
                        "y_cf": torch.ones(len(graphs), 1),
                        "dataset": "",
                        "metrics": [],
                    }
                )
        finally:
            self.module.torch = torch
        sets = []
        for unit, graph in enumerate(graphs):
            gone = (drawn.adjacency[unit][graph.ends[0], graph.ends[1]] == 0).numpy()
            edges = np.flatnonzero(block.possible.rows == unit)[graph.edges][gone]
            pair = block.possible.edge_users[edges].tolist(), block.possible.edge_items[edges].tolist()
            sets.append(frozenset(zip(*pair, strict=True)))
        left = (world.ranks(sets, np.arange(len(sets))) > world.targets.k) & (world.targets.items >= 0)
        return [edges if some else frozenset() for edges, some in zip(sets, left.any(axis=1), strict=True)]

    def _model(self, width: int) -> Any:
        options = self.options
        return self.module.models.GraphCFE(
            init_params={"vae_type": "graphVAE", "x_dim": width, "max_num_nodes": options.nodes},
            args=types.SimpleNamespace(
                dim_h=options.hidden, dim_z=options.latent, dropout=options.dropout, disable_u=0
            ),
        )

    def _renamed(self, weights: dict[str, Any]) -> dict[str, Any]:
        """``weights`` of the variant under the authors' names."""
        found = {}
        for theirs, ours in self.names:
            for name, value in weights.items():
                if name.startswith(f"{ours}."):
                    found[theirs + name[len(ours) :]] = value
        return found

    def _batch(self, graphs: list[Any]) -> dict[str, Any]:
        import torch

        return {
            "features": torch.stack([graph.features for graph in graphs]),
            "adj": torch.stack([graph.adjacency for graph in graphs]),
            "u": torch.stack([graph.auxiliary for graph in graphs]),
            "labels": torch.zeros(len(graphs), 1),
            "index": torch.arange(len(graphs)),
        }


LOOPS = {"unr-explainer": UNRExplainer, "grease": Grease, "clear": Clear}
