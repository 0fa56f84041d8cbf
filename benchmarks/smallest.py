"""The smallest counterfactual of every item that is recommended to anybody on ML-1M, proven.

    python benchmarks/smallest.py [--users 6037] [--k 5] [--budget 300000] [--nodes 20000]

All users x the first ``k`` items of their lists, item level, whole histories, the MF with the reference weights
(needs ml-1m.parquet and the weights in the same folder, as ``implicit_metrics.py`` does). Each answer is put to the
recommender. Told: the share of units with a proof (the smallest set, or that no set of any size works), the
sizes, and CPU time on one thread.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from implicit_metrics import _one_thread, _reference
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_explainers_native.smallest import Config, Smallest
from cfbench_recsys.answers import count_displaced
from cfbench_recsys.edits import Edits
from cfbench_recsys.ranking import top_k
from cfbench_recsys.recommenders.mf import MF
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Context, Targets

USERS_AT_ONCE = 50  # the suite's default chunk


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (
        ("users", 6037),
        ("k", 5),
        ("budget", Config.budget),
        ("nodes", Config.nodes),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    _one_thread()
    reference = _reference()
    if reference is None:
        sys.exit("needs ml-1m.parquet and the reference weights")
    interactions, model, source = reference
    explainer = Smallest(Config(budget=options.budget, nodes=options.nodes))
    context = Context(model, interactions, interactions, functools.partial(generator, 0))

    seconds, rows = 0.0, []
    for start in range(0, min(options.users, interactions.shape[0]), USERS_AT_ONCE):
        users = np.arange(start, min(start + USERS_AT_ONCE, options.users, interactions.shape[0]))
        targets = units(model, interactions, users, options.k)
        started = time.process_time()
        answer = explainer.counterfactuals(targets, context)
        seconds += time.process_time() - started
        every = np.arange(len(targets))
        left = count_displaced(model, targets, answer.edits, every, interactions)
        rows.append(np.column_stack([answer.edits.counts(), left, answer.details["proven"]]))
    size, left, proven = np.concatenate(rows).T
    found = size > 0
    print(f"{source}; {len(size)} units, {seconds:.0f} s CPU, {1e3 * seconds / len(size):.2f} ms each")
    print(f"with a proof {proven.mean():.4%} ({int((proven == 0).sum())} without)")
    print(f"with an answer {found.mean():.2%}, of which the recommender confirms {left[found].mean():.2%}")
    print(f"mean size {size[found].mean():.3f}, median {np.median(size[found]):.0f}, most {size.max():.0f}")
    for least in range(1, 6):
        print(f"  {least}: {(size == least).mean():.2%}")
    print(f"  more: {(size > 5).mean():.2%}")
    print(f"  no set of any size, proven: {(~found & (proven == 1)).mean():.2%}")


def units(model: MF, interactions: sparse.csr_matrix, users: np.ndarray, k: int) -> Targets:
    blank = Targets.of(interactions, users, np.zeros((len(users), 1)), k, "item", "user-vector")
    scored = [scores for _, scores in score_blocks(model, Edits.nothing(users), interactions)]
    lists = top_k(np.concatenate(scored), blank.history, blank.padding, k)
    return Targets.of(interactions, np.repeat(users, k), lists.reshape(-1, 1), k, "item", "user-vector")


if __name__ == "__main__":
    main()
