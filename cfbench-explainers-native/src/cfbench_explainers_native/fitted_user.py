"""A user's vector, taken to be fitted to the user's interactions while the items' vectors stay: for ``accent.py``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_recsys.contracts import scores_graphs
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.targets import Context

NEWTON_STEPS = 100


def user_vectors(context: Context, users: IntArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """For each user (d,) the vector, and (d,) 1.0 at the coordinates on which the profile has an effect."""
    if scores_graphs(context.model):
        for own in context.graph_embedding_model.user_embeddings()[users]:
            yield own, np.ones(len(own))
        return
    for user in users.tolist():
        profiles = scipy.sparse.vstack([context.interactions[[user]], _empty(context)], format="csr")
        own, nothing = context.profile_embedding_model.profile_embeddings(profiles.astype(np.float64))
        yield own, (own != nothing).astype(np.float64)


def _empty(context: Context) -> scipy.sparse.csr_matrix:
    return scipy.sparse.csr_matrix((1, context.interactions.shape[1]))


@dataclass(frozen=True)
class Fit:
    """A user's vector as the minimum of L (see ``accent.py``), over the N items that take part in it.

    Attributes:
        own: (d,); free: (d,) 1.0 for the coordinates that are parameters.
        items: (N, d), the n of the history first; labels: (N,) 1 for these, 0 for others.
        weights: (N,) 1/n for these, a share of ``negatives`` for others.
        ridge: lambda.
    """

    own: FloatArray
    free: FloatArray
    items: FloatArray
    labels: FloatArray
    weights: FloatArray
    ridge: float

    @staticmethod
    def of(
        own: FloatArray,
        free: FloatArray,
        items: FloatArray,
        history: IntArray,
        damping: float,
        negatives: float,
    ) -> Fit:
        n = len(history)
        parts, others = items[history], len(items) - n
        labels, weights = np.ones(n), np.full(n, 1.0 / n)
        if negatives and others:
            parts = np.concatenate([parts, np.delete(items, history, axis=0)])
            labels = np.append(labels, np.zeros(others))
            weights = np.append(weights, np.full(others, negatives / others))
        fit = Fit(own, free, parts, labels, weights, 0.0)
        return replace(fit, ridge=damping * float(np.trace(fit._hessian(own, weights))) or 1.0)

    def influences(self) -> FloatArray:
        """(n, d) own vector less what it would be without each interaction, to the first order."""
        factor = scipy.linalg.cho_factor(self._hessian(self.own, self.weights), overwrite_a=True)
        positive = self.items[self.labels > 0]
        pull = scipy.special.expit(-(positive @ self.own)) / len(positive)
        found: FloatArray = scipy.linalg.cho_solve(factor, (pull[:, None] * positive * self.free).T).T
        return found

    def refitted(self) -> FloatArray:
        """(n, d) own vector less the minimum of L without each interaction."""
        balance = self._gradient(self.own, self.weights)  # what the linear term takes away
        found = []
        for row in range(np.count_nonzero(self.labels)):
            weights = self.weights.copy()
            weights[row] = 0.0
            found.append(self._minimum(weights, balance))
        return np.array(found)

    def _minimum(self, weights: FloatArray, balance: FloatArray) -> FloatArray:
        """(d,) own vector less the minimum of L with these weights, by Newton's method with halved steps."""
        moved = np.zeros(len(self.own))

        def slope(moved: FloatArray) -> FloatArray:
            return self._gradient(self.own - moved, weights) - balance - self.ridge * moved

        for _ in range(NEWTON_STEPS):
            now = slope(moved)
            step = scipy.linalg.solve(self._hessian(self.own - moved, weights), now, assume_a="pos")
            while np.linalg.norm(slope(moved + step)) > np.linalg.norm(now) and np.abs(step).max() > 1e-14:
                step = step / 2
            moved = moved + step
            if np.abs(step).max() <= 1e-12 * (1 + np.abs(self.own).max()):
                break
        return moved

    def _hessian(self, at: FloatArray, weights: FloatArray) -> FloatArray:
        """(d, d) of L; the ridge alone for a coordinate that is no parameter."""
        logits = self.items @ at
        curvature = weights * scipy.special.expit(logits) * scipy.special.expit(-logits)
        found: FloatArray = (self.items.T * curvature) @ self.items * np.outer(self.free, self.free)
        found[np.diag_indices_from(found)] += self.ridge
        return found

    def _gradient(self, at: FloatArray, weights: FloatArray) -> FloatArray:
        """(d,) of the first two sums of L."""
        found: FloatArray = (
            (weights * (scipy.special.expit(self.items @ at) - self.labels)) @ self.items * self.free
        )
        return found
