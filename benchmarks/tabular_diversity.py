"""How diverse the sets of DiCE are, on MAGIC and Adult with the networks of CF-tabular.

    python benchmarks/tabular_diversity.py --keep docs/results/tabular-diversity

Of the first ``--factuals`` training rows (100), ``--several`` (4) counterfactuals each, with the default options and others
(``OPTIONS``), and of its variants for any classifier. Columns: the share of valid counterfactuals; over the pairs in sets,
the median L2 and the share below 0.05 (L2 of encoded rows, numbers in standard deviations); the mean determinant (DiCE's
kernel) of complete sets; the mean L2 distance from the factual and share of unchanged encoded columns; CPU milliseconds
for each set, one thread.
Needs the files of CF-tabular (``CFBENCH_DATA_DIR``).
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from pathlib import Path
from typing import Any

import numpy as np
from dice_against_dice_ml import our_table
from results import keep
from tabular_explainers import made

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import from_weights, read_weights
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.counterfactual_sets import diversity, inverse_deviations
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import FloatArray, complete

OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "dice": ("dice", {}),
    "without determinant": ("dice", {"diversity": 0.0}),
    "no minimum distance": ("dice", {"minimum_distance": 0.0}),
    "not made sparse": ("dice", {"sparsity": "none"}),
    "dice-random": ("dice-random", {}),
    "dice-genetic": ("dice-genetic", {}),
    "dice-kdtree": ("dice-kdtree", {}),
}
CLOSE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["magic", "adult"])
    parser.add_argument("--factuals", type=int, default=100)
    parser.add_argument("--several", type=int, default=4)
    parser.add_argument("--options", nargs="+", default=list(OPTIONS), choices=list(OPTIONS))
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets:
        for label in arguments.options:
            rows.append({"dataset": name, "options": label, **measured(name, *OPTIONS[label], arguments)})
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    if arguments.keep:
        command = "python benchmarks/tabular_diversity.py --keep NAME"
        keep(Path(arguments.keep), rows, ["dataset", "options"], command)


def measured(
    name: str, explainer: str, options: dict[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    data = files.prepared_dataset(our_table(name, files))
    model = from_weights(read_weights(files.network))
    background, _ = data.sample("train")
    vectors = background[: arguments.factuals]
    factuals = Factuals(vectors, predicted_classes(model, vectors), tuple(map(str, range(len(vectors)))))
    context = Context(
        data.encoding,
        background,
        lambda unit: generator("benchmark", unit),
        counterfactuals_per_instance=arguments.several,
    )
    started = time.process_time()
    sets = Explanation.of(made(explainer, **options).counterfactuals(model, factuals, context)).stacked()
    seconds = time.process_time() - started
    return {
        **of_sets(sets, vectors, inverse_deviations(background, data.encoding)),
        "ms": round(1e3 * seconds / len(vectors), 2),
    }


def of_sets(sets: FloatArray, factuals: FloatArray, weights: FloatArray) -> dict[str, float]:
    """Of sets (n, k, d) of counterfactuals to factuals (n, d); ``weights`` (d,) are those of DiCE's distance."""
    one, other = np.triu_indices(sets.shape[1], 1)
    pairs = np.linalg.norm(sets[:, one] - sets[:, other], axis=2)
    pairs = pairs[~np.isnan(pairs)]
    changes = sets - factuals[:, None]
    whole = complete(sets.reshape(len(sets), -1))
    numbers = {
        "valid": complete(sets.reshape(-1, sets.shape[2])).mean(),
        "median pair L2": np.median(pairs),
        f"pairs below {CLOSE}": (pairs < CLOSE).mean(),
        "determinant": diversity(sets[whole], weights).mean(),
        "L2": np.nanmean(np.linalg.norm(changes, axis=2)),
        "sparsity": np.nanmean(np.where(np.isnan(changes), np.nan, np.abs(changes) < 5e-5)),
    }
    return {name: round(float(value), 3) for name, value in numbers.items()}


if __name__ == "__main__":
    main()
