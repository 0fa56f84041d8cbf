"""SHAP: Shapley values of a user's interactions, for the score of what was recommended.

Lundberg & Lee, "A unified approach to interpreting model predictions", NIPS 2017; with the user's own
interactions as the features, as CFExpRec (section 3.4.1) and Refined fidelity use it, and the empty profile as background.
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

This is ``variant: cfbench``. ``variant: paper`` is what papers on recommenders use, with one value for all items of a
cluster, see ``shap_paper.py``.

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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_core.config import Help, Range
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.specs import Capabilities, ComponentSpec
from cfbench_explainers_native.shap_paper import PaperOptions, PaperShap
from cfbench_explainers_native.shapley_values import Design, Kernel, Permutations, enumeration
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
    presets="cfbench_explainers_native:presets/shap.yaml",
)

EVALUATIONS_AT_ONCE = 4096
"""Users are processed together until they need that many: few evaluations would not fill a block."""


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[
        Variant,
        Help("paper: one value for the items of a cluster, as papers on recommenders do, see shap_paper.py"),
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
    samples: Annotated[
        int,
        Range(minimum=2),
        Help("model queries for each user; estimator permutation has at least two for each interaction"),
    ] = 1024
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self)

    @property
    def needs(self) -> Mapping[str, Capabilities]:
        """The variant paper scores profiles of no user, which a recommender on a graph cannot do."""
        return {"recommender": {"scope": frozenset({"user-vector"})}} if self.variant == "paper" else {}


class Shap:
    """The configured variant."""

    def __init__(self, config: Config) -> None:
        self._variant: PaperShap | InteractionShap = (
            PaperShap(config.paper) if config.variant == "paper" else InteractionShap(config)
        )

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) Shapley values."""
        return self._variant.importances(targets, context)


class InteractionShap:
    """The variant cfbench."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) Shapley values."""
        function = TargetFunction.of(self.config.target, context.model, "shap")
        linear = self.config.exact == "auto" and function.target == "logit"
        if linear and context.linear:
            return rounded(_of_weights(context.linear_model.weights, targets))
        found = np.zeros(targets.history.shape)
        for games in self._batches(targets, context):
            responses = _responses(games, function, targets, context)
            for game in games:
                for unit in game.units:
                    found[unit, : len(game.history)] = game.design.values(responses[unit])
        return rounded(found)

    def _batches(self, targets: Targets, context: Context) -> Iterator[list[Game]]:
        users, owners = np.unique(targets.users, return_inverse=True)
        by_owner = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners))
        batch: list[Game] = []
        size = 0
        for user, units in zip(users.tolist(), np.split(by_owner, ends[:-1]), strict=True):
            history = targets.history[units[0], ~targets.padding[units[0]]]
            design = self._design(user, len(history), context)
            batch.append(Game(user, units, history, design))
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
        history: (n,) items, the players.
    """

    user: int
    units: IntArray
    history: IntArray
    design: Design


def _of_weights(weights: Callable[..., FloatArray], targets: Targets) -> FloatArray:
    """(B, H) what each interaction adds to a linear logit."""
    own = mean_over_targets(weights(targets.history[:, :, None], targets.items[:, None, :]))
    return np.where(targets.padding, 0.0, own)


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
            members[start : start + size, :length] = game.design.coalitions
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
