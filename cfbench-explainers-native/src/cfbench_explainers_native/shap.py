"""SHAP: Shapley values of a user's interactions, for the score of what was recommended.

Lundberg & Lee, "A unified approach to interpreting model predictions", NIPS 2017; with the user's own
interactions as the features, as CFExpRec (section 3.4.1) and 001 use it, and the empty profile as background.
With v(S) the ``target`` for the profile S, a part of the history I_u with n interactions: the logit of y, its
log-probability, or its margin to the K-th best other candidate (see ``target_functions.py``; at list level the mean over
the listed items), the value of interaction i is

    phi_i = sum over S in I_u - i:  |S|! (n - 1 - |S|)! / n!  (v(S + i) - v(S)),      sum_i phi_i = v(I_u) - v({}).

How it is computed, the first that applies:

- ``exact: auto``: where the target is the logit and linear in the profile (``weights``), phi_i = W[i, y]. No evaluation.
- ``exact: auto`` or ``enumeration``: all 2^n parts, when these are no more than ``samples``.
- ``estimator: permutation`` (Castro et al. 2009): the mean, over q random orders and their reverses, of
  v(before i, and i) - v(before i). The sum above holds for each order, so for the mean. The standard error of
  phi_i is that of the mean of its q pairs; an order and its reverse cancel all joint effects of two.
- ``estimator: kernel``: with S ~ z in {0, 1}^n,

      phi = argmin  sum_z k(z) (v(z) - v(0) - z . phi)^2    given  sum_i phi_i = v(1) - v(0)
      k(z) = (n - 1) / (binomial(n, |z|) |z| (n - |z|))

  Sizes |z| = 1, n - 1, 2, n - 2, ... are taken whole as long as their share of ``samples`` suffices; the rest is
  drawn, each z with its complement. A ridge of 1e-10 of the mean curvature makes it solvable with few samples.

``variant: clusters`` is that of the papers: items are put into 10 clusters, a cluster's items come and go
together, and each gets the value of its cluster. The clusters are those of spherical k-means (Dhillon & Modha
2001) on the columns of the training users' interactions; an item that none of them has is in the first.

Departs from the papers' code: logits, not probabilities (their saturation hides effects), and margins where the
recommender's link is softmax (its logits are defined only up to a constant for each profile); the user's own items
rather than all of the catalogue as features, hence no background sample and no array over users and items; all
targets of a user share the evaluations; what fails is an error, not a row of zeros. Values are rounded to the
grid of 2**-30.
When it misleads: profiles far from any real one count as much as near ones; items that stand in for one another
share what they bring, so that each appears unimportant; and with the targets ``logit`` and ``probability`` the rivals
of y are not considered.
Cost: at most ``samples`` model queries for each user, however many items are explained; the permutation
estimator takes no fewer than one pair of orders, 2 n evaluations, and time n for each of them. The kernel
estimator never takes more, but solves a system of size n: n^3 / 3 for each user. Memory: ``samples`` n.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import Readers, mean_over_targets, rounded
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray, binary_rows
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.target_functions import Target, TargetFunction
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/shap",
    summary="Shapley values of the interactions, exact where that is affordable",
    target=f"{__name__}:Shap",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    papers=("lundberg2017shap",),
)

EVALUATIONS_AT_ONCE = 4096
"""Users are processed together until they need that many: few evaluations would not fill a block."""

ROUNDS = 100
"""Of k-means, at most."""


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[
        Literal["cfbench", "clusters"],
        Help("clusters: one value for the items of a cluster, as in the papers"),
    ] = "cfbench"
    target: Annotated[
        Target | None,
        Help("what is explained; none: logit, or margin where the recommender's link is softmax"),
    ] = None
    estimator: Annotated[
        Literal["permutation", "kernel"], Help("what to do when there are too many parts to take all")
    ] = "permutation"
    exact: Annotated[
        Literal["auto", "enumeration", "never"],
        Help("auto: a linear logit's weights, or all parts; enumeration: all parts; never: always estimate"),
    ] = "auto"
    samples: Annotated[int, Range(minimum=2), Help("model queries for each user")] = 1024
    clusters: Annotated[int, Range(minimum=1), Help("of items, in the variant of that name")] = 10


class Design(Protocol):
    """Which coalitions of m players are evaluated, and what follows from their responses.

    Attributes:
        coalitions: (E, m) the members; the first is empty, the last has all players.
    """

    coalitions: BoolArray

    def values(self, responses: FloatArray) -> FloatArray:
        """(m,) Shapley values from the (E,) responses."""


class Shap:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) Shapley values."""
        clusters = self._clusters(context)
        function = TargetFunction.of(self.config.target, context.model, "shap")
        linear = self.config.exact == "auto" and function.target == "logit"
        weights = getattr(context.model, "weights", None) if linear else None
        if weights is not None:
            return rounded(_of_weights(weights, targets, clusters))
        found = np.zeros(targets.history.shape)
        for games in self._batches(targets, clusters, context):
            responses = _responses(games, function, targets, context)
            for game in games:
                for unit in game.units:
                    values = game.design.values(responses[unit])
                    found[unit, : len(game.history)] = values[game.players]
        return rounded(found)

    def _clusters(self, context: Context) -> IntArray | None:
        """(items,) the cluster of each; None when each interaction is a player of its own."""
        if self.config.variant == "cfbench":
            return None
        stream = context.generator("shap", "clusters")
        return context.cached("clusters", lambda: clusters_of(context.training, self.config.clusters, stream))

    def _batches(self, targets: Targets, clusters: IntArray | None, context: Context) -> Iterator[list[Game]]:
        users, owners = np.unique(targets.users, return_inverse=True)
        by_owner = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners))
        batch: list[Game] = []
        size = 0
        for user, units in zip(users.tolist(), np.split(by_owner, ends[:-1]), strict=True):
            history = targets.history[units[0], ~targets.padding[units[0]]]
            players = np.arange(len(history))
            if clusters is not None:
                players = np.unique(clusters[history], return_inverse=True)[1]
            design = self._design(user, int(players.max()) + 1, context)
            batch.append(Game(user, units, history, players, design))
            size += len(design.coalitions)
            if size >= EVALUATIONS_AT_ONCE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _design(self, user: int, players: int, context: Context) -> Design:
        samples = self.config.samples
        if self.config.exact != "never" and players < 63 and 2**players <= samples:
            return enumeration(players)
        generator = context.generator("shap", user)
        if self.config.estimator == "kernel":
            return Kernel(players, samples, generator)
        return Permutations(players, samples, generator)


@dataclass(frozen=True)
class Game:
    """The game of one user.

    Attributes:
        units: rows of the targets of this user.
        history: (n,) items; players: (n,) which of the m players each belongs to.
    """

    user: int
    units: IntArray
    history: IntArray
    players: IntArray
    design: Design


def _of_weights(
    weights: Callable[..., FloatArray], targets: Targets, clusters: IntArray | None
) -> FloatArray:
    """(B, H) what each interaction, or all of its cluster, adds to a linear logit."""
    own = mean_over_targets(weights(rows=targets.history[:, :, None], columns=targets.items[:, None, :]))
    if clusters is None:
        return np.where(targets.padding, 0.0, own)
    found = np.zeros(own.shape)
    for unit, held in enumerate(~targets.padding):
        players = clusters[targets.history[unit, held]]
        found[unit, held] = np.bincount(players, own[unit, held])[players]
    return found


@dataclass(frozen=True)
class Parts:
    """E parts of the histories of G users, made into edits when they are scored.

    Attributes:
        users: (G,); history, padding: (G, H); owners: (E,) whose part; members: (E, H), False at padding.
    """

    users: IntArray
    history: IntArray
    padding: BoolArray
    owners: IntArray
    members: BoolArray

    @staticmethod
    def of(games: list[Game]) -> Parts:
        shape = len(games), max(len(game.history) for game in games)
        sizes = [len(game.design.coalitions) for game in games]
        history, padding = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.bool_)
        members = np.zeros((sum(sizes), shape[1]), dtype=np.bool_)
        start = 0
        for row, (game, size) in enumerate(zip(games, sizes, strict=True)):
            length = len(game.history)
            history[row, :length], padding[row, :length] = game.history, False
            members[start : start + size, :length] = game.design.coalitions[:, game.players]
            start += size
        users = np.array([game.user for game in games])
        return Parts(users, history, padding, np.repeat(np.arange(len(games)), sizes), members)

    def __len__(self) -> int:
        return len(self.owners)

    def choose(self, which: IntArray) -> Parts:
        return Parts(self.users, self.history, self.padding, self.owners[which], self.members[which])

    def edits(self) -> Edits:
        removed = ~self.members & ~self.padding[self.owners]
        return Edits.removals(self.users[self.owners], self.history[self.owners], removed)

    def profiles(self, interactions: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        columns = self.history[self.owners][self.members]
        return binary_rows(self.members, columns, interactions.shape[1])


def _responses(
    games: list[Game], function: TargetFunction, targets: Targets, context: Context
) -> dict[int, FloatArray]:
    """By unit, the target function (mean over T) for each coalition of its game."""
    parts = Parts.of(games)
    units = np.concatenate([game.units for game in games])
    readers = Readers.of_users(parts.owners, np.repeat(np.arange(len(games)), [len(g.units) for g in games]))
    found = np.empty(len(readers.edits))
    for rows, scores in score_blocks(context.model, parts, context.interactions):
        pairs = readers.within(rows)
        at, of = readers.edits[pairs] - rows.start, units[readers.units[pairs]]
        found[pairs] = mean_over_targets(function.values(scores, at, of, targets))
    of_unit = np.argsort(readers.units, kind="stable")
    ends = np.cumsum(np.bincount(readers.units, minlength=len(units)))
    return dict(zip(units.tolist(), np.split(found[of_unit], ends[:-1]), strict=True))


class Enumeration:
    """All 2^m coalitions: the definition itself."""

    def __init__(self, players: int) -> None:
        self.coalitions: BoolArray = (np.arange(2**players)[:, None] >> np.arange(players)) % 2 == 1
        weight = np.array([1 / (players * math.comb(players - 1, size)) for size in range(players)])
        sizes = self.coalitions.sum(axis=1)[:, None]
        joined, left = weight[np.maximum(sizes - 1, 0)], -weight[np.minimum(sizes, players - 1)]
        self._factors: FloatArray = np.ascontiguousarray(np.where(self.coalitions, joined, left).T)

    def values(self, responses: FloatArray) -> FloatArray:
        values: FloatArray = self._factors @ (responses - responses[0])
        return values


enumeration = functools.lru_cache(maxsize=16)(Enumeration)


class Permutations:
    """q random orders and their reverses, every coalition that they go through."""

    def __init__(self, players: int, samples: int, generator: np.random.Generator) -> None:
        pairs = max(1, (samples - 2) // max(2 * (players - 1), 1)) if players > 1 else 1
        orders = generator.permuted(np.tile(np.arange(players), (pairs, 1)), axis=1)
        both = np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * pairs, players)
        self._places = np.argsort(both, axis=1)  # where each player stands in each order
        steps = self._places[:, None, :] < np.arange(1, players)[:, None]
        empty = np.zeros((1, players), dtype=np.bool_)
        self.coalitions: BoolArray = np.concatenate([empty, steps.reshape(-1, players), ~empty])

    def values(self, responses: FloatArray) -> FloatArray:
        values: FloatArray = self._of_pairs(responses).mean(axis=0)
        return values

    def errors(self, responses: FloatArray) -> FloatArray:
        """(m,) standard errors of the values; NaN with a single pair of orders."""
        found = self._of_pairs(responses)
        if len(found) < 2:
            return np.full(found.shape[1], np.nan)
        errors: FloatArray = found.std(axis=0, ddof=1) / math.sqrt(len(found))
        return errors

    def _of_pairs(self, responses: FloatArray) -> FloatArray:
        """(q, m) what each player adds, mean of an order and its reverse."""
        orders, players = self._places.shape
        paths = np.empty((orders, players + 1))
        paths[:, 0], paths[:, -1] = responses[0], responses[-1]
        paths[:, 1:-1] = responses[1:-1].reshape(orders, players - 1)
        added = np.take_along_axis(np.diff(paths, axis=1), self._places, axis=1)
        means: FloatArray = added.reshape(-1, 2, players).mean(axis=1)
        return means


class Kernel:
    """Weighted least squares, with the sum of the values given."""

    def __init__(self, players: int, samples: int, generator: np.random.Generator) -> None:
        between, weights = kernel_coalitions(players, samples - 2, generator)
        empty = np.zeros((1, players), dtype=np.bool_)
        self.coalitions: BoolArray = np.concatenate([empty, between, ~empty])
        self._shares = between.mean(axis=1)
        # phi = (v(1) - v(0)) / m + psi, the psi add up to 0, and z . psi = (z - |z| / m) . psi.
        centred = between - self._shares[:, None]
        self._weighted = np.ascontiguousarray((centred * weights[:, None]).T)
        gram = self._weighted @ centred
        level = np.trace(gram) / players or 1.0
        gram += level / players  # the curvature along (1, ..., 1), where psi is 0
        gram[np.diag_indices(players)] += 1e-10 * level
        self._factor = scipy.linalg.cho_factor(gram, overwrite_a=True)

    def values(self, responses: FloatArray) -> FloatArray:
        whole = responses[-1] - responses[0]
        rest = responses[1:-1] - responses[0] - self._shares * whole
        psi = scipy.linalg.cho_solve(self._factor, self._weighted @ rest)
        values: FloatArray = whole / len(psi) + psi - psi.mean()
        return values


def kernel_coalitions(
    players: int, samples: int, generator: np.random.Generator
) -> tuple[BoolArray, FloatArray]:
    """At most ``samples`` coalitions (E, m), neither empty nor full, and their weights (E,), complements together."""
    sizes = np.arange(1, players // 2 + 1)
    mass = (players - 1) / (sizes * (players - sizes)) * np.where(2 * sizes == players, 1, 2)
    parts, weights = [np.zeros((0, players), dtype=np.bool_)], [np.zeros(0)]
    left, whole = samples, 0
    for size in sizes.tolist():
        count = math.comb(players, size) * (1 if 2 * size == players else 2)
        if count > left * mass[size - 1] / mass[size - 1 :].sum():
            break
        chosen = np.array(list(itertools.combinations(range(players), size)))
        layer = np.zeros((len(chosen), players), dtype=np.bool_)
        np.put_along_axis(layer, chosen, True, axis=1)
        parts.append(layer if 2 * size == players else np.concatenate([layer, ~layer]))
        weights.append(np.full(count, mass[size - 1] / count))
        left, whole = left - count, size
    rest, pairs = mass[whole:], left // 2
    if len(rest) and pairs:
        drawn = generator.choice(sizes[whole:], size=pairs, p=rest / rest.sum())
        places = generator.random((pairs, players)).argsort(axis=1).argsort(axis=1)
        some = places < drawn[:, None]
        parts += [some, ~some]
        weights.append(np.full(2 * pairs, rest.sum() / (2 * pairs)))
    return np.concatenate(parts), np.concatenate(weights)


def clusters_of(training: scipy.sparse.csr_matrix, clusters: int, generator: np.random.Generator) -> IntArray:
    """(items,) the cluster of each item, by the cosine of its users to the mean direction of the cluster.

    training (users, items). The first centre is a random item; each next one is an item far from those before,
    drawn with a probability that grows with 1 - cosine.
    """
    vectors = training.T.tocsr().astype(np.float64)
    sizes = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    vectors = (scipy.sparse.diags(1 / np.where(sizes > 0, sizes, 1.0)) @ vectors).tocsr()
    known = np.flatnonzero(sizes)
    nearest = np.where(sizes > 0, 0.0, 1.0)  # to the centres so far; who is unknown is never drawn
    centres = np.zeros((vectors.shape[1], 0))
    for _ in range(min(clusters, len(known))):
        far = np.maximum(1 - nearest, 0.0)
        drawn = generator.choice(len(far), p=far / far.sum()) if far.sum() > 0 else generator.choice(known)
        centre = vectors[[drawn]].toarray().T
        centres = np.concatenate([centres, centre], axis=1)
        nearest = np.maximum(nearest, (vectors @ centre)[:, 0])
    if not centres.shape[1]:
        return np.zeros(len(sizes), dtype=np.int64)
    found = np.full(len(sizes), -1)
    for _ in range(ROUNDS):
        # Rounded, so that an item between two centres goes to the first
        before, found = found, rounded(vectors @ centres).argmax(axis=1)
        if np.array_equal(before, found):
            break
        members = scipy.sparse.csr_matrix(
            (np.ones(len(found)), (found, np.arange(len(found)))), (centres.shape[1], len(found))
        )
        sums = (members @ vectors).toarray().T
        lengths = np.sqrt((sums**2).sum(axis=0))
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), centres)
    return found.astype(np.int64)
