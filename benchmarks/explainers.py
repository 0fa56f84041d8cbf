"""How long one explanation takes, and the number of model queries.

    python benchmarks/explainers.py amazon-fashion mf
    python benchmarks/explainers.py ml-1m mf --explainers lime-rs greedy --keep docs/results/explainer-speed
    python benchmarks/explainers.py amazon-fashion lightgcn --scope '{k-hop: 3}' --users 20

The lists of ``--users`` users (500), top ``--k`` (5), at item level, each explainer in a process of its own, on
one thread; presets that are named like the data set (recommender) or ``DATASET-RECOMMENDER`` (explainer) are used. The
first batch is done twice, and timed the second time: what a method computes once for all users is not in it.
Times are CPU time of explaining alone: what stands in the way of other programs does not count, but the
processor's speed does, so compare within one machine. Explicit answers are derived, verified and pruned as in a run.
"sets" are partial answers that a search evaluated on sums without querying the model; "metrics" is the default
metrics of importances.
``--keep NAME`` writes NAME.csv (rows of other explainers stay) and NAME.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from results import keep

COMMAND = "python benchmarks/explainers.py DATASET RECOMMENDER ... --keep NAME"
METRICS = "metrics"
SAME = ["dataset", "model", "explainer", "format", "level", "scope", "k"]
"""What a row is about: one that is measured again takes the place of an older one."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", help="with options: '{name: synthetic, users: 9000, label: x}'")
    parser.add_argument("recommender", help="with options: '{name: mf, dimensions: 64}'")
    parser.add_argument(
        "--explainers", nargs="+", help="with options: '{name: shap, exact: never, label: x}'"
    )
    parser.add_argument("--formats", nargs="+", default=["implicit", "explicit"])
    parser.add_argument("--scope", help="of the edits on graphs: user-only, '{k-hop: 2}'")
    parser.add_argument("--level", default="item")
    for name, default in (("users", 500), ("k", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--chunk", type=int, default=50, help="users of a batch; 50 is a run's default")
    parser.add_argument("--plain", action="store_true", help="explainers without the presets of the data set")
    parser.add_argument("--model-folder", help="where the trained recommender is, or will be, stored")
    parser.add_argument("--keep", help="where to keep the table, without its ending")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options)))
        return
    print(
        f"{'':28s}{'format':10s}{'ms each':>10s}{'evaluations':>13s}{'pre-training':>14s}{'peak memory':>13s}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model_folder or temporary
        Path(folder).mkdir(parents=True, exist_ok=True)
        for explainer in options.explainers or [*all_explainers(), METRICS]:
            rows = in_a_process(explainer, folder)
            for row in rows:
                print(line(row), flush=True)
            if options.keep and rows:
                keep(Path(options.keep), rows, SAME, COMMAND)


def line(row: Mapping[str, Any]) -> str:
    evaluations, prepared = row.get("evaluations", ""), row.get("pretraining_seconds", "")
    memory = row.get("peak_memory_mb", "")
    return (
        f"{row['explainer']:28s}{row['format']:10s}{row['ms']:10.3f}{evaluations:>13}{prepared:>12} s"
        f"{memory:>10} MB"
    )


def all_explainers() -> list[str]:
    from cfbench_core.registry import installed

    return installed().names("recsys", "explainer")


def in_a_process(explainer: str, folder: str) -> list[dict[str, Any]]:
    command = [sys.executable, *sys.argv, "--one", explainer, "--model-folder", folder]
    completed = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if completed.returncode:
        sys.exit(f"{explainer}: failed")
    rows: list[dict[str, Any]] = json.loads(completed.stdout.splitlines()[-1])
    return rows


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each format that the explainer has for this recommender."""
    import resource

    import torch
    import yaml

    torch.set_num_threads(1)
    study = Study(options)
    if options.one == METRICS:
        return [study.row(METRICS, "implicit", study.time_metrics())]
    rows = []
    reference = yaml.safe_load(options.one)
    for format in options.formats:
        cell = study.cell(reference, format)
        if cell.skipped:
            print(f"{cell.id}: {cell.skipped}", file=sys.stderr)
            continue
        measured = study.time_explanations(cell, format)
        measured["peak_memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        if options.scope:
            measured["scope"] = str(cell.labels["scope"])
            measured["edges_in_scope"] = study.edges_in_scope(cell)
        rows.append(study.row(str(cell.labels["explainer"]), format, measured))
    return rows


class Study:
    """The recommender, and the chunks of units to explain."""

    def __init__(self, options: argparse.Namespace) -> None:
        import numpy as np
        import yaml

        from cfbench_core.config import create
        from cfbench_core.data_files import DataAccess
        from cfbench_core.lifecycle.streams import generator
        from cfbench_recsys.splits import SplitConfig, make_split

        self.options = options
        self.dataset = yaml.safe_load(options.dataset)
        self.dataset_label = options.dataset if isinstance(self.dataset, str) else self.dataset["label"]
        self.recommender = yaml.safe_load(options.recommender)
        self.recommender_name = (
            options.recommender if isinstance(self.recommender, str) else self.recommender["name"]
        )
        prepared = self.prepared("random", "implicit", scope=None)  # 'random' has no scope on graphs
        self.model_label = str(prepared.plan.cells[0].labels["model"])
        source = prepared.config.data[0].create()
        self.interactions = source.load(source.find(DataAccess()))
        self.split = make_split(
            self.interactions, SplitConfig(), generator(0, "split", self.interactions.name)
        )
        self.model = self.fitted(create(prepared.plan.cells[0].stages["model"].parameters["model"]))
        pool = self.split.explainable
        drawn = generator(0, "users", self.interactions.name).permutation(len(pool))[: options.users]
        self.users = np.sort(pool[drawn])

    def prepared(self, explainer: Any, format: str, scope: str | None) -> Any:
        import yaml

        from cfbench_core.api import prepare

        scopes = {"scope": [yaml.safe_load(scope)]} if scope else {}
        presets = [] if self.options.plain else [f"{self.dataset_label}-{self.recommender_name}"]
        return prepare(
            {
                "suite": "recsys",
                "data": self.dataset,
                "recommenders": [with_preset("recommender", self.recommender, [self.dataset_label])],
                "explainers": [with_preset("explainer", explainer, presets)],
                "protocol": {
                    "k": self.options.k,
                    "level": self.options.level,
                    "format": format,
                    "users": self.options.users,
                    **scopes,
                },
            }
        )

    def cell(self, explainer: Any, format: str) -> Any:
        return self.prepared(explainer, format, self.options.scope).plan.cells[0]

    def fitted(self, model: Any) -> Any:
        """Trained once, by whichever process comes first."""
        from cfbench_core.lifecycle.models import load_state, save_state
        from cfbench_core.lifecycle.streams import generator

        folder = Path(self.options.model_folder)
        if not list(folder.iterdir()):
            model.fit(
                self.split, partial(generator, 0, "fit", self.interactions.name), lambda done, total: None
            )
            save_state(model.state(), folder)
        model.load_state(load_state(folder), self.split.profiles)
        return model

    def chunks(self, scope: str) -> Iterator[Any]:
        import numpy as np

        from cfbench_recsys.config import Protocol
        from cfbench_recsys.edits import Edits
        from cfbench_recsys.ranking import top_k
        from cfbench_recsys.scope_labels import parse_scope
        from cfbench_recsys.scoring import score_blocks
        from cfbench_recsys.targets import Targets

        graph, k = self.split.profiles, self.options.k
        kind, hops = parse_scope(scope)
        for start in range(0, len(self.users), self.options.chunk):
            users = self.users[start : start + self.options.chunk]
            blank = Targets.of(graph, users, np.zeros((len(users), 1)), k, "item", "user-vector")
            scored = [scores for _, scores in score_blocks(self.model, Edits.nothing(users), graph)]
            lists = top_k(np.concatenate(scored), blank.history, blank.padding, k)
            full = (lists >= 0).all(axis=1)
            users, lists = users[full], lists[full]
            if self.options.level == "item":
                users, lists = np.repeat(users, k), lists.reshape(-1, 1)
            yield Targets.of(
                graph, users, lists, k, self.options.level, kind, hops=hops, max_edits=Protocol().max_edits[0]
            )

    def edges_in_scope(self, cell: Any) -> float:
        """How many edges a unit may edit, on average."""
        from cfbench_recsys.scopes import edges_in_scope

        targets = next(self.chunks(str(cell.labels["scope"])))
        return round(len(edges_in_scope(self.split.profiles, targets).rows) / len(targets), 1)

    def context(self, state: Any = None) -> Any:
        import functools

        import numpy as np
        from scipy import sparse

        from cfbench_core.lifecycle.streams import generator
        from cfbench_recsys.scoring import counted
        from cfbench_recsys.targets import Context

        others = np.ones(self.split.train.shape[0])
        others[self.users] = 0.0
        training = (sparse.diags(others) @ self.split.train).tocsr()
        training.eliminate_zeros()
        streams = functools.partial(generator, 0, "benchmark")
        return Context(counted(self.model), self.split.profiles, training, streams, state)

    def time_explanations(self, cell: Any, format: str) -> dict[str, Any]:
        """CPU seconds and model evaluations of one explanation; seconds of pre-training."""
        from cfbench_core.config import create
        from cfbench_recsys.answers import derived, postprocessed
        from cfbench_recsys.targets import Answer

        stage = cell.stages["explanations"]
        explainer = create(stage.inputs.get("source", stage).parameters["explainer"])
        settings = stage.parameters.get("postprocess", {})  # importances have none
        prepared, state = 0.0, None
        if hasattr(explainer, "prepare"):
            started = time.process_time()
            state = explainer.prepare(self.context())
            prepared = time.process_time() - started
        context = self.context(state)
        looked_at: list[float] = []

        def explain(targets: Any) -> None:
            if format == "implicit":
                explainer.importances(targets, context)
                return
            if hasattr(explainer, "counterfactuals"):
                answer = Answer.of(explainer.counterfactuals(targets, context))
                edits = answer.edits
                looked_at.extend(answer.details.get("sets", ()))
            else:
                importances = explainer.importances(targets, context)
                edits = derived(context.model, targets, importances, context.interactions, settings["derive"])
            postprocessed(context.model, targets, edits, context.interactions, settings)

        seconds, units = self._timed(
            explain,
            str(cell.labels["scope"]),
            lambda: (setattr(context.model, "queries", 0), looked_at.clear()),
        )
        return {
            "ms": round(1e3 * seconds / units, 4),
            "evaluations": round(context.model.queries / units, 2),
            "sets": round(float(sum(looked_at)) / len(looked_at), 1) if looked_at else None,
            "pretraining_seconds": round(prepared, 1),
        }

    def time_metrics(self) -> dict[str, Any]:
        import numpy as np

        from cfbench_core.config import create
        from cfbench_recsys.metrics.base import compute_metrics
        from cfbench_recsys.observations import ImplicitObservations

        cell = self.cell("random", "implicit")
        metrics = [create(entry["metric"]) for entry in cell.stages["scores"].parameters["metrics"]]
        random = np.random.default_rng(1)

        def score(targets: Any) -> None:
            importances = random.random(targets.history.shape)
            compute_metrics(
                metrics, ImplicitObservations(self.model, targets, importances, self.split.profiles)
            )

        seconds, units = self._timed(score, str(cell.labels["scope"]), lambda: None)
        return {"ms": round(1e3 * seconds / units, 4)}

    def _timed(
        self, action: Callable[[Any], None], scope: str, after_warm_up: Callable[[], object]
    ) -> tuple[float, int]:
        chunks = list(self.chunks(scope))
        action(chunks[0])
        after_warm_up()
        started = time.process_time()
        for targets in chunks:
            action(targets)
        return time.process_time() - started, sum(map(len, chunks))

    def row(self, explainer: str, format: str, measured: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        about = {
            "dataset": self.dataset_label,
            "model": self.model_label,
            "explainer": explainer,
            "format": format,
            "level": self.options.level,
            "scope": "",
            "k": self.options.k,
            "users": len(self.users),
            "interactions": self.split.profiles.nnz,
            "history": round(float(np.diff(self.split.profiles.indptr)[self.users].mean()), 1),
        }
        return {**about, **measured}


def with_preset(kind: str, reference: Any, names: list[str]) -> Any:
    """The reference with the first of these presets that the component has; one that has options stays."""
    from cfbench_core.presets import presets_of
    from cfbench_core.registry import installed

    if not isinstance(reference, str):
        return reference
    known = presets_of(installed().find("recsys", kind, reference).spec)
    found = next((name for name in names if name in known), None)
    return {"name": reference, "preset": found} if found else reference


if __name__ == "__main__":
    main()
