"""How much the implicit metrics cost beyond the forward passes that they need.

    python benchmarks/implicit_metrics.py [--users 500] [--k 5] [--steps 10] [--repeat 5]

POS-P, NEG-P and Gini for ``users`` x ``k`` items x ``steps`` steps, ML-1M, MF, item level, one thread,
against ``model.score_profiles`` on the same edited profiles, prepared beforehand as CSR matrices. Two
baselines: all profiles of the definition (2 x units x steps), and only those that differ (both orders end in
the empty profile, and a short history has fewer steps than ``steps``), which is what the metrics compute. The
limit is 3 times the latter.

With the reference weights in the data folder (CFBENCH_DATA_DIR, or ../shared/data next to this repository) the
model is that one; without, on random interactions and weights of the same sizes, and the output says so.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.metrics.gini import Gini
from cfbench_recsys.metrics.neg_p import NegP
from cfbench_recsys.metrics.pos_p import Config as Steps
from cfbench_recsys.metrics.pos_p import PosP
from cfbench_recsys.observations import ImplicitObservations
from cfbench_recsys.ranking import top_k
from cfbench_recsys.recommenders.mf import MF
from cfbench_recsys.recommenders.mf import Config as MFConfig
from cfbench_recsys.removals import ImportanceOrder, OrderedRemovals, step_counts
from cfbench_recsys.scoring import BLOCK
from cfbench_recsys.targets import Targets

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CFBENCH_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
USERS_AT_ONCE = 50  # the suite's default chunk


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("users", 500), ("k", 5), ("steps", 10), ("repeat", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    _one_thread()

    interactions, model, source = _reference() or _random()
    chunks = _chunks(model, interactions, arguments.users, arguments.k)
    units = sum(len(targets) for targets, _ in chunks)
    nominal = _profiles(chunks, interactions, arguments.steps, distinct=False)
    distinct = _profiles(chunks, interactions, arguments.steps, distinct=True)
    metrics = [PosP(Steps(steps=arguments.steps)), NegP(Steps(steps=arguments.steps)), Gini()]

    def evaluate() -> None:
        for targets, importances in chunks:
            compute_metrics(metrics, ImplicitObservations(model, targets, importances, interactions))

    def forward(blocks: list[sparse.csr_matrix]) -> None:
        for block in blocks:
            model.score_profiles(block)

    seconds = _fastest([evaluate, lambda: forward(nominal), lambda: forward(distinct)], arguments.repeat)
    print(
        f"{source}; {units} explanations, {arguments.steps} steps; "
        f"one thread, CPU time, fastest of {arguments.repeat}"
    )
    print(f"{'metrics':32s} {seconds[0]:8.3f} s   {1e3 * seconds[0] / units:.3f} ms per explanation")
    for title, blocks, baseline in (
        ("forward, all profiles", nominal, seconds[1]),
        ("forward, distinct profiles", distinct, seconds[2]),
    ):
        rows = sum(block.shape[0] for block in blocks)
        print(
            f"{title:32s} {baseline:8.3f} s   {rows} profiles   "
            f"metrics / forward = {seconds[0] / baseline:.2f}"
        )


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _reference() -> tuple[sparse.csr_matrix, MF, str] | None:
    weights = DATA.parent / "reference" / "golden_ml1m_mf" / "two_tower_mf_32.safetensors"
    ratings = DATA / "recsys" / "ml-1m.parquet"
    if not weights.is_file() or not ratings.is_file():
        return None
    import pandas as pd
    from safetensors.numpy import load_file

    table = pd.read_parquet(ratings)
    _, rows = np.unique(table.user, return_inverse=True)
    _, columns = np.unique(table.item, return_inverse=True)
    interactions = sparse.csr_matrix((np.ones(len(table)), (rows, columns)))
    return interactions, _model(load_file(weights), interactions), "ML-1M, reference weights"


def _random() -> tuple[sparse.csr_matrix, MF, str]:
    rng = np.random.default_rng(0)
    interactions = sparse.random(6037, 3381, density=0.0282, format="csr", random_state=rng)
    interactions.data[:] = 1
    shapes = {
        "profile.weight": (32, 3381),
        "profile.bias": (32,),
        "item.weight": (32, 3381),
        "item.bias": (32,),
    }
    weights = {name: rng.normal(scale=0.1, size=shape).astype(np.float32) for name, shape in shapes.items()}
    return interactions, _model(weights, interactions), "random data of ML-1M's size"


def _model(weights: dict[str, np.ndarray], interactions: sparse.csr_matrix) -> MF:
    interactions.sort_indices()
    model = MF(MFConfig())
    model.load_state(weights, interactions)
    return model


def _chunks(
    model: MF, interactions: sparse.csr_matrix, users: int, k: int
) -> list[tuple[Targets, np.ndarray]]:
    """Targets and importances (random: their order costs nothing) of each chunk of users."""
    rng = np.random.default_rng(1)
    chosen = np.sort(rng.permutation(interactions.shape[0])[:users])
    chunks = []
    for start in range(0, users, USERS_AT_ONCE):
        some = chosen[start : start + USERS_AT_ONCE]
        blank = Targets.of(interactions, some, np.zeros((len(some), 1)), k, "item", "user-vector")
        lists = top_k(model.score_profiles(interactions[some]), blank.history, blank.padding, k)
        targets = Targets.of(interactions, np.repeat(some, k), lists.reshape(-1, 1), k, "item", "user-vector")
        chunks.append((targets, rng.random(targets.history.shape)))
    return chunks


def _profiles(
    chunks: list[tuple[Targets, np.ndarray]], interactions: sparse.csr_matrix, steps: int, distinct: bool
) -> list[sparse.csr_matrix]:
    """The edited profiles of POS-P and NEG-P, in blocks as the model sees them."""
    parts = []
    for targets, importances in chunks:
        order = ImportanceOrder.of(targets, importances)
        counts = step_counts(order.lengths, steps)
        units = np.repeat(np.arange(len(targets)), steps)
        gone, n = counts.ravel(), order.lengths[units]
        triples = np.concatenate(
            [np.column_stack([units, np.zeros_like(gone), gone]), np.column_stack([units, n - gone, n])]
        )
        if distinct:
            triples = np.unique(triples, axis=0)
        parts.append(OrderedRemovals(order, *triples.T).profiles(interactions))
    whole = sparse.vstack(parts, format="csr")
    return [whole[start : start + BLOCK] for start in range(0, whole.shape[0], BLOCK)]


def _fastest(actions: list[Callable[[], None]], repeat: int) -> list[float]:
    """CPU seconds of each action, the fastest of ``repeat`` rounds; they take turns, so noise hits all."""
    seconds = [float("inf")] * len(actions)
    for _ in range(repeat):
        for place, action in enumerate(actions):
            started = time.process_time()
            action()
            seconds[place] = min(seconds[place], time.process_time() - started)
    return seconds


if __name__ == "__main__":
    main()
