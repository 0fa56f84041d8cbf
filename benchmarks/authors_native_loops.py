"""The authors' loops for ``authors_native.py``: adapters that present a recommender of the suite to their code.

Each function returns two callables, for our paper variant and for the authors' loop.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import fmin_ncg
from torch.nn.functional import softplus

from cfbench_recsys.edits import Edits
from cfbench_recsys.scoring import score_once

Runs = tuple[Callable[[], Any], Callable[[], Any]]


def imported(checkout: Path, module: str) -> Any:
    """A module of a checkout, which is put in front of the search path."""
    sys.path.insert(0, str(checkout))
    return importlib.import_module(module)


def removals(targets: Any, chosen: list[list[int]]) -> Edits:
    """Edits that remove the items ``chosen`` for each unit."""
    removed = np.zeros(targets.history.shape, dtype=np.bool_)
    for unit, items in enumerate(chosen):
        removed[unit] = np.isin(targets.history[unit], items) & ~targets.padding[unit]
    return Edits.removals(targets.users, targets.history, removed)


def accent(checkout: Path, targets: Any, context: Any) -> Runs:
    """``AccentTemplate.try_replace`` is theirs. The influences are theirs by formula: autograd, Newton-CG of SciPy.

    Their model is TensorFlow 1. Hessian-vector products by automatic differentiation of the loss over the examples of
    the user and of the item, ``fmin_ncg`` from the gradient with avextol 1e-3 and at most 100 steps, damping 1e-6, weight
    decay 1e-3. The list of an item begins at it.
    """
    from cfbench_explainers_native.accent import Accent, Config

    template = imported(checkout, "commons.accent_template")
    template.np = np  # the module uses NumPy without importing it
    replace = template.AccentTemplate.try_replace
    Q = torch.from_numpy(context.model.item_embeddings())
    known = np.flatnonzero(np.diff(context.training.indptr))
    P = torch.from_numpy(context.model.profile_embeddings(context.training[known].astype(float)))
    columns = context.training[known].tocsc()
    scores = score_once(context.model, Edits.nothing(targets.users), context.interactions)

    def influences(own: torch.Tensor, history: np.ndarray, item: int) -> np.ndarray:
        others = P[torch.from_numpy(columns[:, [item]].indices.astype(np.int64))]
        d = len(own)

        def loss(theta: torch.Tensor, examples: torch.Tensor) -> torch.Tensor:
            return softplus(-examples).mean() + 1e-3 / 2 * (theta @ theta)

        def logits(theta: torch.Tensor) -> torch.Tensor:
            return torch.cat([Q[history] @ theta[:d], others @ theta[d:]])

        theta = torch.cat([own, Q[item]]).requires_grad_()
        (slope,) = torch.autograd.grad(loss(theta, logits(theta)), theta, create_graph=True)

        def product(vector: np.ndarray) -> np.ndarray:
            v = torch.from_numpy(vector)
            (found,) = torch.autograd.grad(slope @ v, theta, retain_graph=True)
            return (found + 1e-6 * v).numpy()

        (of_score,) = torch.autograd.grad(theta[:d] @ theta[d:], theta)
        v = of_score.numpy()
        direction = fmin_ncg(
            f=lambda x: 0.5 * product(x) @ x - v @ x,
            x0=v,
            fprime=lambda x: product(x) - v,
            fhess_p=lambda x, p: product(p),
            avextol=1e-3,
            maxiter=100,
            disp=False,
        )
        n = len(history) + len(others)
        found = []
        for place in range(len(history)):
            one = logits(theta)[place : place + 1]
            (gradient,) = torch.autograd.grad(loss(theta, one), theta)
            found.append(float(gradient.numpy() @ direction) / n)
        return -np.array(found)

    def theirs() -> Edits:
        chosen: list[list[int]] = []
        for unit, user in enumerate(targets.users.tolist()):
            history = targets.history[unit][~targets.padding[unit]]
            own = torch.from_numpy(
                context.model.profile_embeddings(context.interactions[[user]].astype(float))[0]
            )
            open_scores = scores[unit].copy()
            open_scores[history] = -np.inf
            ranked = np.argsort(-open_scores, kind="stable").tolist()
            start = ranked.index(int(targets.items[unit, 0]))
            listed = ranked[start : start + targets.k]
            found = np.array([influences(own, history, item) for item in listed])
            best, best_gap = None, 1e9
            for i in range(1, len(listed)):
                gap = scores[unit, listed[0]] - scores[unit, listed[i]]
                with contextlib.redirect_stdout(io.StringIO()):
                    removed, left = replace(listed[i], gap, found[0] - found[i])
                if removed is not None and (
                    best is None
                    or len(removed) < len(best)
                    or (len(removed) == len(best) and left < best_gap)
                ):
                    best, best_gap = removed, left
            chosen.append([int(history[place]) for place in best or ()])
        return removals(targets, chosen)

    return lambda: Accent(Config(variant="paper")).counterfactuals(targets, context), theirs


LOOPS: dict[str, Callable[[Path, Any, Any], Runs]] = {"accent": accent}
