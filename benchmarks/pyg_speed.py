"""The explainer ``pyg`` next to PyTorch Geometric's algorithms on a graph per unit, as one would call them by hand.

    python benchmarks/pyg_speed.py --keep docs/results/pyg-speed

Explains the top ``--k`` (5) items of ``--users`` users (20) of ``--data`` (Amazon Fashion), with removals in the scope
k-hop 3, at most 100. The modules of PyTorch Geometric are trained by the recommender ``pyg``. Both sides turn the mask
of an algorithm into a counterfactual: the edges in scope are removed in the order of their masks until the item is
beyond place K. One thread.

- ``graph per unit``: for each unit ``torch_geometric.explain.Explainer`` on the module and the whole graph, in float32, with
  the algorithm at its defaults; the output is the margin to the K-th best other candidate. Each direction of an edge has a
  mask, the greater of the two counts. Then one pass of the module for each removed edge. The first ``--units`` units (25).
- ``cfbench``: the explainer ``pyg``, of all units, in batches of ``--chunk`` users (20).

Columns: CPU milliseconds for each unit on both sides and their ratio, the shares of units whose item is displaced (PN-S),
and CPU seconds of training before (PGExplainer: 30 epochs on 32 units on both sides).
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import copy
import dataclasses
import functools
from pathlib import Path
from typing import Any

from results import keep

MODULES: dict[str, dict[str, Any]] = {
    "LightGCN": {"options": {"embedding_dim": 64, "num_layers": 3}},
    "GCN": {"options": {"hidden_channels": 32, "num_layers": 2}, "features": 32},
    "GAT": {"options": {"hidden_channels": 32, "num_layers": 2}, "features": 32},
}
ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("LightGCN", "GNNExplainer", {"algorithm": "gnnexplainer"}),
    ("LightGCN", "PGExplainer", {"algorithm": "pgexplainer"}),
    ("LightGCN", "Captum, IntegratedGradients", {"algorithm": "captum"}),
    ("LightGCN", "Captum, Saliency", {"algorithm": "captum", "attribution": "Saliency"}),
    ("GCN", "GNNExplainer", {"algorithm": "gnnexplainer"}),
    ("GAT", "AttentionExplainer", {"algorithm": "attention"}),
]
PG_EPOCHS, PG_UNITS, MOST_EDITS = 30, 32, 100


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="amazon-fashion")
    for name, default in (("users", 20), ("units", 25), ("k", 5), ("chunk", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--keep", help="where to keep the table, without its ending")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    rows = []
    for name in MODULES:
        world = World(name, options)
        for module, algorithm, config in ROWS:
            if module == name:
                rows.append(world.compare(algorithm, config))
                print(rows[-1], flush=True)
    if options.keep:
        same = ["data", "module", "algorithm", "k"]
        keep(Path(options.keep), rows, same, "python benchmarks/pyg_speed.py --keep NAME")


class World:
    """A trained module, its graph and the units."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        import numpy as np

        from cfbench_core.api import prepare
        from cfbench_core.config import create
        from cfbench_core.data_files import DataAccess
        from cfbench_core.lifecycle.streams import generator
        from cfbench_recsys.edits import Edits
        from cfbench_recsys.ranking import top_k
        from cfbench_recsys.splits import SplitConfig, make_split
        from cfbench_recsys.targets import Context, Targets

        self.name, self.options = name, options
        recommender = {"name": "pyg", "factory": f"torch_geometric.nn.models:{name}", **MODULES[name]}
        prepared = prepare(
            {
                "suite": "recsys",
                "data": options.data,
                "recommenders": [recommender],
                "explainers": ["random-edges"],
                "protocol": {"k": options.k, "format": "explicit", "scope": [{"k-hop": 3}]},
            }
        )
        source = prepared.config.data[0].create()
        interactions = source.load(source.find(DataAccess()))
        split = make_split(interactions, SplitConfig(), generator(0, "split", interactions.name))
        self.model = create(prepared.plan.cells[0].stages["model"].parameters["model"])
        self.model.fit(
            split, functools.partial(generator, 0, "fit", interactions.name), lambda done, total: None
        )
        self.graph = split.profiles
        drawn = generator(0, "users", interactions.name).permutation(split.explainable)
        users = np.sort(drawn[: options.users])
        self.targets_of = lambda users, items: Targets.of(
            self.graph, users, items, options.k, "item", "k-hop", hops=3, max_edits=MOST_EDITS
        )
        blank = self.targets_of(users, np.zeros((len(users), 1)))
        lists = top_k(self.model.score_edits(Edits.nothing(users)), blank.history, blank.padding, options.k)
        self.targets = self.targets_of(np.repeat(users, options.k), lists.reshape(-1, 1))
        others = split.train.tolil()
        others[users] = 0
        training = others.tocsr()
        training.eliminate_zeros()
        self.context = Context(self.model, self.graph, training, functools.partial(generator, 0, "speed"))
        self.wrapper = GraphPerUnit(self)

    def compare(self, algorithm: str, config: dict[str, Any]) -> dict[str, Any]:
        ours, share, trained = self.cfbench(config)
        theirs, share_by_hand, trained_by_hand = self.wrapper.explain(algorithm)
        return {
            "data": self.options.data,
            "module": self.name,
            "algorithm": algorithm,
            "k": self.options.k,
            "units": len(self.targets),
            "graph_per_unit_ms": round(1000 * theirs, 2),
            "cfbench_ms": round(1000 * ours, 2),
            "ratio": round(theirs / ours, 1),
            "graph_per_unit_pn_s": round(share_by_hand, 3),
            "cfbench_pn_s": round(share, 3),
            "graph_per_unit_training_s": round(trained_by_hand, 1),
            "cfbench_training_s": round(trained, 1),
        }

    def cfbench(self, config: dict[str, Any]) -> tuple[float, float, float]:
        """Seconds for each unit, PN-S, and seconds of training."""
        from cfbench_explainers_gnn.pyg_explainer import Config, PyGExplainer
        from cfbench_recsys.scoring import target_ranks
        from cfbench_recsys.targets import Answer

        explainer = PyGExplainer(Config(**config))
        started = time.process_time()
        context = dataclasses.replace(self.context, state=explainer.prepare(self.context))
        trained = time.process_time() - started
        width, seconds, displaced = self.options.chunk * self.options.k, 0.0, 0
        explainer.counterfactuals(self.targets.take(slice(0, 2)), context)  # imports
        for start in range(0, len(self.targets), width):
            some = self.targets.take(slice(start, start + width))
            started = time.process_time()
            edits = Answer.of(explainer.counterfactuals(some, context)).edits
            seconds += time.process_time() - started
            ranks = target_ranks(self.model, edits, some, range(len(some)), self.graph)
            displaced += int((ranks > self.options.k).sum())
        return seconds / len(self.targets), displaced / len(self.targets), trained


class GraphPerUnit:
    """PyTorch Geometric's algorithms on the whole graph, one unit at a time."""

    def __init__(self, world: World) -> None:
        import torch
        from torch_geometric.nn import models

        self.world = world
        given = dict(MODULES[world.name]["options"])
        state = {name: torch.as_tensor(value) for name, value in world.model.state().items()}
        users, items = world.graph.shape
        if world.name == "LightGCN":
            self.x = torch.zeros(users + items, 1)
            module = models.LightGCN(users + items, **given)
        else:
            self.x = state.pop("x").float()
            module = getattr(models, world.name)(in_channels=self.x.shape[1], **given)
        module.load_state_dict(state)
        self.trained = module.float().eval()
        first, second = (torch.as_tensor(side.astype("int64")) for side in world.graph.nonzero())
        ends = torch.stack([first, users + second])
        self.edge_index = torch.cat([ends, ends.flip(0)], dim=1)

    def embeddings(self, x: Any, edge_index: Any) -> Any:
        if self.world.name == "LightGCN":
            return self.module.get_embedding(edge_index)
        return self.module(x, edge_index)

    def margin_module(self, user: int, item: int, seen: Any) -> Any:
        """A module (x, edge_index) -> the item's margin to the K-th best other candidate, in units of its size before."""
        import torch

        of, users, k = self, self.world.graph.shape[0], self.world.options.k

        class Margin(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.module, self.unit = of.module, 1.0
                with torch.no_grad():
                    self.unit = max(float(self(of.x, of.edge_index).abs()), 1e-12)

            def forward(self, x: Any, edge_index: Any, target: Any = None) -> Any:
                found = of.embeddings(x, edge_index)
                scores = found[users:] @ found[user]
                others = scores.index_fill(0, torch.as_tensor([*seen, item]), -torch.inf)
                return ((scores[item] - others.topk(k).values[-1]) / self.unit).reshape(1)

        return Margin()

    def explain(self, algorithm: str) -> tuple[float, float, float]:
        """Seconds for each unit, PN-S, and seconds of training."""
        from cfbench_recsys.scopes import edges_in_scope

        world, trained = self.world, 0.0
        self.module = copy.deepcopy(
            self.trained
        )  # GNNExplainer leaves parameters in layers, with which Captum fails
        explainer = self.algorithm(algorithm)
        if algorithm == "PGExplainer":
            started = time.process_time()
            self.train(explainer)
            trained = time.process_time() - started
        displaced = 0
        units = min(world.options.units, len(world.targets))
        started = time.process_time()
        for unit in range(units):
            one = world.targets.take(slice(unit, unit + 1))
            scope = edges_in_scope(world.graph, one)
            allowed = {*zip(scope.users.tolist(), scope.items.tolist(), strict=True)}
            user, item = int(one.users[0]), int(one.items[0, 0])
            displaced += self.explain_unit(explainer, user, item, allowed)
        return (time.process_time() - started) / units, displaced / units, trained

    def explain_unit(self, algorithm: Any, user: int, item: int, allowed: set[tuple[int, int]]) -> bool:
        """Whether the item leaves the list when edges are removed in the order of the mask."""
        import torch

        seen = self.world.graph.indices[slice(*self.world.graph.indptr[user : user + 2])].tolist()
        model = self.margin_module(user, item, seen)
        mask = self.mask(algorithm, model)
        count = self.edge_index.shape[1] // 2
        strength = torch.maximum(mask[:count], mask[count:])
        order = strength.argsort(descending=True, stable=True).tolist()
        users = self.world.graph.shape[0]
        left = self.edge_index[:, :count].T.tolist()
        present = torch.ones(count, dtype=torch.bool)
        removed = 0
        for edge in order:
            if removed == MOST_EDITS or strength[edge] <= 0:
                return False
            if (left[edge][0], left[edge][1] - users) not in allowed:
                continue
            present[edge] = False
            removed += 1
            with torch.no_grad():
                if model(self.x, self.edge_index[:, present.repeat(2)]) < 0:
                    return True
        return False

    def algorithm(self, name: str) -> Any:
        from torch_geometric import explain

        if name.startswith("Captum"):
            method = name.partition(", ")[2]
            return explain.CaptumExplainer(method, **({"abs": False} if method == "Saliency" else {}))
        if name == "PGExplainer":
            return explain.PGExplainer(epochs=PG_EPOCHS)
        return getattr(explain, name)()

    def explainer(self, algorithm: Any, model: Any) -> tuple[Any, Any]:
        """The explainer, and the target that its algorithm wants."""
        import torch
        from torch_geometric.explain import Explainer

        mode = "regression" if type(algorithm).__name__ == "CaptumExplainer" else "binary_classification"
        config = {"mode": mode, "task_level": "graph", "return_type": "raw"}
        learned = type(algorithm).__name__ == "PGExplainer"
        kind = "phenomenon" if learned else "model"
        made = Explainer(model, algorithm, kind, config, edge_mask_type="object")
        return made, torch.ones(1) if learned else None

    def mask(self, algorithm: Any, model: Any) -> Any:
        explainer, target = self.explainer(algorithm, model)
        x = self.features() if target is not None else self.x
        return explainer(x, self.edge_index, target=target).edge_mask.detach()

    def features(self) -> Any:
        """The embeddings of all nodes, which PGExplainer's network reads."""
        import torch

        with torch.no_grad():
            return self.embeddings(self.x, self.edge_index)

    def train(self, algorithm: Any) -> None:
        import numpy as np
        import torch

        from cfbench_recsys.edits import Edits
        from cfbench_recsys.ranking import top_k

        graph = self.world.graph
        others = np.setdiff1d(np.flatnonzero(np.diff(graph.indptr) > 1), self.world.targets.users)
        users = np.sort(np.random.default_rng(0).permutation(others)[:PG_UNITS])
        blank = self.world.targets_of(users, np.zeros((len(users), 1)))
        scores = self.world.model.score_edits(Edits.nothing(users))
        best = top_k(scores, blank.history, blank.padding, 1)[:, 0]
        features = self.features()
        models = [
            self.margin_module(int(u), int(i), graph.indices[slice(*graph.indptr[u : u + 2])].tolist())
            for u, i in zip(users, best, strict=True)
        ]
        for model in models:
            self.explainer(algorithm, model)
        for epoch in range(PG_EPOCHS):
            for model in models:
                algorithm.train(epoch, model, features, self.edge_index, target=torch.ones(1))


if __name__ == "__main__":
    main()
