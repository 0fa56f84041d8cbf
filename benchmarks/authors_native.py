"""The paper variants of native explainers against the loops of the authors' own public code, on the same model.

    python benchmarks/authors_native.py accent CHECKOUT_OF_hieptk_accent
    python benchmarks/authors_native.py lime-rs CHECKOUT_OF_caionobrega_explaining-recommendations
    python benchmarks/authors_native.py shap CHECKOUT_OF_DeltaLabTLV_LXR
    python benchmarks/authors_native.py lxr CHECKOUT_OF_DeltaLabTLV_LXR
    python benchmarks/authors_native.py prince CHECKOUT_OF_azinmatin_prince
    python benchmarks/authors_native.py spinrec CHECKOUT_OF_DeltaLabTLV_SPINRec

``--users`` users (20) of ``--data`` (ml-100k) with the recommender ``--recommender`` (mf), their first ``--k`` items
(5), item level. The authors' repository is not part of this project: its path is an argument, and what can be imported or
executed of it is; what is written for libraries of its time (TensorFlow 1) is repeated here from its formulas. The push
of ``prince`` is pure Python and takes more than ten minutes on amazon-fashion. Random choices (neighbours, clusters,
initial weights) are given to both, so that answers can be compared one by one.

Rows in docs/results/authors-native.csv: PN-S@K and the number of edits of the explicit answers (the removals of the
method, or the smallest prefix of its importances that displaces the item), the share of identical answers and their
mean Jaccard overlap with ours, the mean rank correlation of importances, and wall seconds for each unit.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from authors_native_loops import LOOPS
from authors_spinrec import spinrec
from explainers import Study
from results import keep

from cfbench_recsys.answers import count_displaced, smallest_prefix
from cfbench_recsys.edits import Edits

ALL_LOOPS = {**LOOPS, "spinrec": spinrec}


@dataclass(frozen=True)
class Answers:
    """Of B units: edits, importances (B, H) if the method has them, and seconds for each unit."""

    edits: Edits
    importances: np.ndarray | None
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=sorted(ALL_LOOPS))
    parser.add_argument("checkout", type=Path, help="folder of the authors' repository")
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--recommender", default="mf")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument(
        "--model", type=Path, help="folder to store the trained recommender in, or to read it from"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/authors-native"))
    options = parser.parse_args()
    options.dataset, options.level = options.data, "item"
    with tempfile.TemporaryDirectory() as folder:
        options.model_folder = str(options.model or folder)
        Path(options.model_folder).mkdir(parents=True, exist_ok=True)
        options.chunk, options.plain = 50, True
        study = Study(options)
        targets = next(study.chunks("user-vector"))
        context = study.context()
        ours, theirs = ALL_LOOPS[options.method](options.checkout, targets, context)
        rows = compare(targets, context, ours, theirs)
    common = {
        "method": options.method,
        "model": options.recommender,
        "data": options.data,
        "users": len(study.users),
        "k": options.k,
    }
    rows = [{**common, **row} for row in rows]
    for row in rows:
        print(row)
    command = f"python benchmarks/authors_native.py METHOD CHECKOUT {shlex.join(sys.argv[3:])}".strip()
    keep(options.output, rows, ["method", "model", "data", "k", "variant"], command.split(" --model")[0])


def compare(
    targets: Any, context: Any, ours: Callable[[], Any], theirs: Callable[[], Any]
) -> list[dict[str, Any]]:
    """A row for the authors' answers and one for those of the paper variant."""
    answers = [answered(run, targets, context) for run in (theirs, ours)]
    sets = [edge_sets(answer.edits, len(targets)) for answer in answers]
    overlaps = [
        len(one & other) / len(one | other) if one | other else 1.0 for one, other in zip(*sets, strict=True)
    ]
    identical = np.mean([one == other for one, other in zip(*sets, strict=True)])
    agreement = rank_correlation(targets, *(answer.importances for answer in answers))
    rows = []
    for variant, answer in zip(("authors", "paper"), answers, strict=True):
        units = np.arange(len(targets))
        left = count_displaced(context.model, targets, answer.edits, units, context.interactions) > 0
        sizes = answer.edits.counts()
        rows.append(
            {
                "variant": variant,
                "PN-S": round(float(left.mean()), 4),
                "answered": round(float((sizes > 0).mean()), 4),
                "edits": round(float(sizes[sizes > 0].mean()), 3) if sizes.any() else 0.0,
                "identical answers": round(float(identical), 4),
                "Jaccard overlap": round(float(np.mean(overlaps)), 4),
                "rank correlation": agreement,
                "seconds per unit": round(answer.seconds, 5),
            }
        )
    return rows


def answered(run: Callable[[], Any], targets: Any, context: Any) -> Answers:
    """Edits, or importances from which edits are derived."""
    started = time.perf_counter()
    found = run()
    seconds = (time.perf_counter() - started) / len(targets)
    if isinstance(found, Edits):
        return Answers(found, None, seconds)
    edits = smallest_prefix(context.model, targets, found, context.interactions)
    return Answers(edits, found, seconds)


def edge_sets(edits: Edits, count: int) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(count)]
    for row, item in zip(edits.rows.tolist(), edits.edge_items.tolist(), strict=True):
        found[row].add(item)
    return found


def rank_correlation(targets: Any, first: np.ndarray | None, second: np.ndarray | None) -> float | str:
    """Spearman, mean over units in which neither is constant."""
    from scipy.stats import spearmanr

    if first is None or second is None:
        return ""
    found = []
    for unit, held in enumerate(~targets.padding):
        pair = first[unit, held], second[unit, held]
        if all(np.ptp(values) > 0 for values in pair):
            found.append(spearmanr(*pair)[0])
    return round(float(np.mean(found)), 4) if found else ""


if __name__ == "__main__":
    main()
