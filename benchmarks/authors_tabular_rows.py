"""What the comparisons of tabular explainers with their authors' code share: a case, our answers, the rows of a table.

A case is a data set of CF-tabular with the network of the study (its weights as NumPy arrays, to be put into Keras or
torch), the first factuals of each class in turn, and the training rows. Immutable and one-way columns and constraints
between columns are left out for both sides unless ``constrained``, because most of the authors' programs know none.
Needs the files of CF-tabular (``CFBENCH_DATA_DIR``).

Rows of the table, for a method, data set, network and number of factuals: ``paper``, our explainer with its preset
``as-published``; ``authors``, their code; further rows where their code is random (``authors, other draws``) or runs in
another precision (``authors, double precision``). Columns:

- validity: share of the factuals with an answer that the network, in double precision, puts into the other class;
- L2, sparsity: means over the valid answers: the distance in standard deviations, and the share of encoded columns
  that change by less than 5e-5;
- identical: share of the factuals whose answer equals ours within ``tolerance`` in every encoded column, or for which
  neither has an answer;
- same answered: share of the factuals for which both or neither have an answer;
- L2 between: mean distance of the two answers where both have one;
- seconds per row: wall time of the call, its preparation left out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from dice_against_dice_ml import our_table
from results import keep

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import MLP, from_weights, read_weights
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SETS = ("magic", "adult", "statlog-german-credit")
SAME_ANSWER = 1e-4
"""The default of ``tolerance``: a single-precision program rounds to about 1e-6 per step."""
UNCHANGED = 5e-5
"""A column that changes by less counts as unchanged, as in CF-tabular, which rounds to four decimals."""
SEARCHES = (
    "python benchmarks/authors_tabular_searches.py METHOD CHECKOUT "
    "(LORE: python benchmarks/authors_tabular_lore.py CHECKOUT)"
)
"""The command of the table that both write."""
KEY = ["method", "data", "model", "factuals", "row"]


@dataclass(frozen=True)
class Case:
    """What both sides get."""

    name: str
    data: PreparedDataset
    model: MLP
    factuals: Factuals
    context: Context


@dataclass(frozen=True)
class Answers:
    """Counterfactuals (n, d), encoded, NaN where there is none, and wall seconds for each row."""

    counterfactuals: FloatArray
    seconds: float


def case(name: str, count: int, *, constrained: bool = False) -> Case:
    """``count`` factuals of the data set, those of X0 and X1 in turn."""
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    table = our_table(name, files)
    if not constrained:
        free = tuple(replace(column, immutable=False, direction="any") for column in table.columns)
        table = replace(table, columns=free, constraints=())
    data = files.prepared_dataset(table)
    model = from_weights(read_weights(files.network))
    found, _, _ = files.factual_rows(data, count)
    classes = predicted_classes(model, data.vectors[found])
    turns = [np.flatnonzero(classes == label) for label in (0, 1)]
    order = np.argsort(np.concatenate([np.arange(len(turn)) for turn in turns]), kind="stable")
    chosen = found[np.concatenate(turns)[order][:count]]
    vectors = data.vectors[chosen]
    factuals = Factuals(vectors, predicted_classes(model, vectors), tuple(map(str, chosen)))
    background, labels = data.sample("train")
    context = Context(data.encoding, background, lambda unit: generator("benchmark", unit), labels=labels)
    return Case(name, data, model, factuals, context)


def explainer(name: str, preset: str = "as-published", **options: Any) -> Any:
    """An explainer of cfbench with the options of a preset, some of them replaced."""
    spec = installed().find("tabular", "explainer", name).spec
    config = resolve(str(spec.config))
    return resolve(spec.target)(config(**{**presets_of(spec)[preset].options, **options}))


def our_answers(given: Case, name: str, preset: str = "as-published", **options: Any) -> Answers:
    """The first counterfactual of each factual."""
    made = explainer(name, preset, **options)
    return timed(
        lambda: Explanation.of(made.counterfactuals(given.model, given.factuals, given.context)).stacked()[
            :, 0
        ],
        len(given.factuals),
    )


def subset(
    given: Case, answers: Mapping[str, Answers], chosen: BoolArray | IntArray
) -> tuple[Case, dict[str, Answers]]:
    """Some factuals of a case, also several times, and the answers for them."""
    vectors, classes, units = given.factuals.vectors, given.factuals.classes, np.array(given.factuals.units)
    factuals = Factuals(vectors[chosen], classes[chosen], tuple(units[chosen].tolist()))
    parts = {
        row: replace(found, counterfactuals=found.counterfactuals[chosen]) for row, found in answers.items()
    }
    return replace(given, factuals=factuals), parts


def same_answers(found: FloatArray, others: FloatArray, tolerance: float = SAME_ANSWER) -> BoolArray:
    """(n,) whether the answers are equal within the tolerance in every column, or neither is there."""
    has, have = complete(found), complete(others)
    both = has & have
    same: BoolArray = has == have
    same[both] = np.abs(found[both] - others[both]).max(axis=1) <= tolerance
    return same


def timed(run: Callable[[], FloatArray], count: int) -> Answers:
    started = time.perf_counter()
    found = run()
    return Answers(found, (time.perf_counter() - started) / count)


def valid_only(given: Case, found: FloatArray) -> FloatArray:
    """(n, d) the answers in the other class than their factuals, NaN for the others.

    For programs that return their last point whatever its class, where ours returns nothing.
    """
    there = complete(found)
    there[there] = predicted_classes(given.model, found[there]) != given.factuals.classes[there]
    return np.where(there[:, None], found, np.nan)


def table_rows(
    given: Case,
    method: str,
    answers: Mapping[str, Answers],
    *,
    model: str = "mlp",
    tolerance: float = SAME_ANSWER,
) -> list[dict[str, Any]]:
    """A row for each of ``answers``, of which the first, ``paper``, are ours; the others are compared with it."""
    ours = next(iter(answers.values())).counterfactuals
    common = {"method": method, "data": given.name, "model": model, "factuals": len(given.factuals)}
    return [
        {
            **common,
            "row": row,
            **quality(given, found.counterfactuals),
            **agreement(ours, found.counterfactuals, tolerance),
            "tolerance": tolerance,
            "seconds per row": float(f"{found.seconds:.3g}"),
        }
        for row, found in answers.items()
    ]


def quality(given: Case, found: FloatArray) -> dict[str, Any]:
    valid = complete(valid_only(given, found))
    away = np.abs(found[valid] - given.factuals.vectors[valid])
    means = {"L2": np.linalg.norm(away, axis=1), "sparsity": (away < UNCHANGED).mean(axis=1)}
    return {"validity": round(float(valid.mean()), 4)} | {
        name: round(float(values.mean()), 4) if valid.any() else "" for name, values in means.items()
    }


def agreement(ours: FloatArray, theirs: FloatArray, tolerance: float) -> dict[str, Any]:
    has, have = complete(ours), complete(theirs)
    both = has & have
    between = np.abs(ours[both] - theirs[both])
    return {
        "identical": round(float(same_answers(ours, theirs, tolerance).mean()), 4),
        "same answered": round(float((has == have).mean()), 4),
        "L2 between": float(f"{np.linalg.norm(between, axis=1).mean():.3g}") if both.any() else "",
    }


def imported(name: str, file: Path) -> Any:
    """A module from a file of the authors."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def silent() -> Iterator[None]:
    """Without what the authors' programs print."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def stored(path: str, rows: list[dict[str, Any]], command: str) -> None:
    """Prints the rows, and stores them if ``path`` is not empty."""
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    if path:
        keep(Path(path), rows, KEY, command)
