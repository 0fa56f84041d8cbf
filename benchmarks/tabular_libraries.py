"""Our explainers of rows and those of public libraries in one run: the same networks, factuals and measures.

    pip install jax-relax fastcore nbdev    # VanillaCF, DiverseCF, GrowingSphere, ProtoCF
    pip install --no-deps alibi tensorflow-cpu tf_keras    # CounterfactualProto; see below
    python benchmarks/tabular_libraries.py --keep docs/results/tabular-public-libraries
    python benchmarks/tabular_libraries.py --sets magic --factuals 100 --theirs VanillaCF --ours cadex

MAGIC and Adult with the study's networks; the first ``--factuals`` training rows (100, then 10,000) in one call, one
thread. Methods of more than ``--slow`` ms (2) for each row get 1,000 at most, alibi's, which takes seconds, ``--few``
(10). CPU and wall milliseconds of the call alone, per row, after a first call. What comes before it apart, in CPU
seconds: ``prepare s`` (import, auto-encoder, embedding of categories) and ``compile s`` (jax, with the first call).
The share of valid answers by the network itself, re-predicted here; over these the share that are rows (within the
observed range, one level of each category), and means of L2 and of the shares of encoded and of raw columns that stay.

Each method of a library beside ours of the same kind: both on the factuals that both answer (NAME-pairs), since who
fails at the far ones looks near. What each library is told is in ``library_methods.py``; those that are not installed
are left out. alibi 0.9.6 asks for NumPy below 2, which jax no longer runs with, and for older pandas; it works with
newer ones when installed without its dependencies (then it lacks dill, scikit-image, "spacy<3.8.8", "pydantic<2",
"transformers<5", and what tensorflow imports). Needs the study's files (``CFBENCH_DATA_DIR``).
"""

from __future__ import annotations

import argparse
import json
import os
import time

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # pools of threads that no variable limits
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
from dice_against_dice_ml import our_table
from kept import keep
from library_methods import METHODS, PROTOTYPES, RELAX, lacking
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
    "ml-explain": {},
    "dice": {},
    "growing-spheres": {},
    "alibic": {},
    "alibic-sparse": {"name": "alibic", "beta": 2.0},
    "nice": {},
}
KIN = {
    "VanillaCF": ["ml-explain", "cadex"],
    "DiverseCF": ["dice"],
    "GrowingSphere": ["growing-spheres"],
    "ProtoCF": ["alibic", "alibic-sparse"],
    PROTOTYPES: ["alibic", "alibic-sparse"],
}
"""Which of ours is the same method: gradient descent on class and distance, DiCE, growing spheres, prototypes."""
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
"""A column that moves by less stays, as in the study, which rounds to four decimals."""


class Own:
    """One of our explainers, asked as a library is."""

    def __init__(self, name: str, model: MLP, context: Context) -> None:
        self.explainer = made(**{"name": name, **OURS.get(name, {})})
        self.model, self.context = model, context

    def ready(self, vectors: FloatArray) -> Any:
        self._of(vectors[:WARM_UP])
        return lambda: self._of(vectors)

    def _of(self, vectors: FloatArray) -> FloatArray:
        classes = predicted_classes(self.model, vectors)
        factuals = Factuals(vectors, classes, tuple(map(str, range(len(vectors)))))
        given = self.explainer.counterfactuals(self.model, factuals, self.context)
        return Explanation.of(given).stacked()[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["magic", "adult"])
    parser.add_argument("--factuals", nargs="+", type=int, default=[100, 10_000])
    parser.add_argument("--ours", nargs="*", default=list(OURS))
    parser.add_argument("--theirs", nargs="*", default=[*RELAX, PROTOTYPES])
    parser.add_argument("--slow", type=float, default=2.0, help="ms, above which 1,000 rows are enough")
    parser.add_argument("--few", type=int, default=10, help="rows for methods of seconds: alibi's")
    parser.add_argument("--keep", help="where to keep the tables, without their ending")
    asked = parser.parse_args()
    absent = {name: why for name, why in lacking().items() if name in asked.theirs}
    for name, why in absent.items():
        print(f"{name} is left out: {why}")
    asked.theirs = [name for name in asked.theirs if name not in absent]
    rows, pairs = [], []
    for name in asked.sets:
        of_set, pairs_of_set = measured(name, asked)
        rows += of_set
        pairs += pairs_of_set
        if asked.keep:
            kept(asked.keep, rows, ["dataset", "method", "factuals"])
            kept(f"{asked.keep}-pairs", pairs, ["dataset", "theirs", "ours", "factuals"])


def kept(path: str, rows: list[dict[str, Any]], same: list[str]) -> None:
    """The table, and with its versions those of the libraries."""
    keep(Path(path), rows, same, "python benchmarks/tabular_libraries.py --keep NAME")
    about = Path(path).with_suffix(".json")
    told = json.loads(about.read_text(encoding="utf-8"))
    found = {distribution.metadata["Name"]: distribution.version for distribution in distributions()}
    told["versions"] |= {name: found[name] for name in LIBRARIES if name in found}
    about.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def measured(name: str, asked: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of both tables."""
    model, context = study(name)
    rows, pairs = [], []
    answers: dict[tuple[str, int], FloatArray] = {}
    for method in [*asked.ours, *asked.theirs]:
        for size, given, row in rounds(method, model, context, asked):
            answers[method, size] = given
            rows.append({"dataset": name, "method": method, "factuals": size, **row})
            shown(rows[-1])
    for theirs in asked.theirs:
        for ours in (own for own in KIN[theirs] if own in asked.ours):
            for method, size in answers:
                if method == theirs:
                    own = max((given for (of, _), given in answers.items() if of == ours), key=len)
                    row = beside(model, context, answers[theirs, size], own[:size])
                    pairs.append({"dataset": name, "theirs": theirs, "ours": ours, "factuals": size, **row})
                    shown(pairs[-1])
    return rows, pairs


def study(name: str) -> tuple[MLP, Context]:
    """The study's network of a data set, and its training rows."""
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    data = files.prepared_dataset(our_table(name, files))
    model = from_weights(read_weights(files.network))
    background, labels = data.sample("train")
    return model, Context(data.encoding, background, lambda unit: generator("benchmark", unit), labels=labels)


def rounds(
    method: str, model: MLP, context: Context, asked: argparse.Namespace
) -> Iterator[tuple[int, FloatArray, dict[str, Any]]]:
    """How many rows, the answers (B, d), and what is measured of them."""
    started = time.process_time()
    made_ready = METHODS.get(method, Own)(method, model, context)
    prepared, slow = time.process_time() - started, False
    for count in [asked.few] if method == PROTOTYPES else asked.factuals:
        size = min(count, AT_MOST if slow else count, len(context.background))
        vectors = context.background[:size]
        started = time.process_time()
        call = made_ready.ready(vectors)
        compiled = time.process_time() - started
        cpu, wall = time.process_time(), time.perf_counter()
        given = call()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        slow = 1e3 * cpu / size > asked.slow
        yield (
            size,
            given,
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
                **observe(model, context.encoding, vectors, given),
            },
        )


def valid_answers(model: MLP, vectors: FloatArray, given: FloatArray) -> BoolArray:
    """(B,) which of the answers are of the other class."""
    valid = complete(given)
    valid[valid] = predicted_classes(model, given[valid]) != predicted_classes(model, vectors[valid])
    return valid


def observe(model: MLP, encoding: Encoding, vectors: FloatArray, given: FloatArray) -> dict[str, float]:
    valid = valid_answers(model, vectors, given)
    answers, factuals = given[valid], vectors[valid]
    low, high = encoding.bounds
    rows = ((answers > low - SAME) & (answers < high + SAME)).all(axis=1)
    rows &= np.abs(encoding.project(answers) - answers).max(axis=1) < SAME
    return {"valid": round(float(valid.mean()), 4), "rows": round(float(rows.mean()), 4)} | {
        name: round(float(values.mean()), 3) for name, values in changes(encoding, factuals, answers).items()
    }


def changes(encoding: Encoding, factuals: FloatArray, answers: FloatArray) -> dict[str, FloatArray]:
    """(B,) each: the distance, and the shares of encoded and of raw columns that stay."""
    away = np.abs(answers - factuals)
    starts = [block.start for block in encoding.blocks]
    return {
        "L2": np.linalg.norm(away, axis=1),
        "sparsity": (away < SAME).mean(axis=1),
        "raw sparsity": (np.maximum.reduceat(away, starts, axis=1) < SAME).mean(axis=1),
    }


def beside(model: MLP, context: Context, theirs: FloatArray, ours: FloatArray) -> dict[str, float]:
    """Both on the factuals that both answer."""
    vectors = context.background[: len(ours)]
    theirs = theirs[: len(ours)]
    both = valid_answers(model, vectors, theirs) & valid_answers(model, vectors, ours)
    of_theirs, of_ours = (changes(context.encoding, vectors[both], given[both]) for given in (theirs, ours))
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
