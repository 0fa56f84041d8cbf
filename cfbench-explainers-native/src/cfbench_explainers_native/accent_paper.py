"""ACCENT as published: influence functions on the vectors of the user and of the item, gaps to the next items.

Tran, Ghazimatin & Saha Roy, "Counterfactual explanations for neural recommenders", SIGIR 2021, with the authors' code
(repository hieptk/accent, commit 8c6652e; module NCF), which builds on Cheng et al., "Incorporating interpretability into
latent factor models via fast influence analysis" (FIA), KDD 2019. For a user u and a candidate c, the parameters are
theta = (p_u, q_c), with the logit s_uc = p_u . q_c, and the training examples are those that touch them: Z = the n
pairs (u, i), i in I_u, and (v, c), v in U_c, the training users of c.

    L(theta) = 1/n sum_{z in Z} l(s_z) + weight_decay / 2 (|p_u|^2 + |q_c|^2),        H = the Hessian of L + damping
    I(z, c) = - 1/n  grad s_uc . H^-1 . grad (l(s_z) + weight_decay / 2 |theta|^2)

is the estimated fall of s_uc without the example z. Against each rival r of the explained item y, interactions are
removed by descending I(i, y) - I(i, r) as long as it is not negative, and until the predicted gap s_y - s_r, from which
these are subtracted, is negative. Of the sets of all rivals the smallest is the answer; of equally large ones the one
with the lowest predicted gap; no answer where no rival is predicted to pass. Nothing is verified: the prediction
decides, as in the authors' code.

Hyperparameters: damping 1e-6 and weight decay 1e-3, those of the authors' code. The rivals are the other items of the
recommended list: k - 1 items, for lists of k = 5, 10 and 20.

Adaptations to this benchmark:

- The paper explains the first recommendation only. Here the list of an explained item begins at it: its rivals are the
  k - 1 candidates that rank behind it (those before it have passed it already). For the first item this is the
  paper's rule.
- At list level, which the paper does not have, y is the mean of the listed items and the rivals follow the list.
- The authors' recommenders are trained on ratings with squared errors; those here on implicit feedback. l is
  softplus(-s) where the link of the recommender is sigmoid or softmax, and (s - 1)^2 where it is identity.
- Vectors that a recommender computes from the profile are taken as parameters, at the coordinates on which the profile
  has an effect. Training users are those who are not explained, and the user.
- (u, c) is no example, as c is not in I_u; so H has two blocks, one for each vector, which are solved directly. The authors'
  code minimises the same quadratic function by Newton-CG up to a tolerance of 1e-3 for each coordinate.
Importances: I(i, y) - I(i, r) for the rival of the answer, else for the rival whose predicted gap could get lowest.

Agreement with the authors' loop (benchmarks/authors_native.py, where their search is imported and their influences are
computed by automatic differentiation and Newton-CG): on ml-100k with MF, 20 users, K = 5, all 100 answers are identical
(PN-S 0.12, 1.10 edits).

When it misleads: it predicts what *training again* without the interaction would do, while the benchmark removes the
interaction from the profile or the graph of a trained recommender.
Cost: one model query and one eigendecomposition (d^3) for each user, and d^3 for each candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_core.config import Help, Range
from cfbench_explainers_native.fitted_user import user_vectors
from cfbench_explainers_native.shared import rounded
from cfbench_recsys.contracts import Link, scores_graphs
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.links import link_of
from cfbench_recsys.ranking import GRID, top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Context, Targets


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code."""

    rivals: Annotated[
        int | None, Range(minimum=1), Help("items to compare with; none: the k - 1 behind the explained one")
    ] = None
    damping: Annotated[float, Range(above=0), Help("added to the Hessian's diagonal")] = 1e-6
    weight_decay: Annotated[float, Range(minimum=0), Help("that of the recommender's training")] = 1e-3


@dataclass(frozen=True)
class Choice:
    """Of one unit: what each of n removals takes from the gap to the chosen rival, and which are removed."""

    gaps: FloatArray
    removed: BoolArray


class PaperAccent:
    def __init__(self, options: PaperOptions) -> None:
        self.options = options

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) by how much each removal is estimated to narrow the gap to the rival."""
        found = np.zeros(targets.history.shape)
        for unit, choice in enumerate(self._choices(targets, context)):
            found[unit, : len(choice.gaps)] = choice.gaps
        return found

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        """B edits: the smallest set with which a rival is predicted to pass."""
        removed = np.zeros(targets.history.shape, dtype=np.bool_)
        for unit, choice in enumerate(self._choices(targets, context)):
            removed[unit, : len(choice.removed)] = choice.removed
        return targets.within_budget(Edits.removals(targets.users, targets.history, removed))

    def _choices(self, targets: Targets, context: Context) -> list[Choice]:
        examples = Examples.of(context)
        users, first, owners = np.unique(targets.users, return_index=True, return_inverse=True)
        choices: dict[int, Choice] = {}
        vectors = user_vectors(context, users)
        untouched = Edits.nothing(users)
        for rows, scores in score_blocks(context.model, untouched, context.interactions):
            for row, user in enumerate(range(rows.start, rows.stop)):
                history = targets.history[first[user], ~targets.padding[first[user]]]
                seen = np.append(history, np.array(targets.fixed, dtype=np.int64))
                influences = Influences.of(*next(vectors), seen, examples, self.options)
                for unit in np.flatnonzero(owners == user).tolist():
                    rivals = self._rivals(scores[row], seen, targets.items[unit], targets.k)
                    choices[unit] = choose(scores[row], targets.items[unit], rivals, influences, len(history))
        return [choices[unit] for unit in range(len(targets))]

    def _rivals(self, scores: FloatArray, seen: IntArray, items: IntArray, k: int) -> IntArray:
        """The candidates behind the last of ``items``, best first."""
        last = len(items) > 1
        count = self.options.rivals or max(1, k if last else k - 1)
        steps = np.rint(scores * GRID)
        worst = min((steps[item], -item) for item in items.tolist())
        ahead = (steps > worst[0]) | ((steps == worst[0]) & (np.arange(len(steps)) <= -worst[1]))
        left = np.where(ahead, -np.inf, scores)
        found = top_k(left[None], seen[None], np.zeros((1, len(seen)), dtype=np.bool_), count)[0]
        behind: IntArray = found[found >= 0]
        return behind


def choose(
    scores: FloatArray, items: IntArray, rivals: IntArray, influences: Influences, size: int
) -> Choice:
    """The smallest set over all rivals (R,) of the mean of ``items`` (T,), by the rule of the paper.

    Only the first ``size`` interactions may be removed.
    """
    own = np.mean([influences.on(item)[:size] for item in items.tolist()], axis=0)
    score = float(np.mean(scores[items]))
    best, fallback = None, None
    for rival in rivals.tolist():
        gaps = rounded(own - influences.on(rival)[:size])
        gap, removed = shrink(float(rounded(np.array(score - scores[rival]))), gaps)
        if gap < 0 and (best is None or (removed.sum(), gap) < best[0]):
            best = (removed.sum(), gap), Choice(gaps, removed)
        if fallback is None or gap < fallback[0]:
            fallback = gap, Choice(gaps, np.zeros(size, dtype=np.bool_))
    if best is not None:
        return best[1]
    return fallback[1] if fallback else Choice(rounded(own), np.zeros(size, dtype=np.bool_))


def shrink(gap: float, gaps: FloatArray) -> tuple[float, BoolArray]:
    """The predicted gap, and the (n,) removals that lead to it: the largest first, none that is negative."""
    removed = np.zeros(len(gaps), dtype=np.bool_)
    for place in np.argsort(-gaps, kind="stable").tolist():
        if gaps[place] < 0:
            break
        removed[place] = True
        gap -= float(gaps[place])
        if gap < 0:
            break
    return gap, removed


@dataclass(frozen=True)
class Examples:
    """The training examples of items, and what one costs.

    Attributes:
        items: (items, d) vectors; link: of the recommender.
        users_of: the training users of each item, as positions in ``users``.
        users: (V, d) vectors of the training users.
    """

    items: FloatArray
    link: Link
    users_of: scipy.sparse.csc_matrix
    users: FloatArray

    @staticmethod
    def of(context: Context) -> Examples:
        known = np.flatnonzero(np.diff(context.training.indptr))

        def vectors() -> FloatArray:
            if scores_graphs(context.model):
                return context.graph_embedding_model.user_embeddings()[known]
            profiles = context.training[known].astype(np.float64)
            return context.profile_embedding_model.profile_embeddings(profiles)

        users = context.cached("accent training users", vectors)
        items = context.embedding_model.item_embeddings()
        return Examples(items, link_of(context.model), context.training[known].tocsc(), users)

    def of_item(self, item: int) -> FloatArray:
        """(m, d) vectors of the training users of an item."""
        start, stop = self.users_of.indptr[item : item + 2]
        found: FloatArray = self.users[self.users_of.indices[start:stop]]
        return found

    def slopes(self, logits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivative of the loss of observed pairs."""
        if self.link == "identity":
            return 2 * (logits - 1), np.full(logits.shape, 2.0)
        away = scipy.special.expit(-logits)
        return -away, away * (1 - away)


@dataclass(frozen=True)
class Influences:
    """Influences of the n interactions of one user on any candidate.

    Attributes:
        own: (d,) p_u; free: (d,) 1.0 at coordinates that are parameters; history: (n,) items.
        pulls: (n, d) gradients of the losses of the interactions by p_u, in the basis of the eigenvectors.
        basis: (d, d) eigenvectors, and values (d,) eigenvalues, of the sum of the Hessians by p_u.
    """

    own: FloatArray
    free: FloatArray
    history: IntArray
    examples: Examples
    options: PaperOptions
    pulls: FloatArray
    basis: FloatArray
    values: FloatArray

    @staticmethod
    def of(
        own: FloatArray, free: FloatArray, history: IntArray, examples: Examples, options: PaperOptions
    ) -> Influences:
        items = examples.items[history]
        slope, bend = examples.slopes(items @ own)
        values, basis = np.linalg.eigh((items.T * bend) @ items * np.outer(free, free))
        pulls = (slope[:, None] * items + options.weight_decay * own) * free
        return Influences(own, free, history, examples, options, pulls @ basis, basis, values)

    def on(self, candidate: int) -> FloatArray:
        """(n,) estimated fall of the logit of ``candidate`` without each interaction."""
        item, users = self.examples.items[candidate], self.examples.of_item(candidate)
        n = len(self.history) + len(users)
        ridge = n * (self.options.weight_decay + self.options.damping)
        of_user = self.pulls @ ((self.free * item) @ self.basis / (self.values + ridge))
        bend = self.examples.slopes(users @ item)[1]
        block = (users.T * bend) @ users
        block[np.diag_indices_from(block)] += ridge
        moved = scipy.linalg.solve(block, self.options.weight_decay * item, assume_a="pos")
        falls: FloatArray = -(of_user + self.own @ moved)
        return falls
