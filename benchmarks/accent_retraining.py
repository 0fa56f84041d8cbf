"""Whether the influences of ACCENT agree with real retraining of both sides of a matrix factorisation, on ML-100K.

    python benchmarks/accent_retraining.py DATA [--users 12] [--removals 6] [--dimensions 16] [--ridge 2]

A plain matrix factorisation, with a vector p_u for each user and q_i for each item and logits p_u . q_i, is fitted to
convergence (L-BFGS, float64) with the loss of cfbench's ``mf``: for each user the sum over the user's interactions of
softplus(-s), 16 negatives for each (spread over all items that the user has not) of softplus(s), and a ridge on
all vectors. Then single interactions of random users are removed, and *all* vectors are fitted again from the old
optimum, the removed pair counting as an item that the user has not. The actual falls of the logits of the first 25
recommendations are compared with ``fitted_user.Fit.influences`` and ``Fit.refitted`` (the items' vectors stay) for
several values of ``negatives`` and ``damping``.

Written to docs/results/accent-retraining.csv: the rank correlation (Spearman) over removals and candidates of a user,
of the fall of each logit and of the change of the gap between the first recommendation and each other one; mean over
users.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from results import keep
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import spearmanr

from cfbench_explainers_native.fitted_user import Fit

NEGATIVES = 16.0
CANDIDATES = 25


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data", type=Path, help="ratings of ML-100K: a CSV or Parquet file with user, item, rating"
    )
    parser.add_argument("--users", type=int, default=12)
    parser.add_argument("--removals", type=int, default=6)
    parser.add_argument("--dimensions", type=int, default=16)
    parser.add_argument("--ridge", type=float, default=2.0)
    parser.add_argument("--output", type=Path, default=Path("docs/results/accent-retraining"))
    options = parser.parse_args()
    observed = read(options.data)
    draw = np.random.default_rng(0)
    start = time.process_time()
    model = Factors.start(observed.shape, options.dimensions, draw)
    model = model.fitted(observed, options.ridge, 2000)
    print(
        f"fitted in {time.process_time() - start:.0f} s CPU; {observed.shape}, {int(observed.sum())} interactions"
    )
    users = draw.choice(np.flatnonzero(observed.sum(axis=1) >= 10), size=options.users, replace=False)
    cases = list(retrained(model, observed, users, options, draw))
    rows = []
    for negatives in (0.0, 1.0, 10.0, 16.0):
        for damping in (0.001, 0.01, 0.1, 1.0):
            for effect in ("influence", "refit"):
                logits, gaps = agreement(cases, model, observed, effect, damping, negatives)
                rows.append(
                    {
                        "data": "ml-100k",
                        "dimensions": options.dimensions,
                        "ridge": options.ridge,
                        "effect": effect,
                        "negatives": negatives,
                        "damping": damping,
                        "users": options.users,
                        "removals": sum(len(case[1]) for case in cases),
                        "rank correlation of falls": round(logits, 3),
                        "rank correlation of gaps": round(gaps, 3),
                    }
                )
                print(
                    f"{effect:10s} negatives {negatives:4.0f} damping {damping:5.3f}: {logits:.3f} {gaps:.3f}"
                )
    same = ["data", "dimensions", "ridge", "effect", "negatives", "damping"]
    keep(
        options.output,
        rows,
        same,
        f"python benchmarks/accent_retraining.py DATA --users {options.users} --removals {options.removals}",
    )


def read(path: Path) -> np.ndarray:
    """(users, items) 1.0 where the rating is at least 4, users and items with at least 2 of these."""
    import pandas as pd

    table = (
        pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, sep=None, engine="python")
    )
    table = table.set_axis(["user", "item", "rating", *table.columns[3:]], axis=1)
    table = table[table["rating"] >= 4]
    while True:
        often = table.groupby("user")["item"].transform("size").ge(2) & table.groupby("item")[
            "user"
        ].transform("size").ge(2)
        if often.all():
            break
        table = table[often]
    users, items = (table[name].astype("category").cat.codes.to_numpy() for name in ("user", "item"))
    observed = np.zeros((users.max() + 1, items.max() + 1))
    observed[users, items] = 1.0
    return observed


class Factors:
    """Vectors of users (U, d) and items (I, d)."""

    def __init__(self, flat: np.ndarray, shape: tuple[int, ...], dimensions: int) -> None:
        self.flat, self.shape, self.dimensions = flat, shape, dimensions

    @staticmethod
    def start(shape: tuple[int, ...], dimensions: int, draw: np.random.Generator) -> Factors:
        return Factors(0.3 * draw.normal(size=sum(shape) * dimensions), shape, dimensions)

    @property
    def users(self) -> np.ndarray:
        return self.flat.reshape(-1, self.dimensions)[: self.shape[0]]

    @property
    def items(self) -> np.ndarray:
        return self.flat.reshape(-1, self.dimensions)[self.shape[0] :]

    def fitted(self, observed: np.ndarray, ridge: float, steps: int) -> Factors:
        """The minimum of the loss that this start leads to."""
        sizes = observed.sum(axis=1, keepdims=True)
        weights = NEGATIVES * sizes / (observed.shape[1] - sizes) * (1 - observed)

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            now = Factors(flat, self.shape, self.dimensions)
            logits = now.users @ now.items.T
            value = -(observed * log_expit(logits)).sum() - (weights * log_expit(-logits)).sum()
            slope = (observed + weights) * expit(logits) - observed
            gradient = np.concatenate([slope @ now.items, slope.T @ now.users]).ravel() + ridge * flat
            return float(value + ridge / 2 * (flat**2).sum()), gradient

        options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-13, "gtol": 1e-4, "maxcor": 20}
        found = minimize(loss, self.flat, jac=True, method="L-BFGS-B", options=options)
        return Factors(found.x, self.shape, self.dimensions)


def retrained(
    model: Factors,
    observed: np.ndarray,
    users: np.ndarray,
    options: argparse.Namespace,
    draw: np.random.Generator,
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """For each user: the user, the places of removed items in the history, the candidates, and (R, C) actual falls."""
    for user in users.tolist():
        history = np.flatnonzero(observed[user])
        logits = model.items @ model.users[user]
        logits[history] = -np.inf
        candidates = np.argsort(-logits)[:CANDIDATES]
        places = np.sort(draw.permutation(len(history))[: options.removals])
        falls = []
        for place in places:
            without = observed.copy()
            without[user, history[place]] = 0.0
            again = model.fitted(without, options.ridge, 60)
            falls.append(logits[candidates] - again.items[candidates] @ again.users[user])
        print(f"user {user}: {len(places)} removals", flush=True)
        yield user, places, candidates, np.array(falls)


def agreement(
    cases: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]],
    model: Factors,
    observed: np.ndarray,
    effect: str,
    damping: float,
    negatives: float,
) -> tuple[float, float]:
    """Mean over users of the rank correlation of falls, and of changes of the gaps to the first candidate."""
    found = []
    for user, places, candidates, falls in cases:
        own = model.users[user]
        fit = Fit.of(own, np.ones(len(own)), model.items, np.flatnonzero(observed[user]), damping, negatives)
        moved = fit.influences() if effect == "influence" else fit.refitted()
        predicted = moved[places] @ model.items[candidates].T
        gaps = [(values[:, :1] - values[:, 1:]).ravel() for values in (predicted, falls)]
        found.append((spearmanr(predicted.ravel(), falls.ravel())[0], spearmanr(*gaps)[0]))
    logits, gaps = np.mean(found, axis=0)
    return float(logits), float(gaps)


if __name__ == "__main__":
    main()
