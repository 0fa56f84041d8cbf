"""What LightGCN costs on a graph of 10 million interactions: seconds and memory of an epoch and of scoring.

    python benchmarks/large_graph.py [--users 200000] [--items 50000] [--interactions 10000000] [--threads 2]

Generates the graph (data set ``synthetic``), divides it per interaction 8:1:1, trains one epoch of LightGCN
(64 dimensions, 3 layers), and scores a batch of 64 edited graphs: each loses one interaction of its user, of
one of the user's items, and of somebody else, and gains one. Then the same batch with gradients. For each
part it prints the seconds, and the peak of the process's resident memory so far. Ends with an error if that
exceeds ``--limit`` GB (12); a matrix of all users and items alone would take 40 GB in float32.
"""

from __future__ import annotations

import argparse
import functools
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy import sparse

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.datasets.synthetic import Config as SyntheticConfig
from cfbench_recsys.datasets.synthetic import Synthetic
from cfbench_recsys.edits import ADD, REMOVE, Edits, IntArray
from cfbench_recsys.recommenders.lightgcn import Config, LightGCN
from cfbench_recsys.splits import SplitConfig, make_split

EDITS = 64


def main() -> int:
    arguments = _arguments()
    import torch

    torch.set_num_threads(arguments.threads)
    with measured("import torch, generate"):
        options = SyntheticConfig(
            users=arguments.users,
            items=arguments.items,
            interactions=arguments.interactions,
            clusters=min(100, arguments.items),
        )
        dataset = Synthetic(options)
        data = dataset.load(dataset.find(DataAccess(offline=True)))
    with measured("divide 8:1:1"):
        split = make_split(data, SplitConfig(), generator("large graph", "split"))
    model = LightGCN(
        Config(dimensions=arguments.dimensions, layers=arguments.layers, epochs=1, device=arguments.device)
    )
    with measured("train an epoch, look at 2,000 validation users, load"):
        summary = model.fit(split, functools.partial(generator, "large graph"))
    print(
        f"{'':55} validation NDCG@10 {summary['validation']['NDCG@10']:.4f}, HR@10 {summary['validation']['HR@10']:.4f}"
    )
    edits = _edits(split.profiles, split.explainable)
    with measured(f"score {EDITS} edited graphs"):
        scores = model.score_edits(edits)
    with measured(f"the same, and gradients of {len(edits.rows)} edges"):
        gradient = _gradient(model, edits)
    assert np.isfinite(scores).all() and np.isfinite(gradient).all() and (gradient != 0).any()
    peak = peak_gb()
    verdict = "ok" if peak < arguments.limit else "TOO MUCH"
    print(f"peak {peak:.1f} GB (allowed {arguments.limit:g} GB): {verdict}; {arguments.threads} threads")
    return int(peak >= arguments.limit)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (
        ("users", 200_000),
        ("items", 50_000),
        ("interactions", 10_000_000),
        ("dimensions", 64),
        ("layers", 3),
        ("threads", 2),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--limit", type=float, default=12.0)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def _edits(graph: sparse.csr_matrix, explainable: IntArray) -> Edits:
    draw = generator("large graph", "edits")
    users = draw.choice(explainable, EDITS, replace=False)
    by_item = graph.tocsc()
    made = []
    for user in users:
        own, item = draw.choice(graph[[user]].indices, 2)
        neighbour = draw.choice(by_item[:, [item]].indices)
        stranger = draw.choice(explainable)
        changes = [
            (user, own, REMOVE),
            (neighbour, item, REMOVE),
            (stranger, graph[[stranger]].indices[0], REMOVE),
            (user, draw.integers(graph.shape[1]), ADD),
        ]
        of_user, of_item, ops = (np.array(column, dtype=np.int64) for column in zip(*changes, strict=True))
        made.append(
            Edits(np.array([user]), np.zeros(len(ops), dtype=np.int64), of_user, of_item, ops.astype(np.int8))
        )
    return Edits.concatenate(made)


def _gradient(model: LightGCN, edits: Edits) -> np.ndarray:
    """Of the sum of all scores, by the weight of every edited edge."""
    import torch

    arrays = (edits.users, edits.rows, edits.edge_users, edits.edge_items)
    users, rows, edge_users, edge_items = (torch.from_numpy(array).to(model.device) for array in arrays)
    delta = torch.from_numpy(0.5 * edits.ops).to(model.device).requires_grad_()
    scores = model.score_weighted(users, rows, edge_users, edge_items, delta)
    (gradient,) = torch.autograd.grad(scores.sum(), delta)
    return np.asarray(gradient.cpu().numpy())


@contextmanager
def measured(what: str) -> Iterator[None]:
    wall, processor = time.perf_counter(), time.process_time()
    yield
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{what:55} {wall:7.1f} s ({processor:.1f} s of CPU)   peak {peak_gb():5.2f} GB", flush=True)


def peak_gb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


if __name__ == "__main__":
    sys.exit(main())
