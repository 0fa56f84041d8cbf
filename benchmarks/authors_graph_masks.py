"""The paper variants of CF-GNNExplainer, CF2 and C2Explainer next to the loops that their authors published.

    git clone https://github.com/a-lucic/cf-gnnexplainer CHECKOUT
    python benchmarks/authors_graph_masks.py cf-gnnexplainer CHECKOUT --keep docs/results/authors-graph-masks

The authors' classes are imported from the checkout (https://github.com/chrisjtan/gnn_cff,
https://github.com/kano5266/C2Explainer) and run, with the recommender in place of their model, on the same units: of
``--users`` users (20) of Amazon Fashion the first ``--first`` (1) items of the top ``--k`` (5), in the scope k-hop 3, on
a LightGCN with three layers. What their modules import besides, and do not use here, is replaced by empty modules. At
list level, which their loops do not have, only the variants are compared.

Rows: ``paper`` and ``cfbench`` are the variants; ``authors`` the loop with the start of ``paper``, ``authors, other
start`` with random numbers of its own; ``--rows`` chooses. Columns: the share of the items that are out of the list of
the rebuilt graph (PN-S), the mean number of edits over units with an answer, the share of units with the same set of
edges as ``paper``, the mean Jaccard index with it (two empty sets: 1), seconds of one thread for each unit. No budget
of edits applies.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from explainers import Study
from results import keep

SAME = ["method", "data", "model", "scope", "level", "k", "first", "users", "row", "options"]
ROWS = ("paper", "cfbench", "authors", "authors, other start")
EdgeSet = frozenset[tuple[int, int]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=sorted(LOOPS))
    parser.add_argument("checkout", type=Path, help="a checkout of the authors' repository")
    parser.add_argument("--dataset", default="amazon-fashion")
    parser.add_argument("--level", choices=("item", "list"), default="item")
    for name, default, text in (
        ("users", 20, None),
        ("k", 5, "length of the lists"),
        ("first", 1, "items of each list"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    parser.add_argument("--options", default="{}", help="of the paper variant, as YAML: '{alpha: 0}'")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--model-folder", help="where the trained recommender is, or will be")
    parser.add_argument("--keep", help="where to keep the table, without its ending")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        options.model_folder = options.model_folder or folder
        Path(options.model_folder).mkdir(parents=True, exist_ok=True)
        rows = compare(options)
    for row in rows:
        print(row)
    if options.keep:
        command = "python benchmarks/authors_graph_masks.py METHOD CHECKOUT ... --keep NAME"
        keep(Path(options.keep), rows, SAME, command)


def compare(options: argparse.Namespace) -> list[dict[str, Any]]:
    import yaml

    options.recommender = "{name: lightgcn, layers: 3}"
    options.chunk, options.plain = 50, True
    study = Study(options)
    targets = units_of(study, options)
    context = study.context()
    given = yaml.safe_load(options.options)
    ours, seconds = variant(options.method, targets, context, paper=given)
    found = {"paper": (ours, seconds)}
    if "cfbench" in options.rows:
        found["cfbench"] = variant(options.method, targets, context)
    if options.level == "item":
        for row, same in (("authors", True), ("authors, other start", False)):
            loop = LOOPS[options.method](options.checkout, given, same)
            if row in options.rows and (same or loop.random):
                found[row] = authors(loop, targets, context)
    return [
        {
            "method": options.method,
            "data": options.dataset,
            "model": "lightgcn",
            "scope": "k-hop-3",
            "level": options.level,
            "k": options.k,
            "first": options.first if options.level == "item" else 0,
            "users": options.users,
            "options": options.options,
            "row": row,
            "units": len(targets),
            "pn_s": round(float((ranks(sets, targets, context) > targets.k).mean()), 4),
            "edits": round(float(np.mean([len(edges) for edges in sets if edges] or [0])), 2),
            "identical": round(float(np.mean([a == b for a, b in zip(sets, ours, strict=True)])), 4),
            "overlap": round(float(np.mean([jaccard(a, b) for a, b in zip(sets, ours, strict=True)])), 4),
            "seconds": round(spent / len(targets), 3),
        }
        for row, (sets, spent) in found.items()
    ]


def jaccard(a: EdgeSet, b: EdgeSet) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def units_of(study: Study, options: argparse.Namespace) -> Any:
    import dataclasses

    from cfbench_recsys.targets import Targets

    chunks = [dataclasses.replace(chunk, max_edits=None) for chunk in study.chunks("k-hop-3")]
    users, items = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("users", "items"))
    if options.level == "item":
        first = np.arange(len(users)) % options.k < options.first
        users, items = users[first], items[first]
    return Targets.of(study.split.profiles, users, items, options.k, options.level, "k-hop", hops=3)


def variant(
    method: str, targets: Any, context: Any, paper: dict[str, Any] | None = None
) -> tuple[list[EdgeSet], float]:
    """The answers of a variant of cfbench, ``paper`` with these options; seconds."""
    explainer = explainer_of(method, paper)
    started = time.process_time()
    edits = explainer.counterfactuals(targets, context).edits
    return sets_of(edits), time.process_time() - started


def explainer_of(method: str, paper: dict[str, Any] | None) -> Any:
    from cfbench_core.config import create
    from cfbench_core.registry import installed

    spec = installed().find("recsys", "explainer", method).spec
    options = {} if paper is None else {"variant": "paper", "paper": paper}
    return create({"target": spec.target, "config": spec.config, "options": options})


def sets_of(edits: Any) -> list[EdgeSet]:
    one_each = (edits.take(row, row + 1) for row in range(len(edits)))
    return [frozenset(zip(one.edge_users.tolist(), one.edge_items.tolist(), strict=True)) for one in one_each]


def ranks(sets: list[EdgeSet], targets: Any, context: Any) -> Any:
    """(B, T) on the graphs without ``sets``."""
    from cfbench_recsys.edits import REMOVE, Edits
    from cfbench_recsys.scoring import target_ranks

    rows = np.repeat(np.arange(len(sets)), [len(edges) for edges in sets])
    edges = np.array([edge for some in sets for edge in sorted(some)], dtype=np.int64).reshape(-1, 2)
    ops = np.full(len(edges), REMOVE, dtype=np.int8)
    edits = Edits(targets.users, rows, edges[:, 0], edges[:, 1], ops)
    return target_ranks(context.model, edits, targets, np.arange(len(targets)), context.interactions)


def authors(loop: Any, targets: Any, context: Any) -> tuple[list[EdgeSet], float]:
    """The answers of the authors' loop, those that do not displace the item as none; seconds."""
    import torch

    from cfbench_explainers_gnn.blocks import Block
    from cfbench_explainers_gnn.possible_edits import possible_edits

    torch.manual_seed(0)
    started, sets = time.process_time(), []
    for unit in range(len(targets)):
        one = targets.take(slice(unit, unit + 1))
        block = Block(one, possible_edits(one, context), context)
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            removed = np.asarray(loop.removed(block), dtype=bool)
        sets += sets_of(block.possible.where(removed))
    seconds = time.process_time() - started
    stay = (ranks(sets, targets, context) <= targets.k).all(axis=1)
    return [frozenset() if stays else edges for edges, stays in zip(sets, stay, strict=True)], seconds


class _Empty(types.ModuleType):
    """A module in which every name is there, and useless."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def imported(folder: Path, name: str, *empty: str) -> Any:
    for module in empty:
        for end in range(1, module.count(".") + 2):
            part = ".".join(module.split(".")[:end])
            sys.modules.setdefault(part, _Empty(part))
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


class CFGNNExplainer:
    """Their ``CFExplainer.explain``, with the loss of their model class; all else of the model is the recommender's."""

    random = False

    def __init__(self, checkout: Path, given: dict[str, Any], same: bool) -> None:
        from cfbench_explainers_gnn.cf_gnnexplainer_paper import PaperOptions

        self.options = PaperOptions(**given)
        self.module = imported(checkout / "src", "cf_explanation.cf_explainer", "pandas")

    def removed(self, block: Any) -> Any:
        import torch

        perturbed, options = self.module.GCNSyntheticPerturb, self.options
        edges = len(block.rows)

        class Model(perturbed):  # type: ignore[misc, valid-type]
            def __init__(self) -> None:
                torch.nn.Module.__init__(self)
                start = torch.full((edges,), options.start, dtype=torch.float64)
                self.P_vec = torch.nn.Parameter(start)
                self.adj, self.beta = torch.ones(1, edges), 0.5
                self.edge_additions = False

            def forward(self, x: Any, sub_adj: Any) -> Any:
                return classes(block, torch.sigmoid(self.P_vec))

            def forward_prediction(self, x: Any) -> Any:
                self.P = (torch.sigmoid(self.P_vec.detach()) >= 0.5).float()[None]
                return logits(block, self.P[0].double()), self.P

        explainer = self.module.CFExplainer.__new__(self.module.CFExplainer)
        explainer.cf_model = Model()
        explainer.sub_adj, explainer.sub_feat = torch.zeros(1, 1), torch.zeros(1, 1)
        explainer.y_pred_orig, explainer.sub_labels = torch.tensor(0), torch.zeros(1)
        here = torch.tensor(0)
        found = explainer.explain("SGD", here, here, options.learning_rate, options.momentum, options.steps)
        return found[-1][2][0] == 0 if found else np.zeros(edges, dtype=bool)


class CF2:
    """Their ``GraphExplainerEdge.explain`` on the subgraph of the edges in scope."""

    random = True

    def __init__(self, checkout: Path, given: dict[str, Any], same: bool) -> None:
        from cfbench_explainers_gnn.cf2_paper import PaperCF2, PaperOptions

        self.same, self.ours = same, PaperCF2(PaperOptions(**given))
        options = self.ours.options
        self.arguments = types.SimpleNamespace(
            gpu=False,
            lr=options.learning_rate,
            num_epochs=options.steps,
            lam=options.strength,
            alp=options.alpha,
            gam=options.gamma,
            mask_thresh=options.threshold,
        )
        empty = ("matplotlib.pyplot", "networkx", "tqdm", "utils.common_utils")
        self.module = imported(checkout, "models.explainer_models", *empty)
        self.construct = self.module.ExplainModelGraph.construct_adj_mask

    def removed(self, block: Any) -> Any:
        import torch

        nodes, first, second = local(block)
        adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
        adjacency[first, second] = adjacency[second, first] = 1.0
        graph = types.SimpleNamespace(
            nodes=lambda: range(nodes),
            ndata={"feat": torch.zeros(1)},
            edata={"weight": adjacency.reshape(-1)},
        )

        def model(graph: Any, features: Any, weights: Any) -> Any:
            table = weights.reshape(nodes, nodes)
            return torch.sigmoid(block.margins(1 - table[first, second]))

        def start(explainer: Any) -> Any:
            mask = self.construct(explainer)
            if not self.same:
                return mask
            given, table = self.ours.start(block), mask.detach().double()
            table[first, second], table[second, first] = given
            return torch.nn.Parameter(table)

        model.eval = lambda: None  # type: ignore[attr-defined]
        self.module.ExplainModelGraph.construct_adj_mask = start
        explainer = self.module.GraphExplainerEdge.__new__(self.module.GraphExplainerEdge)
        torch.nn.Module.__init__(explainer)
        explainer.base_model, explainer.args = model, self.arguments
        explainer.G_dataset = types.SimpleNamespace(graphs=[graph])
        mask, _ = explainer.explain(0, torch.tensor(1.0))
        return mask.detach().reshape(nodes, nodes)[first, second] > self.arguments.mask_thresh


class C2Explainer:
    """Their ``C2Explainer`` for a graph, that of the edges in scope, without additions."""

    random = True

    def __init__(self, checkout: Path, given: dict[str, Any], same: bool) -> None:
        from cfbench_explainers_gnn.c2explainer_paper import PaperC2Explainer, PaperOptions

        self.same, self.ours = same, PaperC2Explainer(PaperOptions(**given))
        self.module = imported(checkout / "src" / "cf_explainer", "c2_explainer")

    def removed(self, block: Any) -> Any:
        import torch

        nodes, first, second = local(block)
        order = torch.from_numpy(np.lexsort((second, first)))
        pairs = torch.from_numpy(np.stack([first, second]))
        same, ours, count, raw = self.same, self.ours, len(first), self.module.ModelReturnType.raw
        number = torch.full((nodes, nodes), -1)
        number[pairs[0], pairs[1]] = torch.arange(count)

        class Explainer(self.module.C2Explainer):  # type: ignore[misc, name-defined]
            model_config = types.SimpleNamespace(return_type=raw)

            def _initialize_masks(self, *given: Any) -> None:
                super()._initialize_masks(*given)
                if same:
                    p = ours.start(block)[:, order]  # their second half runs backwards
                    self.edge_mask_delete = torch.nn.Parameter(torch.cat([p[0], p[1].flip(0)]))

        def model(x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
            forward = edge_index[0] < edge_index[1]
            which = number[edge_index[0][forward], edge_index[1][forward]]
            values = (
                torch.ones(len(which), dtype=torch.float64) if edge_weight is None else edge_weight[forward]
            )
            there = torch.zeros(count, dtype=torch.float64).index_put((which,), values.double())
            return logits(block, there)

        options = self.ours.options
        explainer = Explainer(
            options.steps, options.learning_rate, subgraph_mode=True, silent_mode=True, beta=options.beta
        )
        edges = torch.cat([pairs, pairs.flip(0)], dim=1)
        found = explainer.forward(model, torch.zeros(nodes, 1), edges, target=None)
        cf = getattr(found, "cf", None)
        removed = np.zeros(count, dtype=bool)
        if cf is not None:
            removed[:] = True
            removed[number[cf[0][cf[0] < cf[1]], cf[1][cf[0] < cf[1]]].numpy()] = False
        return removed


def classes(block: Any, weights: Any) -> Any:
    """(1, 1) the logarithm of the item's share in a softmax over all candidates: the only class that counts."""
    return block.log_shares(1 - weights)


def logits(block: Any, weights: Any) -> Any:
    """(1, 2) of the classes "in the list" and "not in it" when the edges in scope have these weights."""
    import torch

    margin = block.margins(1 - weights)
    return torch.cat([margin, torch.zeros_like(margin)], dim=1)


def local(block: Any) -> tuple[int, Any, Any]:
    """The number of nodes at edges in scope, and of each edge its two nodes: users come first."""
    possible = block.possible
    users, first = np.unique(possible.edge_users, return_inverse=True)
    items, second = np.unique(possible.edge_items, return_inverse=True)
    return len(users) + len(items), first, len(users) + second


LOOPS = {"cf-gnnexplainer": CFGNNExplainer, "cf2": CF2, "c2explainer": C2Explainer}


if __name__ == "__main__":
    main()
