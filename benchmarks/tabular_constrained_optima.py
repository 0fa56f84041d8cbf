"""Feasible optima with and without the constraints between columns in the programmes of optimum, mace and tree-optimum.

    python benchmarks/tabular_constrained_optima.py
    python benchmarks/tabular_constrained_optima.py --keep docs/results/tabular-constrained-optima

The first ``--factuals`` (20) test rows of page blocks (five constraints) and BCW (one) are explained, with the networks of
CF-tabular (``optimum``, ``mace``) and with 25 boosted trees that are trained here (``tree-optimum``); ``--seconds`` (10) for
each. ``constraints`` is the option of the protocol: by ``check`` the programmes do not contain them. Counterfactuals are
judged by their raw values alone (see ``tabular_feasible.py``). ``proven`` is the share of factuals with a proof,
``proven infeasible`` the share with a proof but without a feasible row. Needs the files of CF-tabular
(``CFBENCH_DATA_DIR``).
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dice_against_dice_ml import our_table
from results import keep
from tabular_feasible import _typed, faults

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.gradient_boosting import Config as BoostingConfig
from cfbench_tabular.classifiers.gradient_boosting import GradientBoosting
from cfbench_tabular.classifiers.mlp import from_weights, read_weights
from cfbench_tabular.datasets.base import DatasetConfig
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import complete
from cfbench_tabular.testing import fitted

SETS = ("bcw", "pbc")
EXPLAINERS = ("optimum", "mace", "tree-optimum")
SAME = ["dataset", "explainer", "constraints"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--factuals", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--explainers", nargs="+", default=EXPLAINERS)
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets:
        for row in measured(name, arguments):
            rows.append(row)
            print("  ".join(f"{value!s:>13}" for value in row.values()), flush=True)
    if arguments.keep:
        keep(Path(arguments.keep), rows, SAME, "python benchmarks/tabular_constrained_optima.py --keep NAME")


def measured(name: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    loaded = our_table(name, files)
    data = _typed(files.prepared_dataset(loaded), loaded, DatasetConfig())
    network: Any = from_weights(read_weights(files.network))
    background, labels = data.sample("train")
    context = Context(data.encoding, background, lambda unit: generator("benchmark", unit), labels=labels)
    vectors = data.sample("test")[0][: arguments.factuals]
    boosting: Any = fitted(GradientBoosting(BoostingConfig(trees=25)), data)
    for explainer in arguments.explainers:
        model = boosting if explainer == "tree-optimum" else network
        factuals = Factuals(vectors, predicted_classes(model, vectors), tuple(map(str, range(len(vectors)))))
        spec = installed().find("tabular", "explainer", explainer).spec
        made = resolve(spec.target)(resolve(str(spec.config))(seconds=arguments.seconds))
        for option in ("check", "search"):
            given = replace(context, respects_constraints=option == "search")
            started = time.process_time()
            found = Explanation.of(made.counterfactuals(model, factuals, given))
            seconds = (time.process_time() - started) / len(factuals)
            rows = found.stacked()[:, 0]
            valid = complete(rows)
            valid[valid] = predicted_classes(model, rows[valid]) != factuals.classes[valid]
            faulty = np.ones(len(rows), dtype=bool)
            fractional, forbidden, violated = faults(data, vectors[valid], rows[valid])
            faulty[valid] = fractional | forbidden | violated
            proven = found.details["proven"] == 1
            yield {
                "dataset": name,
                "explainer": explainer,
                "constraints": option,
                "factuals": len(factuals),
                "valid": round(float(valid.mean()), 3),
                "violated": round(float(violated.mean()), 3) if len(violated) else 0.0,
                "feasible": round(float((~faulty).mean()), 3),
                "proven": round(float(proven.mean()), 3),
                "proven infeasible": round(float((proven & valid & faulty).mean()), 3),
                "objective": round(float(np.nanmean(found.details["objective"])), 4),
                "seconds": round(seconds, 2),
            }


if __name__ == "__main__":
    main()
