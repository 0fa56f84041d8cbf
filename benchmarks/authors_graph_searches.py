"""The paper variants of UNR-Explainer, GREASE and CLEAR next to the loops that their authors published.

    git clone https://github.com/hjkng/unrexplainer CHECKOUT
    python benchmarks/authors_graph_searches.py unr-explainer CHECKOUT --keep docs/results/authors-graph-searches

The authors' code is imported from the checkout, with the recommender in place of their model, and runs on the same
units: of ``--users`` users (20) of Amazon Fashion each item of the top ``--k`` (5), or at list level the list, in the scope
k-hop 3; ``--first`` takes of each list the first items only. The recommender is a LightGCN with 3 layers.

Rows: ``paper`` is the variant of cfbench; ``authors`` their loop with the same random numbers (initial weights,
dropout, draws); ``authors, other draws`` their loop with other random numbers, where the method is random. Columns:
the share of units (list level: of items) that are displaced on the rebuilt graph, the mean number of edits over the
units with an answer, the share of units with the same set of edges as the variant, the mean Jaccard index of the two
sets (two empty ones: 1), and seconds of one thread for each unit; ``training_seconds`` is training before all units.
No budget of edits applies.

Of CLEAR (https://github.com/jma712/GraphCFE) the authors' model, losses, training and evaluation run, on the graphs that the
variant makes of each unit, with the recommender as their classifier of graphs. An edge, which is two entries of the decoded
matrix, is drawn once, as in the variant. Their evaluations during training, which only print, are left out. With ``other
draws`` the units to learn from stay the same. ``--double`` computes the rows ``paper`` and ``authors`` in double precision,
which shows whether a difference between them is one of rounding.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results import keep

SAME = ["method", "data", "model", "scope", "level", "k", "first", "users", "row", "options"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=("unr-explainer", "grease", "clear"))
    parser.add_argument("checkout", type=Path, help="a checkout of the authors' repository")
    parser.add_argument("--data", default="amazon-fashion")
    parser.add_argument("--level", choices=("item", "list"), default="item")
    for name, default, help in (("users", 20, ""), ("k", 5, "length of the lists"), ("first", 5, "items")):
        parser.add_argument(f"--{name}", type=int, default=default, help=help)
    parser.add_argument("--options", default="{}", help="of the variant, as YAML: '{epochs: 100}'")
    parser.add_argument("--double", action="store_true", help="of CLEAR: compute in double precision")
    parser.add_argument("--model-folder", type=Path, help="where the trained recommender is, or will be")
    parser.add_argument("--keep", help="where to keep the table, without its ending")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    world = World(options)
    if options.double:
        torch.set_default_dtype(torch.float64)
    rows = compare(world, options)
    for row in rows:
        print(row)
    if options.keep:
        keep(
            Path(options.keep),
            rows,
            SAME,
            "python benchmarks/authors_graph_searches.py METHOD CHECKOUT ... --keep NAME",
        )


@dataclass
class Found:
    """Of each unit the set of edges (user, item); seconds for all of them, and of training before."""

    sets: list[frozenset[tuple[int, int]]]
    seconds: float
    training: float = 0.0


def compare(world: World, options: argparse.Namespace) -> list[dict[str, Any]]:
    from authors_clear import Clear
    from authors_loops import Grease, UNRExplainer

    loops: dict[str, Any] = {"unr-explainer": UNRExplainer, "grease": Grease, "clear": Clear}
    loop = loops[options.method](world, options.checkout)
    ours = world.paper(options.method, world.options)
    found = {"paper": ours, "authors": loop.run(same=True)}
    if loop.random and not options.double:
        found["authors, other draws"] = loop.run(same=False)
    rows = []
    for row, those in found.items():
        pairs = list(zip(those.sets, ours.sets, strict=True))
        sizes = [len(edges) for edges in those.sets if edges]
        rows.append(
            {
                "method": options.method,
                "data": options.data,
                "model": "lightgcn",
                "scope": "k-hop-3",
                "level": options.level,
                "k": options.k,
                "first": options.first if options.level == "item" else 0,
                "users": options.users,
                "units": len(those.sets),
                "options": options.options,
                "row": f"{row}, double precision" if options.double else row,
                "pn_s": round(world.displaced(those.sets), 4),
                "edits": round(sum(sizes) / len(sizes), 2) if sizes else None,
                "identical": round(sum(a == b for a, b in pairs) / len(pairs), 4),
                "overlap": round(sum(jaccard(a, b) for a, b in pairs) / len(pairs), 4),
                "seconds": round(those.seconds / len(those.sets), 3),
                "training_seconds": round(those.training, 1),
            }
        )
    return rows


def jaccard(a: frozenset[Any], b: frozenset[Any]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


class World:
    """The recommender, its graph and the units."""

    def __init__(self, options: argparse.Namespace) -> None:
        import numpy as np
        import yaml

        from cfbench_core.api import prepare
        from cfbench_core.config import create
        from cfbench_core.data_files import DataAccess
        from cfbench_core.lifecycle.models import load_state, save_state
        from cfbench_core.lifecycle.streams import generator
        from cfbench_recsys.splits import SplitConfig, make_split
        from cfbench_recsys.targets import Context

        self.options = yaml.safe_load(options.options)
        prepared = prepare(
            {
                "suite": "recsys",
                "data": options.data,
                "recommenders": [{"name": "lightgcn", "preset": "auto", "layers": 3}],
                "explainers": ["random-edges"],
                "protocol": {"k": options.k, "format": "explicit", "scope": [{"k-hop": 3}]},
            }
        )
        source = prepared.config.data[0].create()
        interactions = source.load(source.find(DataAccess()))
        split = make_split(interactions, SplitConfig(), generator(0, "split", interactions.name))
        self.model = create(prepared.plan.cells[0].stages["model"].parameters["model"])
        folder = options.model_folder or Path(tempfile.mkdtemp())
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.iterdir()):
            self.model.fit(
                split, functools.partial(generator, 0, "fit", interactions.name), lambda done, total: None
            )
            save_state(self.model.state(), folder)
        self.model.load_state(load_state(folder), split.profiles)
        self.graph = split.profiles
        drawn = generator(0, "users", interactions.name).permutation(split.explainable)[: options.users]
        self.targets = self._targets(np.sort(drawn), options)
        others = split.train.tolil()
        others[drawn] = 0
        training = others.tocsr()
        training.eliminate_zeros()
        streams = functools.partial(generator, 0, "authors")
        self.context = Context(self.model, self.graph, training, streams)

    def _targets(self, users: Any, options: argparse.Namespace) -> Any:
        import numpy as np

        from cfbench_recsys.edits import Edits
        from cfbench_recsys.ranking import top_k
        from cfbench_recsys.targets import Targets

        k, graph = options.k, self.graph
        blank = Targets.of(graph, users, np.zeros((len(users), 1)), k, "item", "full")
        lists = top_k(self.model.score_edits(Edits.nothing(users)), blank.history, blank.padding, k)
        if options.level == "item":
            first = min(options.first, k)
            users, lists = np.repeat(users, first), lists[:, :first].reshape(-1, 1)
        return Targets.of(graph, users, lists, k, options.level, "k-hop", hops=3)

    def paper(self, method: str, given: dict[str, Any]) -> Found:
        """The answers of the paper variant."""
        import dataclasses

        from cfbench_core.registry import installed
        from cfbench_core.specs import resolve
        from cfbench_recsys.targets import Answer

        spec = installed().find("recsys", "explainer", method).spec
        config = resolve(spec.config)
        nested = next(field for field in dataclasses.fields(config) if field.name == "paper").default_factory
        explainer = resolve(spec.target)(config(variant="paper", paper=nested(**given)))
        context, training = self.context, 0.0
        if hasattr(explainer, "prepare"):
            started = time.process_time()
            context = dataclasses.replace(context, state=explainer.prepare(context))
            training = time.process_time() - started
        started = time.process_time()
        edits = Answer.of(explainer.counterfactuals(self.targets, context)).edits
        seconds = time.process_time() - started
        return Found([_set(edits.take(row, row + 1)) for row in range(len(edits))], seconds, training)

    def edits(self, sets: list[frozenset[tuple[int, int]]], of: Any) -> Any:
        """Removals of ``sets[b]`` for unit ``of[b]``."""
        import numpy as np

        from cfbench_recsys.edits import REMOVE, Edits

        rows = np.repeat(np.arange(len(sets)), [len(edges) for edges in sets])
        edges = np.array([edge for edges in sets for edge in sorted(edges)], dtype=np.int64).reshape(-1, 2)
        ops = np.full(len(edges), REMOVE, dtype=np.int8)
        return Edits(self.targets.users[of], rows, edges[:, 0], edges[:, 1], ops)

    def ranks(self, sets: list[frozenset[tuple[int, int]]], of: Any) -> Any:
        """(B, T) ranks of the items of unit ``of[b]`` without the edges ``sets[b]``."""
        from cfbench_recsys.scoring import target_ranks

        return target_ranks(self.model, self.edits(sets, of), self.targets, of, self.graph)

    def displaced(self, sets: list[frozenset[tuple[int, int]]]) -> float:
        """PN-S."""
        import numpy as np

        return float((self.ranks(sets, np.arange(len(sets))) > self.targets.k).mean())


def _set(edits: Any) -> frozenset[tuple[int, int]]:
    return frozenset(zip(edits.edge_users.tolist(), edits.edge_items.tolist(), strict=True))


if __name__ == "__main__":
    sys.exit(main())
