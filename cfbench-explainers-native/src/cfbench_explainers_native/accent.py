"""ACCENT: remove what holds an item above those just below the list, until one of these takes its place.

Tran, Ghazimatin & Saha Roy, "Counterfactual explanations for neural recommenders", SIGIR 2021; item level in
CFExpRec, Refined fidelity and Consistency beyond top-1, list level is ours. With s_c the logit of candidate c, and
I(i, c) an estimate of how much s_c falls when interaction i is removed, the gap between target y and rival r
changes by

    G_r(i) = I(i, y) - I(i, r)                              (at list level I(i, y) is the mean over the list).

For each rival r (the ``rivals`` candidates below the list, ranks K + 1, ...) interactions are removed by
descending G_r, logits being taken to fall by the sum of the I(i, .), up to the first prefix with which y is
predicted to leave the top K (``stopping_rule: displaced``; at list level: with which the most items are). The answer is
the shortest such prefix of all rivals; then the rival that could get furthest ahead; none when no prefix does
it. ``stopping_rule: overtaken`` is the rule of the paper: stop when r is predicted to pass y, which at rank 1 may leave y
in the top K. ``stopping_rule: verified`` determines on the real model which prefix of the order against that rival does it.
Importances: G_r(i) for the rival of the answer.

What I(i, c) is (``effect``). A recommender that computes the user's vector from the profile forgets a removed
interaction at its input, at once and without training; the paper's recommenders forget it by being trained again.

- ``leave-one-out``: s_c(x) - s_c(x without i), on the real model. Exact for one removal.
- ``input-gradient``: the derivative of s_c by the weight of interaction i (in the profile, or of the edge).
  What an influence function is for parameters. The same as leave-one-out where the logit is linear.
- ``influence``: the paper's idea, in the d dimensions of the user's vector p, where s_c = p . q_c. It takes p to
  be fitted to the user's n interactions, the vectors q of the items staying as they are:

      L(p) = 1/n sum_{i in I_u} softplus(-p . q_i) + negatives mean_{j not in I_u} softplus(p . q_j)
             + lambda/2 |p|^2 - (what makes the model's own p its minimum: linear in p)
      I(i, c) = 1/n sigmoid(-p . q_i) q_i^T H^-1 q_c,      H = the Hessian of L at p.

  lambda is ``damping`` times the trace of H without it. It answers what would be recommended had the user's vector been
  fitted without i, by a learner that the recommender need not resemble, and the verification on the real
  recommender shows how far that carries. Coordinates of p on which no interaction of the user has an effect
  (a constant that carries a bias) are no parameters.
  On ml-100k the effects have a rank correlation of 0.91 with those of training all vectors of users and items again
  (benchmarks/accent_retraining.py; 0.78 for logits and 0.82 for gaps with ``negatives: 0`` and ``damping: 0.1``).
- ``refit``: the same question, answered by fitting p again without i (Newton's method). Slow: a check.

This is ``variant: cfbench``. ``variant: paper`` is the method as its authors published it, see ``accent_paper.py``.

Departs from the paper: H has d rows here, so that it is solved directly and not by conjugate gradients (their
parameters are those of the user and of the target; the model was not trained on (u, y), so the second block has no part in
the removal of another interaction); rivals lie below the list, never in it; the prediction looks at the
ranks of all candidates down to the last rival. The public code of CFExpRec, Refined fidelity and Consistency beyond
top-1 takes gaps to other members of the list, with which the first removal always "succeeds", and multiplies an
empty dictionary. When it misleads: effects are added up, so that joint effects are missed, and the prediction then
is wrong in either direction (the suite verifies it); an item held by a bias is never predicted to leave: no answer.
Cost for each user, n its interactions: leave-one-out n + 1 model queries; input-gradient K + ``rivals`` with
gradients, and 1; influence 1, and d^2 operations for each item; refit some 4 n times that. The search takes (K +
rivals) rivals n operations for each unit; ``stopping_rule: verified`` queries the model for each prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.component import not_default
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.errors import UserError
from cfbench_core.specs import Capabilities, ComponentSpec
from cfbench_explainers_native.accent_paper import PaperAccent, PaperOptions
from cfbench_explainers_native.fitted_user import Fit, user_vectors
from cfbench_explainers_native.shared import SingleRemovals, rounded
from cfbench_recsys.answers import smallest_prefix
from cfbench_recsys.contracts import scores_graphs
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/accent",
    summary="Removes the interactions that hold an item above those just below the list",
    target=f"{__name__}:Accent",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    papers=("tran2021accent",),
    presets="cfbench_explainers_native:presets/accent.yaml",
)

NUMBERS_AT_ONCE = 2**21
"""Predicted logits held at once: users are worked on together until they need as many."""


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[Variant, Help("paper: influence functions as published, see accent_paper.py")] = (
        "cfbench"
    )
    effect: Annotated[
        Literal["leave-one-out", "input-gradient", "influence", "refit"],
        Help("how the effect of a removal is estimated"),
    ] = "leave-one-out"
    rivals: Annotated[
        int, Range(minimum=1), Search(choices=(5, 10, 20, 50)), Help("items below the list to compare with")
    ] = 20
    stopping_rule: Annotated[
        Literal["displaced", "overtaken", "verified"],
        Help("displaced: by prediction; overtaken: a rival passes; verified: by the model"),
    ] = "displaced"
    damping: Annotated[
        float,
        Range(above=0),
        Search(1e-3, 10, log=True),
        Help("with influence and refit, ridge relative to the sum of curvatures"),
    ] = 0.01
    negatives: Annotated[
        float,
        Range(minimum=0),
        Search(choices=(0.0, 0.1, 1.0, 10.0)),
        Help("with influence and refit, weight of the items that the user has not"),
    ] = 10.0
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self)
        fitted = self.effect in ("influence", "refit")
        for name in () if fitted else ("damping", "negatives"):
            if name in not_default(self):
                raise UserError(
                    f"{name}: has no effect with effect: {self.effect}, which fits no user's vector"
                )

    @property
    def needs(self) -> Mapping[str, Capabilities]:
        """What the estimate needs of the recommender in addition to its scores."""
        effect = "influence" if self.variant == "paper" else self.effect
        access = {"input-gradient": "gradients", "influence": "embeddings", "refit": "embeddings"}.get(effect)
        return {"recommender": {"access": frozenset({access})}} if access else {}


@dataclass(frozen=True)
class Effects:
    """What the interactions of G users do to the logits of C candidates each.

    Attributes:
        owners: (B,) the user of each unit.
        columns: (G, C) the candidates: those of ranks 1, 2, ..., then targets that are not among them; -1: none.
        scores: (G, C) logits, -inf where there is no candidate; drops: (G, H, C) fall of each without each
            interaction. Both on the grid, so that sums are exact.
        ranked: how many of the columns are those of ranks 1, 2, ...
    """

    owners: IntArray
    columns: IntArray
    scores: FloatArray
    drops: FloatArray
    ranked: int


@dataclass(frozen=True)
class Plan:
    """Of each unit, the order of removal against the rival that was chosen.

    Attributes:
        gaps: (B, H) what each removal takes from the gap; order: (B, H) which comes when; size: (B,) how many
            are removed, 0 for no answer.
    """

    gaps: FloatArray
    order: IntArray
    size: IntArray


class Accent:
    """The configured variant."""

    def __init__(self, config: Config) -> None:
        self._variant: PaperAccent | AdditiveAccent = (
            PaperAccent(config.paper) if config.variant == "paper" else AdditiveAccent(config)
        )

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) by how much each removal narrows the gap to the rival."""
        return self._variant.importances(targets, context)

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        """B edits: the smallest set of removals that is predicted to displace the target."""
        return self._variant.counterfactuals(targets, context)


class AdditiveAccent:
    """The variant cfbench."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) by how much each removal narrows the gap to the rival."""
        found = np.zeros(targets.history.shape)
        for units, block in self._blocks(targets):
            plan = self._plan(block, self._effects(block, context))
            found[units, : block.history.shape[1]] = np.where(block.padding, 0.0, plan.gaps)
        return found

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        """B edits: the smallest set of removals that is predicted to displace the target."""
        if self.config.stopping_rule == "verified":
            gaps = self.importances(targets, context)
            return smallest_prefix(context.model, targets, gaps, context.interactions)
        removed = np.zeros(targets.history.shape, dtype=np.bool_)
        for units, block in self._blocks(targets):
            plan = self._plan(block, self._effects(block, context))
            chosen = np.zeros(block.history.shape, dtype=np.bool_)
            first = np.arange(chosen.shape[1]) < plan.size[:, None]
            np.put_along_axis(chosen, plan.order, first, axis=1)
            removed[units, : chosen.shape[1]] = chosen
        edits = Edits.removals(targets.users, targets.history, removed & ~targets.padding)
        return targets.within_budget(edits)

    def _blocks(self, targets: Targets) -> Iterator[tuple[IntArray, Targets]]:
        """All units of some users at a time, users of like history together: rows, and their targets."""
        lengths = np.count_nonzero(~targets.padding, axis=1)
        order = np.lexsort((targets.users, lengths))
        rivals = self._rivals(targets)
        needed = np.cumsum(lengths[order] * rivals * (targets.k + rivals))
        users = targets.users[order]
        ends = np.flatnonzero(np.append(users[1:] != users[:-1], True)) + 1
        start, spent = 0, 0
        for end in ends.tolist():
            if needed[end - 1] - spent >= NUMBERS_AT_ONCE or end == len(order):
                yield order[start:end], targets.take(order[start:end])
                start, spent = end, needed[end - 1]

    def _rivals(self, targets: Targets) -> int:
        """At least one for each item to displace."""
        return max(self.config.rivals, targets.items.shape[1])

    def _effects(self, targets: Targets, context: Context) -> Effects:
        users, first, owners = np.unique(targets.users, return_index=True, return_inverse=True)
        of_users = targets.take(first)
        wanted_items = [np.unique(targets.items[owners == user]) for user in range(len(users))]
        wanted = targets.k + self._rivals(targets)
        rows: list[IntArray] = []
        logits: list[FloatArray] = []
        seen, absent = of_users.seen
        for block, scores in score_blocks(context.model, Edits.nothing(users), context.interactions):
            ranked = top_k(scores, seen[block], absent[block], wanted)
            for row, best in enumerate(ranked):
                candidates = np.concatenate([best, np.setdiff1d(wanted_items[block.start + row], best)])
                rows.append(candidates)
                logits.append(np.where(candidates < 0, -np.inf, scores[row, candidates]))
        width = max(map(len, rows))
        columns, before = np.full((len(users), width), -1), np.full((len(users), width), -np.inf)
        for user, (candidates, own) in enumerate(zip(rows, logits, strict=True)):
            columns[user, : len(candidates)], before[user, : len(candidates)] = candidates, own
        drops = self._drops(of_users, columns, before, context)
        drops = np.where((columns < 0)[:, None, :] | of_users.padding[:, :, None], 0.0, rounded(drops))
        return Effects(owners, columns, rounded(before), drops, wanted)

    def _drops(self, users: Targets, columns: IntArray, before: FloatArray, context: Context) -> FloatArray:
        """(G, H, C) estimated fall of the logits ``before`` (G, C); what it is where nothing is, is ignored."""
        if self.config.effect == "leave-one-out":
            return left_out(users, columns, before, context)
        if self.config.effect == "input-gradient":
            return gradients(users, columns, context)
        return self._influences(users, columns, context)

    def _influences(self, users: Targets, columns: IntArray, context: Context) -> FloatArray:
        items = context.embedding_model.item_embeddings()
        found = np.zeros((*users.history.shape, columns.shape[1]))
        for row, (own, free) in enumerate(user_vectors(context, users.users)):
            history = users.history[row, ~users.padding[row]]
            fitted_to = np.append(history, np.array(users.fixed, dtype=np.int64))
            fit = Fit.of(own, free, items, fitted_to, self.config.damping, self.config.negatives)
            moved = fit.influences() if self.config.effect == "influence" else fit.refitted()
            found[row, : len(history)] = moved[: len(history)] @ items[columns[row]].T
        return found

    def _plan(self, targets: Targets, effects: Effects) -> Plan:
        duels = Duels.of(targets, effects)
        overtaken = self.config.stopping_rule == "overtaken"
        gain = np.where(duels.valid[:, :, None], duels.overtaken() if overtaken else duels.displaced(), 0)
        most, size = gain.max(axis=2), gain.argmax(axis=2) + 1  # (B, R), the shortest prefix with the most
        rival = np.lexsort((duels.least_gaps(), size, -most), axis=-1)[:, 0]
        units, count = np.arange(len(targets)), targets.items.shape[1]
        opposed = duels.valid[units, rival]  # otherwise there is no item below the list
        gaps = np.where(opposed[:, None], duels.gaps[units, rival], duels.own_drops) / count
        size = np.where(most[units, rival] > 0, size[units, rival], 0)
        return Plan(gaps, duels.order[units, rival], size)


@dataclass(frozen=True)
class Duels:
    """Each of B targets against each of its R rivals. Sums over the T items of a target, not means: exact.

    Attributes:
        columns: (B, C) the ranked candidates; rivals: which of them are rivals; valid: (B, R) there is one.
        own_drops: (B, H); gaps: (B, R, H) what each removal takes from the gap, before it (B, R).
        order: (B, R, H) of the removals; after: (B, R, H, C), own_after: (B, R, H, T) logits predicted
            after the first removals, and of the target.
    """

    targets: Targets
    columns: IntArray
    rivals: slice
    valid: BoolArray
    own_drops: FloatArray
    before: FloatArray
    gaps: FloatArray
    order: IntArray
    after: FloatArray
    own_after: FloatArray

    @staticmethod
    def of(targets: Targets, effects: Effects) -> Duels:
        columns, scores = effects.columns[effects.owners], effects.scores[effects.owners]
        drops, count = effects.drops[effects.owners], targets.items.shape[1]
        rivals = slice(targets.k, effects.ranked)
        own = (columns[:, None, :] == targets.items[:, :, None]).argmax(axis=2)  # (B, T)
        valid = columns[:, rivals] >= 0
        valid &= (columns[:, rivals, None] != targets.items[:, None, :]).all(axis=2)
        own_drops = np.take_along_axis(drops, own[:, None, :], axis=2).sum(axis=2)
        own_score = np.take_along_axis(scores, own, axis=1).sum(axis=1)
        gaps = own_drops[:, None, :] - count * np.moveaxis(drops[:, :, rivals], 2, 1)
        order = np.argsort(np.where(targets.padding[:, None, :], np.inf, -gaps), axis=2, kind="stable")
        falls = np.take_along_axis(drops[:, None], order[..., None], axis=2)
        # a cumsum, which is slower along an axis that is not the last
        for place in range(1, falls.shape[2]):
            falls[:, :, place] += falls[:, :, place - 1]
        after = scores[:, None, None, :] - falls
        ranked = slice(effects.ranked)
        return Duels(
            targets,
            columns[:, ranked],
            rivals,
            valid,
            own_drops,
            own_score[:, None] - count * scores[:, rivals],
            gaps,
            order,
            after[..., ranked],
            np.take_along_axis(after, own[:, None, None, :], axis=3),
        )

    def displaced(self) -> IntArray:
        """(B, R, H) how many items of the target are predicted beyond rank K."""
        gain = np.zeros(self.order.shape, dtype=np.int64)
        for place, item in enumerate(self.targets.items.T):
            own = self.own_after[..., place, None]
            lower = (self.columns < item[:, None])[:, None, None, :]
            ahead = (self.after > own) | ((self.after == own) & lower)
            gain += np.count_nonzero(ahead, axis=3) >= self.targets.k
        return gain

    def overtaken(self) -> IntArray:
        """(B, R, H) 1 where the rival is predicted to be ahead of the target (of its mean)."""
        rivals = np.moveaxis(self.after[..., self.rivals], 3, 1)  # (B, R, R, H): a rival in each order
        each = np.arange(rivals.shape[1])
        own = self.own_after.sum(axis=3)
        gain: IntArray = (own < self.own_after.shape[3] * rivals[:, each, each]).astype(np.int64)
        return gain

    def least_gaps(self) -> FloatArray:
        """(B, R) the gap to each rival when all that narrows it is removed."""
        least: FloatArray = np.where(self.valid, self.before - np.maximum(self.gaps, 0.0).sum(axis=2), np.inf)
        return least


def left_out(users: Targets, columns: IntArray, before: FloatArray, context: Context) -> FloatArray:
    """(G, H, C) fall of the logits ``before`` (G, C) of ``columns`` when an interaction is removed alone."""
    found = np.zeros((*users.history.shape, columns.shape[1]))
    removals = SingleRemovals.of(users)
    owners = np.searchsorted(users.users, removals.edits.users)
    for rows, scores in score_blocks(context.model, removals.edits, context.interactions):
        owner = owners[rows]
        after = np.take_along_axis(scores, columns[owner], axis=1)
        # Where there is no candidate, minus infinity less a number
        found[owner, removals.positions[rows]] = before[owner] - after
    return found


def gradients(users: Targets, columns: IntArray, context: Context) -> FloatArray:
    """(G, H, C) derivative of the logit of each of ``columns`` by the weight of each interaction."""
    import torch

    on_graph = scores_graphs(context.model)
    found = np.zeros((*users.history.shape, columns.shape[1]))
    wanted = torch.as_tensor(np.maximum(columns, 0))
    for row, user in enumerate(users.users.tolist()):
        history = users.history[row, ~users.padding[row]]
        shape = columns.shape[1], len(history)
        if on_graph:
            weight = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
            edges = torch.as_tensor(np.tile(history, shape[0]))
            repeated, edge_users = (torch.full((size,), user) for size in (shape[0], len(edges)))
            rows = torch.arange(shape[0]).repeat_interleave(len(history))
            scores = context.graph_gradients.score_weighted(
                repeated, rows, edge_users, edges, weight.flatten()
            )
        else:
            weight = torch.ones(shape, dtype=torch.float64, requires_grad=True)
            others = torch.zeros((shape[0], context.interactions.shape[1]), dtype=torch.float64)
            others[:, list(users.fixed)] = 1.0
            scores = context.profile_gradients.score_dense(
                others.index_copy(1, torch.as_tensor(history), weight)
            )
        total = scores.gather(1, wanted[row, :, None].to(scores.device)).sum()
        (gradient,) = torch.autograd.grad(total, weight)
        found[row, : len(history)] = gradient.cpu().numpy().T
    return found
