"""LIME-RS: a linear surrogate of the recommender around a user's profile, learned from parts of it.

Nóbrega & Marinho, "Towards explaining recommendations through local surrogate models", SAC 2019; with the
user's own interactions as the interpretable features, as CFExpRec (section 3.4.1) uses it. With z^1..z^n in
{0, 1}^H subsets of the history (z^1 all of it) and g(z)_y the ``target`` for the profile z: the logit, the
log-probability or the margin to the K-th best other candidate (see ``target_functions.py``),

    beta, b = argmin  sum_j w_j (g(z^j)_y - b - z^j . beta)^2 + ridge |beta|^2
    w_j = exp(-d_j^2 / (2 width^2))

with d_j = 1 - cos(z^j, z^1) = 1 - sqrt(|z^j| / H), and beta (H,) are the importances. Subsets are drawn as in
LIME: the number of removals uniform in 1..H, then which ones; when the history has no more than n subsets,
all of them are taken. At list level g is the mean over the listed items. The H x H normal equations are
solved, or the n x n dual when n < H.

This is ``variant: cfbench``. ``variant: paper`` is the method as its authors published it, which edits no profile, see
``lime_rs_paper.py``.

``variant: lxr`` repeats the sampling of the code of CFExpRec, Refined fidelity and Consistency beyond top-1: 150
neighbours, each with 50 to 100 random items of the catalogue flipped (seen ones removed, unseen ones added) and
weights 1 - d_j / sum(d), d_j the number of flips. Its default
target is the probability, as in that code. In a large catalogue such neighbours hardly ever touch a short
history.

Departs from the sources: logits rather than probabilities, whose saturation causes ties, and margins where the
recommender's link is softmax, whose logits are defined only up to a constant for each profile; all targets of a
user share one set of subsets and forwards; no selection of features; in the variant the explained item may be
among the flipped ones, as neighbours do not depend on the target. Coefficients are rounded to the grid of
2**-30.
Cost: at most ``samples`` model queries for each user, however many items are explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_core.config import Help, Range, Search
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.lime_rs_paper import PaperLimeRS, Settings
from cfbench_explainers_native.shared import mean_over_targets, rounded
from cfbench_explainers_native.variants import check_options, own_options
from cfbench_recsys.edits import ADD, REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.links import link_of
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.target_functions import Target, TargetFunction
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/lime-rs",
    summary="A weighted linear surrogate on random parts of the history",
    target=f"{__name__}:LimeRS",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    papers=("nobrega2019lime",),
    presets="cfbench_explainers_native:presets/lime-rs.yaml",
)


DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "cfbench": {"target": None, "samples": 256, "kernel_width": 0.25, "ridge": 0.01},
    "paper": {"samples": 1000, "kernel_width": 25.0, "ridge": 1.0},
    "lxr": {"target": None, "samples": 150, "kernel_width": None, "ridge": 0.01},
}


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[
        Literal["cfbench", "paper", "lxr"],
        Help(
            "paper: as published, see lime_rs_paper.py; lxr: the sampling of the code of LXR and its followers"
        ),
    ] = "cfbench"
    target: Annotated[
        Target | None,
        Help(
            "variants cfbench and lxr: what is explained; none: logit, or margin where the recommender's link is "
            "softmax; with variant lxr the probability, or the score where the link is identity"
        ),
    ] = None
    samples: Annotated[
        int | None, Range(minimum=2), Help("none: 256, with variant lxr 150, with variant paper 1000")
    ] = None
    kernel_width: Annotated[
        float | None,
        Range(above=0),
        Search(0.05, 2, log=True),
        Help("cosine distance; none: 0.25, with variant paper 25, with variant lxr that code's weights"),
    ] = None
    ridge: Annotated[
        float | None,
        Range(above=0),
        Search(1e-4, 10, log=True),
        Help("penalty of the coefficients' squares; none: 0.01, with variant paper 1"),
    ] = None

    def __post_init__(self) -> None:
        check_options("lime-rs", self, DEFAULTS)


@dataclass(frozen=True)
class Neighbours:
    """n edited profiles of one user, the first untouched.

    Attributes:
        features: (n, H + E) 0 or 1: each interaction of the history, then each unseen item that some
            neighbour adds.
        edits: n edits that make them.
    """

    features: FloatArray
    edits: Edits


class LimeRS:
    """The configured variant."""

    def __init__(self, config: Config) -> None:
        options = own_options(config, DEFAULTS)
        self._variant: PaperLimeRS | SubsetLimeRS = (
            PaperLimeRS(Settings(**options))
            if config.variant == "paper"
            else SubsetLimeRS(published=config.variant == "lxr", **options)
        )

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) coefficients of the surrogate."""
        return self._variant.importances(targets, context)


class SubsetLimeRS:
    """The variants cfbench and lxr (``published``)."""

    def __init__(
        self,
        published: bool,
        target: Target | None,
        samples: int,
        kernel_width: float | None,
        ridge: float,
    ) -> None:
        self.published, self.target = published, target
        self.samples, self.width, self.ridge = samples, kernel_width, ridge

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) coefficients of the surrogate."""
        target = self.target
        if self.published and target is None and link_of(context.model) != "identity":
            target = "probability"
        function = TargetFunction.of(target, context.model, "lime-rs")
        importances = np.zeros(targets.history.shape)
        users, owners = np.unique(targets.users, return_inverse=True)
        for owner, user in enumerate(users.tolist()):
            units = np.flatnonzero(owners == owner)
            held = ~targets.padding[units[0]]
            history = targets.history[units[0], held]
            neighbours = self._neighbours(user, history, context)
            responses = _responses(neighbours.edits, function, units, targets, context)
            weights = self._weights(neighbours.features, len(history))
            coefficients = weighted_ridge(neighbours.features, responses, weights, self.ridge)
            importances[np.ix_(units, held)] = coefficients[:, : len(history)]
        return rounded(importances)

    def _neighbours(self, user: int, history: IntArray, context: Context) -> Neighbours:
        generator = context.generator("lime-rs", user)
        if self.published:
            return _flips(user, history, self.samples, context.interactions.shape[1], generator)
        retained = subsets(len(history), self.samples, generator)
        users = np.full(len(retained), user)
        edits = Edits.removals(users, np.broadcast_to(history, retained.shape), ~retained)
        return Neighbours(retained.astype(np.float64), edits)

    def _weights(self, features: FloatArray, length: int) -> FloatArray:
        """(n,) how much each neighbour counts, by its distance from the full profile."""
        full = features[0]
        if self.width is None:
            flips = np.abs(features - full).sum(axis=1)
            nearness: FloatArray = 1.0 - flips / max(flips.sum(), 1.0)
            return nearness
        sizes = features.sum(axis=1)
        cosine = (features @ full) / np.sqrt(np.maximum(sizes * length, 1.0))
        weights: FloatArray = np.exp(-((1.0 - cosine) ** 2) / (2.0 * self.width**2))
        return weights


def subsets(length: int, samples: int, generator: np.random.Generator) -> BoolArray:
    """(n, length) subsets, the full one first: all there are, or ``samples``, each size equally likely."""
    if length < 63 and 2**length <= samples:
        numbers = np.arange(2**length)[::-1, None]
        every: BoolArray = (numbers >> np.arange(length)) % 2 == 1
        return every
    removals = generator.integers(1, length + 1, size=(samples - 1, 1))
    places = generator.random((samples - 1, length)).argsort(axis=1).argsort(axis=1)
    return np.concatenate([np.ones((1, length), dtype=np.bool_), places >= removals])


def _flips(
    user: int, history: IntArray, samples: int, items: int, generator: np.random.Generator
) -> Neighbours:
    """Neighbours with 50 to 100 random items flipped (at most all there are)."""
    most = min(100, items)
    counts = generator.integers(min(50, most), most + 1, size=samples - 1)
    flipped = np.zeros((samples, items), dtype=np.bool_)
    for neighbour, count in enumerate(counts, start=1):
        flipped[neighbour, generator.choice(items, size=count, replace=False)] = True
    seen = np.zeros(items, dtype=np.bool_)
    seen[history] = True
    added = np.flatnonzero(flipped.any(axis=0) & ~seen)
    rows, columns = np.nonzero(flipped)
    ops = np.where(seen[columns], REMOVE, ADD).astype(np.int8)
    edits = Edits(np.full(samples, user), rows, np.full(len(rows), user), columns, ops)
    features = np.concatenate([~flipped[:, history], flipped[:, added]], axis=1)
    return Neighbours(features.astype(np.float64), edits)


def _responses(
    edits: Edits, function: TargetFunction, units: IntArray, targets: Targets, context: Context
) -> FloatArray:
    """(U, n) the target function of each of the U ``units`` of a user (the mean over its items) under each edit."""
    responses = np.empty((len(units), len(edits)))
    for block, scores in score_blocks(context.model, edits, context.interactions):
        which, rows = (part.ravel() for part in np.indices((len(units), len(scores))))
        values = mean_over_targets(function.values(scores, rows, units[which], targets))
        responses[:, block] = values.reshape(len(units), len(scores))
    return responses


def weighted_ridge(
    features: FloatArray, responses: FloatArray, weights: FloatArray, ridge: float
) -> FloatArray:
    """(R, F) coefficients of R weighted ridge regressions on the same features, with a free intercept.

    features (n, F), responses (R, n), weights (n,). The primal F x F system or the dual n x n, whichever is
    smaller. One response at a time, so that the numbers for one do not hang on which others there are.
    """
    share = weights / weights.sum()
    root = np.sqrt(weights)
    centred = (features - share @ features) * root[:, None]
    n, size = centred.shape
    dual = n < size
    gram = centred @ centred.T if dual else centred.T @ centred
    gram[np.diag_indices_from(gram)] += ridge
    factor = scipy.linalg.cho_factor(gram, overwrite_a=True)
    coefficients = np.empty((len(responses), size))
    for row, response in enumerate(responses):
        target = (response - share @ response) * root
        if dual:
            coefficients[row] = centred.T @ scipy.linalg.cho_solve(factor, target)
        else:
            coefficients[row] = scipy.linalg.cho_solve(factor, centred.T @ target)
    return coefficients
