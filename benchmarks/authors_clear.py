"""The published model, losses, training and evaluation of CLEAR, run from a checkout of its authors' repository.

See ``authors_graph_searches.py`` for what is compared, and what of the authors' code is replaced.
"""

from __future__ import annotations

import sys
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from authors_loops import import_from

if TYPE_CHECKING:
    from authors_graph_searches import Found, World


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
                edits = np.flatnonzero(block.possible.rows == unit)  # the edges of its graph, in their order
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


class _Numbers:
    """A tensor that remains in the default precision, which may be double, when the authors' code asks for ``float()``."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __len__(self) -> int:
        return len(self.tensor)

    def float(self) -> Any:
        import torch

        return self.tensor.to(torch.get_default_dtype())


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
            self.module = import_from(folder, "main", "torchvision.utils", "data_preprocessing", "plot")
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

        from cfbench_explainers_gnn.clear_paper import Nodes, _training_units, make_network

        context, options = self.world.context, self.options
        random = context.generator("clear", "fit")
        learned = context.training.multiply(context.interactions).tocsr()
        learned.eliminate_zeros()
        blocks, graphs = _training_units(context, learned, options, random)
        width = Nodes(context).vectors.shape[1]
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
        from cfbench_explainers_gnn.clear_paper import Nodes, unit_graphs
        from cfbench_explainers_gnn.possible_edits import possible_edits

        world = self.world
        block = Block(world.targets, possible_edits(world.targets, world.context), world.context)
        graphs = list(unit_graphs(block, Nodes(world.context), self.options.nodes))

        def bernoulli(probabilities: Any) -> Any:
            """An edge, which is two entries, is drawn once, with the mean of the two."""
            drawn = torch.zeros_like(probabilities)
            for unit, graph in enumerate(graphs):
                names = ("clear", "draw", *(() if same else ("other",)))
                numbers = torch.from_numpy(block.generator(unit, *names).random(len(graph.edges)))
                left, right = graph.ends
                both = (probabilities[unit][left, right] + probabilities[unit][right, left]) / 2
                drawn[unit][left, right] = drawn[unit][right, left] = (numbers < both).to(drawn.dtype)
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
            "features": _Numbers(torch.stack([graph.features for graph in graphs])),
            "adj": _Numbers(torch.stack([graph.adjacency for graph in graphs])),
            "u": _Numbers(torch.stack([graph.auxiliary for graph in graphs])),
            "labels": _Numbers(torch.zeros(len(graphs), 1)),
            "index": torch.arange(len(graphs)),
        }
