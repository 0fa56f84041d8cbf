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

``sampling: draws`` repeats the code of LXR and CFExpRec (presets ``lxr``, ``cfexprec``: 150 neighbours and ridge 1). A
neighbour has d draws with replacement, d uniform in 50..99: p = min(uniform in 0..d - 1, H) of them from the history, which
removes what was drawn, the others from the unseen items, which adds them. Its weight is 1 - d_j / sum(d), so that
``kernel_width`` has no part in it. The surrogate has the items of the history as its only features (that code selects as
many features as the history has items, and only these can be selected), and the default target is the probability. A short
history is mostly removed in all neighbours, which hold dozens of items of no one's taste instead.

Departs from the sources: logits rather than probabilities, whose saturation causes ties, and margins where the
recommender's link is softmax, whose logits are defined only up to a constant for each profile; all targets of a
user share one set of subsets and forwards; no selection of features; with ``sampling: draws`` the explained item
may be among the added ones, as neighbours do not depend on the target. Coefficients are rounded to the grid of
2**-30.
Cost: at most ``samples`` model queries for each user, however many items are explained.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.component import not_default
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.lime_rs_paper import PaperLimeRS, PaperOptions
from cfbench_explainers_native.shared import mean_over_targets, rounded
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


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[Variant, Help("paper: as published, see lime_rs_paper.py")] = "cfbench"
    sampling: Annotated[
        Literal["history", "draws"],
        Help(
            "history: random parts of the user's history; draws: removals from it and additions of unseen items, as in "
            "the code of LXR and CFExpRec"
        ),
    ] = "history"
    target: Annotated[
        Target | None,
        Help(
            "what is explained; none: logit, or margin where the recommender's link is softmax; with sampling draws "
            "the probability, or the score where the link is identity"
        ),
    ] = None
    samples: Annotated[int, Range(minimum=2), Help("edited profiles of each user")] = 256
    kernel_width: Annotated[
        float,
        Range(above=0),
        Search(0.05, 2, log=True),
        Help("of the cosine distance; with sampling history only"),
    ] = 0.25
    ridge: Annotated[
        float, Range(above=0), Search(1e-4, 10, log=True), Help("penalty of the coefficients' squares")
    ] = 0.01
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self)
        if self.sampling == "draws" and "kernel_width" in not_default(self):
            raise UserError("kernel_width: has no effect with sampling: draws, which has weights of its own")


FEWEST_DRAWS, MOST_DRAWS = 50, 100
"""Of a neighbour with ``sampling: draws``; the last is excluded."""


@dataclass(frozen=True)
class Neighbours:
    """n edited profiles of one user, the first untouched.

    Attributes:
        features: (n, H + E) 0 or 1: each interaction of the history, then the unseen items that are features.
        edits: n edits that make them.
        distances: (n,) numbers of flips, for the weights; None: those of the cosine distance are used.
    """

    features: FloatArray
    edits: Edits
    distances: FloatArray | None = None


class LimeRS:
    """The configured variant."""

    def __init__(self, config: Config) -> None:
        self._variant: PaperLimeRS | ProfileLimeRS = (
            PaperLimeRS(config.paper) if config.variant == "paper" else ProfileLimeRS(config)
        )

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) coefficients of the surrogate."""
        return self._variant.importances(targets, context)


class ProfileLimeRS:
    """The variant cfbench."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) coefficients of the surrogate."""
        target = self.config.target
        if target is None and self.config.sampling == "draws" and link_of(context.model) != "identity":
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
            for row in np.flatnonzero(~np.isfinite(responses).all(axis=1)).tolist():
                unit = units[row : row + 1]
                without = _not_adding(neighbours.edits, targets.items[unit])
                (responses[row],) = _responses(without, function, unit, targets, context)
            if not np.isfinite(responses).all():
                raise UserError("lime-rs: the recommender gives explained items scores that are not finite")
            weights = self._weights(neighbours, len(history))
            coefficients = weighted_ridge(neighbours.features, responses, weights, self.config.ridge)
            importances[np.ix_(units, held)] = coefficients[:, : len(history)]
        return rounded(importances)

    def _neighbours(self, user: int, history: IntArray, context: Context) -> Neighbours:
        generator = context.generator("lime-rs", user)
        if self.config.sampling == "draws":
            return _draws(user, history, self.config.samples, context.interactions.shape[1], generator)
        retained = subsets(len(history), self.config.samples, generator)
        users = np.full(len(retained), user)
        edits = Edits.removals(users, np.broadcast_to(history, retained.shape), ~retained)
        return Neighbours(retained.astype(np.float64), edits)

    def _weights(self, neighbours: Neighbours, length: int) -> FloatArray:
        """(n,) how much each neighbour counts, by its distance from the full profile."""
        if neighbours.distances is not None:
            return flip_weights(neighbours.distances)
        features = neighbours.features
        sizes = features.sum(axis=1)
        cosine = (features @ features[0]) / np.sqrt(np.maximum(sizes * length, 1.0))
        weights: FloatArray = np.exp(-((1.0 - cosine) ** 2) / (2.0 * self.config.kernel_width**2))
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


def flip_weights(flips: FloatArray) -> FloatArray:
    """(n,) weights of n neighbours with so many flips, the first untouched: 1 minus the share of all flips."""
    weights: FloatArray = 1.0 - flips / max(flips.sum(), 1.0)
    return weights


def _draws(
    user: int, history: IntArray, samples: int, items: int, generator: np.random.Generator
) -> Neighbours:
    """Neighbours with 50 to 99 draws, with replacement, from the history and the unseen items."""
    unseen = np.setdiff1d(np.arange(items), history)
    draws = generator.integers(FEWEST_DRAWS, MOST_DRAWS, size=samples - 1)
    removed = np.zeros((samples, len(history)), dtype=np.bool_)
    added = np.zeros((samples, items), dtype=np.bool_)
    for neighbour, count in enumerate(draws.tolist(), start=1):
        own = min(int(generator.integers(0, count)), len(history))
        if len(unseen):
            added[neighbour, generator.choice(unseen, size=count - own)] = True
        if len(history):
            removed[neighbour, generator.integers(0, len(history), size=own)] = True
    without, places = np.nonzero(removed)
    extended, new = np.nonzero(added)
    rows = np.concatenate([without, extended])
    columns = np.concatenate([history[places], new])
    ops = np.repeat(np.array([REMOVE, ADD], dtype=np.int8), [len(without), len(extended)])
    order = np.argsort(rows, kind="stable")
    edits = Edits(np.full(samples, user), rows[order], np.full(len(rows), user), columns[order], ops[order])
    return Neighbours((~removed).astype(np.float64), edits, np.concatenate([[0.0], draws]))


def _not_adding(edits: Edits, items: IntArray) -> Edits:
    """The same without additions of the explained ``items``: a recommender may mask the profile with minus infinity."""
    return edits.where(~((edits.ops == ADD) & np.isin(edits.edge_items, items)))


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
