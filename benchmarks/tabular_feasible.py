"""Share of feasible counterfactuals of each explainer, with the networks of CF-tabular and the types of the columns.

    python benchmarks/tabular_feasible.py
    python benchmarks/tabular_feasible.py --sets adult --explainers nice '{name: optimum, seconds: 2}'
    python benchmarks/tabular_feasible.py --version after --keep docs/results/tabular-feasible

The first ``--factuals`` (100) test rows are explained with immutable and one-way columns (``CONSTRAINTS``). A
counterfactual is judged by its raw values alone, without the code that is measured: is it in the other class
(``valid``), is a number without the decimals of its column (``fractional``), outside the range of the table or
against an immutable or one-way column (``not_allowed``), is a constraint between columns violated (``violated``)?
``feasible`` is the share of factuals with a counterfactual that is valid and has none of these faults; the other shares
are those of the valid counterfactuals. Times are CPU milliseconds
per factual, of one call on one thread. Needs the files of CF-tabular (``CFBENCH_DATA_DIR``).
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
import yaml
from dice_against_dice_ml import our_table
from results import keep

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import from_weights, read_weights
from cfbench_tabular.constrained_search import explain_with_constraints
from cfbench_tabular.datasets.base import DatasetConfig, apply_options
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import Table, complete

CONSTRAINTS: dict[str, dict[str, Any]] = {
    "adult": {"immutable": ("race", "sex", "native-country"), "direction": {"age": "up"}},
    "statlog-german-credit": {"immutable": ("foreign_worker",), "direction": {"age": "up"}},
    "default-of-credit-card-clients": {"immutable": ("SEX",), "direction": {"AGE": "up"}},
    "student-performance": {"immutable": ("sex", "address"), "direction": {"age": "up"}},
}
SETS = sorted(set(NAMES) - {"internet-advertisements", "isolet", "sdd"})  # whose raw data is not available
EXPLAINERS = [
    "nearest-enemy",
    "nice",
    "random",
    "sedc",
    "lore",
    "growing-spheres",
    "cadex",
    "ml-explain",
    "dice",
    "synas",
    "alibic",
    "alibic-nograd",
]
SAME = ["dataset", "explainer", "version"]
"""The key of a row: a new measurement replaces an older one."""
MOST_DECIMALS = 4


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--factuals", type=int, default=100)
    parser.add_argument("--explainers", nargs="+", default=EXPLAINERS)
    parser.add_argument("--version", default="after", help="a label of the rows")
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets:
        for row in measured(name, arguments):
            rows.append(row)
            print("  ".join(f"{value!s:>16}" for value in row.values()), flush=True)
    if arguments.keep:
        keep(Path(arguments.keep), rows, SAME, "python benchmarks/tabular_feasible.py --keep NAME")


def measured(name: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    loaded = our_table(name, files)
    data = _typed(files.prepared_dataset(loaded), loaded, DatasetConfig(**CONSTRAINTS.get(name, {})))
    model = from_weights(read_weights(files.network))
    background, labels = data.sample("train")
    context = Context(data.encoding, background, lambda unit: generator("benchmark", unit), labels=labels)
    vectors = data.sample("test")[0][: arguments.factuals]
    factuals = Factuals(vectors, predicted_classes(model, vectors), tuple(map(str, range(len(vectors)))))
    for reference in map(yaml.safe_load, arguments.explainers):
        options = {"name": reference} if isinstance(reference, str) else dict(reference)
        label = options.pop("label", options["name"])
        spec = installed().find("tabular", "explainer", options.pop("name")).spec
        explainer = resolve(spec.target)(resolve(str(spec.config))(**options))
        started = time.process_time()
        found = explain_with_constraints(explainer, model, factuals, context).stacked()[:, 0]
        milliseconds = 1e3 * (time.process_time() - started) / len(factuals)
        valid = complete(found)
        valid[valid] = predicted_classes(model, found[valid]) != factuals.classes[valid]
        fractional, forbidden, violated = faults(data, vectors[valid], found[valid])
        changes = np.linalg.norm(found[valid] - vectors[valid], axis=1)
        yield {
            "dataset": name,
            "explainer": label,
            "version": arguments.version,
            "factuals": len(factuals),
            "valid": round(float(valid.mean()), 3),
            "fractional": round(float(fractional.mean()), 3),
            "not_allowed": round(float(forbidden.mean()), 3),
            "violated": round(float(violated.mean()), 3),
            "feasible": round(float((~fractional & ~forbidden & ~violated).sum() / len(factuals)), 3),
            "L2": round(float(changes.mean()), 3),
            "ms": round(milliseconds, 2),
        }


def _typed(data: PreparedDataset, loaded: Table, config: DatasetConfig) -> PreparedDataset:
    """The published rows and scales, with the types of the columns as our schema reads them, and constraints."""
    types = {column.name: column for column in loaded.columns}
    columns = tuple(replace(types[own.name], levels=own.levels) for own in data.table.columns)
    table = apply_options(replace(data.table, columns=columns), config)
    return replace(data, table=table, encoding=replace(data.encoding, columns=table.columns))


def faults(data: PreparedDataset, before: Any, after: Any) -> tuple[Any, Any, Any]:
    """(n,) each: of n answers (n, d) to rows (n, d), which are fractional, not allowed, and violate a constraint."""
    encoding, numbers = data.encoding, {}
    fractional, forbidden = np.zeros(len(after), dtype=bool), np.zeros(len(after), dtype=bool)
    for place, (column, block) in enumerate(zip(encoding.columns, encoding.blocks, strict=True)):
        changed = (np.abs(after[:, block] - before[:, block]) > 1e-9).any(axis=1)
        forbidden |= changed & column.immutable
        rise = after[:, block][:, 0] - before[:, block][:, 0]
        forbidden |= (rise < -1e-9) & (column.direction == "up") | (rise > 1e-9) & (
            column.direction == "down"
        )
        if column.levels:
            continue
        seen = data.table.values[column.name]
        raw = after[:, block][:, 0] * encoding.scale[place] + encoding.mean[place]
        width = 1e-9 * max(1.0, float(np.abs(seen).max()))
        numbers[column.name] = np.round(raw, 9)
        forbidden |= (raw < seen.min() - width) | (raw > seen.max() + width)
        decimals = (n for n in range(MOST_DECIMALS + 1) if (np.round(seen, n) == seen).all())
        digits = next(decimals, None)
        if digits is not None:
            fractional |= changed & (np.abs(np.round(raw, digits) - raw) > width)
    violated = np.zeros(len(after), dtype=bool)
    for constraint in data.table.constraints:
        violated |= ~constraint.holds(numbers)
    return fractional, forbidden, violated


if __name__ == "__main__":
    main()
