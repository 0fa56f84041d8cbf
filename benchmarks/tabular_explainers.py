"""Time and quality of counterfactuals on MAGIC and Adult with the networks of CF-tabular.

    python benchmarks/tabular_explainers.py
    python benchmarks/tabular_explainers.py --sets adult --factuals 100 --explainers nice '{name: dice, one_hot: penalise}'
    python benchmarks/tabular_explainers.py --keep docs/results/tabular-speed

The first ``--factuals`` training rows (100, then 10,000) are explained in one call, after a warm-up call for ten of
them; explainers of more than ``--slow`` ms (2) per row get at most 1,000. The table contains the CPU milliseconds of the
call alone, one thread; the share of valid counterfactuals, and over these the means of L2 and of the share of unchanged
encoded columns. Needs the files of CF-tabular (``CFBENCH_DATA_DIR``).
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from dice_against_dice_ml import our_table
from results import keep

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.counting import CountedModel
from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import MLP, from_weights, read_weights
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.steps.chunks import Chunk
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import complete

EXPLAINERS = [
    "nearest-enemy",
    "cadex",
    "ml-explain",
    "nice",
    "dice",
    "growing-spheres",
    "sedc",
    "synas",
    "alibic",
    "alibic-nograd",
    "lore",
    "random",
]
WARM_UP, AT_MOST = 10, 1_000
SAME = ["dataset", "explainer", "factuals"]
"""The key of a row: a new measurement replaces an older one."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["magic", "adult"])
    parser.add_argument("--factuals", nargs="+", type=int, default=[100, 10_000])
    parser.add_argument("--explainers", nargs="+", default=EXPLAINERS)
    parser.add_argument(
        "--slow", type=float, default=2.0, help="ms per row above which at most 1,000 rows are explained"
    )
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets:
        for row in measured(name, arguments):
            rows.append(row)
            print("  ".join(f"{value!s:>16}" for value in row.values()), flush=True)
    if arguments.keep:
        keep(Path(arguments.keep), rows, SAME, "python benchmarks/tabular_explainers.py --keep NAME")


def measured(name: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    data = files.prepared_dataset(our_table(name, files))
    model = from_weights(read_weights(files.network))
    background, labels = data.sample("train")
    context = Context(data.encoding, background, lambda unit: generator("benchmark", unit), labels=labels)
    for reference in map(yaml.safe_load, arguments.explainers):
        options = {"name": reference} if isinstance(reference, str) else dict(reference)
        label = options.pop("label", options["name"])
        explainer, slow = made(**options), False
        for count in arguments.factuals:
            size = min(count, AT_MOST if slow else count, len(background))
            row = timed(explainer, model, background[:size], context)
            slow = row["ms"] > arguments.slow
            yield {"dataset": name, "explainer": label, "factuals": size, **row}


def made(name: str, **options: Any) -> Any:
    spec = installed().find("tabular", "explainer", name).spec
    return resolve(spec.target)(resolve(str(spec.config))(**options))


def timed(explainer: Any, model: MLP, vectors: Any, context: Context) -> dict[str, Any]:
    factuals = Factuals(vectors, predicted_classes(model, vectors), tuple(map(str, range(len(vectors)))))
    few = Factuals(vectors[:WARM_UP], factuals.classes[:WARM_UP], factuals.units[:WARM_UP])
    explainer.counterfactuals(model, few, context)
    counted = CountedModel(model, Chunk.queries)
    started = time.process_time()
    found = Explanation.of(explainer.counterfactuals(counted, factuals, context)).stacked()[:, 0]
    seconds = time.process_time() - started
    valid = complete(found)
    valid[valid] = predicted_classes(model, found[valid]) != factuals.classes[valid]
    changes = found[valid] - vectors[valid]
    return {
        "ms": round(1e3 * seconds / len(vectors), 4),
        "evaluations": round(counted.queries / len(vectors), 1),
        "valid": round(float(valid.mean()), 4),
        "L2": round(float(np.linalg.norm(changes, axis=1).mean()), 3),
        "sparsity": round(float((np.abs(changes) < 5e-5).mean()), 3),
    }


if __name__ == "__main__":
    main()
