"""BetaRCE next to the code that its authors published, on the same models and the same base counterfactuals.

    git clone https://github.com/istepka/betarce CHECKOUT
    python benchmarks/authors_betarce.py CHECKOUT --keep docs/results/authors-betarce

The authors' class ``BetaRob`` and their Growing Spheres are imported from the checkout, with functions of ours as their
models. Data sets of numbers; a network (``mlp``), 32 models trained again on bootstrap samples with other seeds for both,
and 30 others for the measurement; ``--factuals`` rows of each class (25), whose base counterfactual is the nearest training
row of the other class. delta 0.9, confidence 0.9.

Rows: ``base``; ``cfbench``, with its default options; ``authors``, their code with their settings (100 points in each of
up to 100 shells of 0.1), on numbers scaled to 0..1 by their range as in their experiments, without limits as there.
Columns: the share of factuals with a robust counterfactual; the share of the 30 models that put it into the wanted class;
L2 from the factual and from the base in standard deviations; the share within the observed ranges; CPU milliseconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import types

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from results import keep

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import MLP
from cfbench_tabular.classifiers.mlp import Config as MLPConfig
from cfbench_tabular.classifiers.retrained import bootstrapped
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.betarce import BetaRCE, Config
from cfbench_tabular.explainers.nearest_enemy import Config as NearestConfig
from cfbench_tabular.explainers.nearest_enemy import NearestEnemy
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray, IntArray, complete

DELTA = ALPHA = 0.9
SEEN, UNSEEN = 32, 30
NEAREST = "cfbench_tabular.explainers.nearest_enemy"
SPHERES = {"target_proba": 0.5, "max_iter": 100, "n_search_samples": 100, "p_norm": 2, "step": 0.1}
"""Of the authors' experiments (configs/config_exp.yaml)."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="folder of the authors' repository")
    parser.add_argument("--sets", nargs="+", default=["wine", "ecoli", "iris"])
    parser.add_argument("--factuals", type=int, default=25)
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    options = parser.parse_args()
    theirs = imported(options.checkout)
    rows = [row for name in options.sets for row in compared(name, options.factuals, theirs)]
    for row in rows:
        print(row)
    if options.keep:
        command = "python benchmarks/authors_betarce.py CHECKOUT"
        keep(Path(options.keep), rows, ["dataset", "factuals", "row"], command)


def imported(checkout: Path) -> Any:
    """The authors' class, without the rest of their package, which needs libraries that it does not use."""
    for package in ("theirs", "theirs.explainers", "theirs.explainers.posthoc"):
        sys.modules[package] = types.ModuleType(package)
    data = types.ModuleType("theirs.datasets")
    data.Dataset = data.DatasetPreprocessor = object  # type: ignore[attr-defined]
    base = types.ModuleType("theirs.explainers.base")
    sys.modules |= {"theirs.datasets": data, "theirs.explainers.base": base}
    folder = checkout / "src" / "explainers"
    _load("theirs.explainers.base.base_explainer", folder / "base" / "base_explainer.py")
    spheres = _load("theirs.explainers.base.growingspheres", folder / "base" / "growingspheres.py")
    base.GrowingSpheresExplainer = spheres.GrowingSpheresExplainer  # type: ignore[attr-defined]
    _load("theirs.explainers.posthoc.posthoc_explainer", folder / "posthoc" / "posthoc_explainer.py")
    return _load("theirs.explainers.posthoc.betarob", folder / "posthoc" / "betarob.py").BetaRob


def _load(name: str, file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def trained(data: PreparedDataset, *names: str | int) -> MLP:
    model = MLP(MLPConfig())
    model.fit(data, generator("benchmark", "fit", *names), lambda done, total: None)
    return model


def compared(name: str, most: int, theirs: Any) -> list[dict[str, Any]]:
    """The rows of one data set."""
    component = installed().find("tabular", "dataset", name)
    dataset = resolve(component.spec.target)(resolve(str(component.spec.config))())
    found = [dataset.find(DataAccess())] if hasattr(dataset, "find") else []
    data = PreparedDataset.make(dataset.load(*found), 0.2, 0.2, generator("benchmark", "split", name))
    assert data.encoding.numeric.all(), f"{name} has categories"
    model = trained(data, name)
    retrained = {
        what: tuple(
            trained(bootstrapped(data, generator("benchmark", "rows", name, what, n)), name, what, n)
            for n in range(count)
        )
        for what, count in (("seen", SEEN), ("unseen", UNSEEN))
    }
    classes = predicted_classes(model, data.vectors)
    chosen = np.concatenate([np.flatnonzero(classes == label)[:most] for label in (0, 1)])
    factuals = Factuals(data.vectors[chosen], classes[chosen], tuple(map(str, chosen)))
    context = Context(
        data.encoding,
        data.sample("train")[0],
        lambda unit: generator("benchmark", "unit", name, unit),
        retrained=retrained["seen"],
    )
    starts = NearestEnemy(NearestConfig()).counterfactuals(model, factuals, context)
    base: Any = {
        "component": "tabular/explainer/nearest-enemy",
        "target": f"{NEAREST}:NearestEnemy",
        "config": f"{NEAREST}:Config",
        "options": {},
        "files": {},
    }
    runs: dict[str, Callable[[], FloatArray]] = {
        "base": lambda: starts,
        "cfbench": lambda: (
            BetaRCE(Config(base=base, delta=DELTA, alpha=ALPHA, models=SEEN))
            .counterfactuals(model, factuals, context)
            .counterfactuals
        ),
        "authors": lambda: of_authors(theirs, model, retrained["seen"], factuals.classes, starts, data),
    }
    rows = []
    for row, run in runs.items():
        started = time.process_time()
        answers = run()
        seconds = time.process_time() - started
        there = complete(answers)
        wanted = 1 - factuals.classes[there]
        votes = [predicted_classes(one, answers[there]) == wanted for one in retrained["unseen"]]
        low, high = data.encoding.bounds
        inside = ((answers[there] >= low) & (answers[there] <= high)).all(axis=1)
        rows.append(
            {
                "dataset": name,
                "factuals": len(chosen),
                "row": row,
                "answered": round(float(there.mean()), 3),
                "retraining": round(float(np.mean(votes)), 3),
                "L2": round(float(np.linalg.norm(answers - factuals.vectors, axis=1)[there].mean()), 3),
                "L2 to base": round(float(np.linalg.norm(answers - starts, axis=1)[there].mean()), 3),
                "in range": round(float(inside.mean()), 3),
                "ms": round(1000 * seconds / len(chosen), 1),
            }
        )
    return rows


def of_authors(
    theirs: Any,
    model: MLP,
    models: tuple[MLP, ...],
    classes: IntArray,
    starts: FloatArray,
    data: PreparedDataset,
) -> FloatArray:
    """(B, d) their counterfactuals around the starts (B, d), in our encoding."""
    import pandas as pd

    low, high = data.encoding.bounds
    span = np.where(high > low, high - low, 1.0)

    def crisp(one: MLP) -> Callable[[FloatArray], IntArray]:
        return lambda rows: predicted_classes(one, low + np.atleast_2d(np.asarray(rows, dtype=float)) * span)

    names = [column.name for column in data.encoding.columns]
    prepared = types.SimpleNamespace(
        X_train=pd.DataFrame(columns=names),
        continuous_columns=names,
        encoder=types.SimpleNamespace(get_feature_names_out=lambda: np.array([])),
    )
    np.random.seed(0)  # their code draws from the global stream
    found = np.full_like(starts, np.nan)
    for place, start in enumerate(starts):
        explainer = theirs(
            None, prepared, crisp(model), None, [crisp(one) for one in models], SPHERES, 0.5, 0
        )
        explainer.prep()
        answer, _ = explainer.generate((start - low) / span, int(1 - classes[place]), DELTA, ALPHA)
        if answer is not None:
            found[place] = low + np.asarray(answer, dtype=float).reshape(-1) * span
    return found


if __name__ == "__main__":
    main()
