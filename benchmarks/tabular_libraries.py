"""Explainers of cfbench and of public libraries in one run, with the same networks, factuals and measures.

    pip install jax-relax fastcore nbdev    # VanillaCF, DiverseCF, GrowingSphere, ProtoCF
    pip install --no-deps alibi tensorflow-cpu tf_keras    # CounterfactualProto; see below
    python benchmarks/tabular_libraries.py --keep docs/results/tabular-public-libraries
    python benchmarks/tabular_libraries.py --sets magic --factuals 100 --theirs VanillaCF --ours cadex

MAGIC and Adult with the networks of CF-tabular; the first ``--factuals`` training rows (100, then 10,000) in one call,
one thread. Methods of more than ``--slow`` ms (2) per row get at most 1,000 rows, alibi, which takes seconds, ``--few``
(10). The tables contain CPU and wall milliseconds of the call alone, per row, after a warm-up call; the CPU seconds of
the preparation, ``prepare s`` (import, auto-encoder, embedding of categories) and ``compile s`` (jax, with the warm-up
call); the share of valid counterfactuals, predicted by the network; and over these the share that are rows (within the
observed range, one level of each category) and the means of L2 and of the shares of unchanged encoded and raw columns.

A second table (NAME-pairs) compares each method of a library with those of the same kind in cfbench on the factuals for
which both are valid, because a method that fails for difficult factuals has a smaller mean distance. The options of the
libraries are in ``library_methods.py``; libraries that are not installed are left out. alibi 0.9.6 requires NumPy below
2, which jax does not support, and an older pandas; it works with newer ones when installed without its dependencies
(then it lacks dill, scikit-image, "spacy<3.8.8", "pydantic<2", "transformers<5", and the dependencies of tensorflow).
Needs the files of CF-tabular (``CFBENCH_DATA_DIR``).
"""

from __future__ import annotations

import argparse
import json
import os
import time

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(
        0, {max(os.sched_getaffinity(0))}
    )  # thread pools that no environment variable limits
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
from dice_against_dice_ml import our_table
from library_methods import METHODS, PROTOTYPES, RELAX, STANDARDISED, lacking
from results import keep
from tabular_explainers import AT_MOST, WARM_UP, made

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import MLP, from_weights, read_weights
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import BoolArray, FloatArray, complete

OURS: dict[str, dict[str, Any]] = {
    "cadex": {},
    "ml-explain": {"ranges": False},
    "dice": {},
    "growing-spheres": {},
    "alibic": {},
    "alibic-sparse": {"name": "alibic", "beta": 2.0},
    "nice": {},
}
OF_KIND = {
    "VanillaCF": ["ml-explain", "cadex"],
    "DiverseCF": ["dice"],
    "GrowingSphere": ["growing-spheres"],
    "ProtoCF": ["alibic", "alibic-sparse"],
    PROTOTYPES: ["alibic", "alibic-sparse"],
}
"""The explainers of cfbench of the same kind: gradient descent on class and distance, DiCE, spheres, prototypes."""
LIBRARIES = (
    "jax-relax",
    "jax",
    "jaxlib",
    "keras",
    "optax",
    "alibi",
    "tensorflow_cpu",
    "tensorflow",
    "tf_keras",
)
SAME = 5e-5
"""A column that changes by less counts as unchanged, as in CF-tabular, which rounds to four decimals."""


class Own:
    """An explainer of cfbench with the interface of the library methods."""

    def __init__(self, name: str, model: MLP, context: Context) -> None:
        self.explainer = made(**{"name": name, **OURS.get(name, {})})
        self.model, self.context = model, context

    def ready(self, vectors: FloatArray) -> Any:
        self._of(vectors[:WARM_UP])
        return lambda: self._of(vectors)

    def _of(self, vectors: FloatArray) -> FloatArray:
        classes = predicted_classes(self.model, vectors)
        factuals = Factuals(vectors, classes, tuple(map(str, range(len(vectors)))))
        rows_found = self.explainer.counterfactuals(self.model, factuals, self.context)
        return Explanation.of(rows_found).stacked()[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["magic", "adult"])
    parser.add_argument("--factuals", nargs="+", type=int, default=[100, 10_000])
    parser.add_argument("--ours", nargs="*", default=list(OURS))
    parser.add_argument("--theirs", nargs="*", default=[*RELAX, PROTOTYPES])
    parser.add_argument(
        "--slow", type=float, default=2.0, help="ms per row above which at most 1,000 rows are explained"
    )
    parser.add_argument(
        "--few", type=int, default=10, help="number of rows for alibi, which takes seconds per row"
    )
    parser.add_argument("--keep", help="path of the stored tables, without their suffix")
    arguments = parser.parse_args()
    absent = {name: why for name, why in lacking().items() if name in arguments.theirs}
    for name, why in absent.items():
        print(f"{name} is left out: {why}")
    arguments.theirs = [name for name in arguments.theirs if name not in absent]
    rows, pairs = [], []
    for name in arguments.sets:
        of_set, pairs_of_set = measured(name, arguments)
        rows += of_set
        pairs += pairs_of_set
        if arguments.keep:
            store(arguments.keep, rows, ["dataset", "method", "factuals"])
            store(f"{arguments.keep}-pairs", pairs, ["dataset", "theirs", "ours", "factuals"])


def store(path: str, rows: list[dict[str, Any]], same: list[str]) -> None:
    """Stores the table, with the versions of the libraries."""
    keep(Path(path), rows, same, "python benchmarks/tabular_libraries.py --keep NAME")
    about = Path(path).with_suffix(".json")
    document = json.loads(about.read_text(encoding="utf-8"))
    found = {distribution.metadata["Name"]: distribution.version for distribution in distributions()}
    document["versions"] |= {name: found[name] for name in LIBRARIES if name in found}
    about.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measured(name: str, arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of both tables."""
    model, context = study(name)
    rows, pairs = [], []
    found: dict[tuple[str, int], FloatArray] = {}
    for method in [*arguments.ours, *arguments.theirs]:
        for size, rows_found, row in rounds(method, model, context, arguments):
            found[method, size] = rows_found
            rows.append({"dataset": name, "method": method, "factuals": size, **row})
            shown(rows[-1])
    for theirs in arguments.theirs:
        for ours in (own for own in OF_KIND[theirs.removesuffix(STANDARDISED)] if own in arguments.ours):
            for method, size in found:
                if method == theirs:
                    own = max((rows_found for (of, _), rows_found in found.items() if of == ours), key=len)
                    row = comparison(model, context, found[theirs, size], own[:size])
                    pairs.append({"dataset": name, "theirs": theirs, "ours": ours, "factuals": size, **row})
                    shown(pairs[-1])
    return rows, pairs


def study(name: str) -> tuple[MLP, Context]:
    """The network of CF-tabular for a data set, and its training rows."""
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    data = files.prepared_dataset(our_table(name, files))
    model = from_weights(read_weights(files.network))
    background, labels = data.sample("train")
    return model, Context(data.encoding, background, lambda unit: generator("benchmark", unit), labels=labels)


def rounds(
    method: str, model: MLP, context: Context, arguments: argparse.Namespace
) -> Iterator[tuple[int, FloatArray, dict[str, Any]]]:
    """The number of rows, the counterfactuals (B, d), and their measures."""
    started = time.process_time()
    made_ready = METHODS.get(method, Own)(method, model, context)
    prepared, slow = time.process_time() - started, False
    for count in [arguments.few] if method == PROTOTYPES else arguments.factuals:
        size = min(count, AT_MOST if slow else count, len(context.background))
        vectors = context.background[:size]
        started = time.process_time()
        call = made_ready.ready(vectors)
        compiled = time.process_time() - started
        cpu, wall = time.process_time(), time.perf_counter()
        rows_found = call()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        slow = 1e3 * cpu / size > arguments.slow
        yield (
            size,
            rows_found,
            {
                "library": "cfbench"
                if method not in METHODS
                else "jax-relax"
                if method in RELAX
                else "alibi",
                "cpu ms": round(1e3 * cpu / size, 4),
                "wall ms": round(1e3 * wall / size, 4),
                "prepare s": round(prepared, 1),
                "compile s": round(compiled, 1) if method in RELAX else 0.0,
                **measures(model, context.encoding, vectors, rows_found),
            },
        )


def valid_counterfactuals(model: MLP, vectors: FloatArray, rows_found: FloatArray) -> BoolArray:
    """(B,) which of the counterfactuals are in the other class."""
    valid = complete(rows_found)
    valid[valid] = predicted_classes(model, rows_found[valid]) != predicted_classes(model, vectors[valid])
    return valid


def measures(model: MLP, encoding: Encoding, vectors: FloatArray, rows_found: FloatArray) -> dict[str, float]:
    valid = valid_counterfactuals(model, vectors, rows_found)
    found, factuals = rows_found[valid], vectors[valid]
    low, high = encoding.bounds
    rows = ((found > low - SAME) & (found < high + SAME)).all(axis=1)
    rows &= np.abs(encoding.project(found) - found).max(axis=1) < SAME
    return {"valid": round(float(valid.mean()), 4), "rows": round(float(rows.mean()), 4)} | {
        name: round(float(values.mean()), 3) for name, values in changes(encoding, factuals, found).items()
    }


def changes(encoding: Encoding, factuals: FloatArray, found: FloatArray) -> dict[str, FloatArray]:
    """(B,) each: the distance, and the shares of unchanged encoded and raw columns."""
    away = np.abs(found - factuals)
    starts = [block.start for block in encoding.blocks]
    return {
        "L2": np.linalg.norm(away, axis=1),
        "sparsity": (away < SAME).mean(axis=1),
        "raw sparsity": (np.maximum.reduceat(away, starts, axis=1) < SAME).mean(axis=1),
    }


def comparison(model: MLP, context: Context, theirs: FloatArray, ours: FloatArray) -> dict[str, float]:
    """The measures of both on the factuals for which both are valid."""
    vectors = context.background[: len(ours)]
    theirs = theirs[: len(ours)]
    both = valid_counterfactuals(model, vectors, theirs) & valid_counterfactuals(model, vectors, ours)
    of_theirs, of_ours = (
        changes(context.encoding, vectors[both], rows_found[both]) for rows_found in (theirs, ours)
    )
    means = {
        f"{whose} {name}": round(float(values[name].mean()), 3)
        for name in ("L2", "raw sparsity")
        for whose, values in (("their", of_theirs), ("our", of_ours))
    }
    closer = of_ours["L2"] < of_theirs["L2"]
    sparser = of_ours["raw sparsity"] - of_theirs["raw sparsity"]
    return {
        "both answer": round(float(both.mean()), 4),
        **means,
        "ours closer": round(float(closer.mean()), 4),
        "ours sparser": round(float((sparser > 0).mean()), 4),
        "ours denser": round(float((sparser < 0).mean()), 4),
    }


def shown(row: dict[str, Any]) -> None:
    print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
