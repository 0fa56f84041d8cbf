"""Sets of counterfactuals of one factual: their distances, their diversity, a minimum distance, and sparsity.

Shared by the variants of DiCE (Mothilal et al. 2020). No counterfactual of a set contains the changes of another one
(:mod:`dominance <.dominance>`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.descent import pulled_back
from cfbench_tabular.explainers.dominance import Dominance
from cfbench_tabular.grid import Limits
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

HALVINGS = 8
"""Steps of the bisection that resets numbers."""

RIDGE = 1e-4
"""Added to the diagonal of the kernel, as in the paper's code."""


def inverse_deviations(background: FloatArray, encoding: Encoding) -> FloatArray:
    """(d,) 1 / MAD of numbers, 1 for places of categories; without a MAD, the mean absolute deviation or 1."""
    if len(background) == 0:
        return np.ones(encoding.width)
    away = np.abs(background - np.median(background, axis=0))
    spread = np.median(away, axis=0)
    spread = np.where(spread > 0, spread, away.mean(axis=0))
    return np.where(encoding.numeric & (spread > 0), 1 / np.where(spread > 0, spread, 1.0), 1.0)


def distances(points: FloatArray, others: FloatArray, weights: FloatArray) -> FloatArray:
    """(..., ) the weighted Manhattan distance of ``points`` and ``others`` (..., d)."""
    found: FloatArray = np.abs(points - others) @ weights
    return found


def kernel(sets: FloatArray, weights: FloatArray) -> FloatArray:
    """(n, k, k) K_ij = 1 / (1 + dist(c_i, c_j)), with ``RIDGE`` on the diagonal, of each of the sets (n, k, d)."""
    similarity = 1 / (1 + distances(sets[:, :, None], sets[:, None], weights))
    found: FloatArray = similarity + RIDGE * np.eye(sets.shape[1])
    return found


def diversity(sets: FloatArray, weights: FloatArray) -> FloatArray:
    """(n,) det(K) of each of the sets (n, k, d)."""
    return np.asarray(np.linalg.det(kernel(sets, weights)))


def diversity_gradient(sets: FloatArray, weights: FloatArray) -> FloatArray:
    """(n, k, d) the derivative of :func:`diversity`: d det(K) = det(K) tr(K^-1 dK)."""
    similarity = kernel(sets, weights)
    cofactors = np.linalg.det(similarity)[:, None, None] * np.linalg.inv(similarity)
    slopes = -2 * cofactors * similarity**2
    slopes[:, range(sets.shape[1]), range(sets.shape[1])] = 0.0
    gradient = np.empty_like(sets)
    for place in range(sets.shape[1]):
        signs = np.sign(sets[:, place, None] - sets)
        gradient[:, place] = np.einsum("nk,nkd->nd", slopes[:, place], signs) * weights
    return gradient


def apart(rows: FloatArray, others: FloatArray, minimum: float) -> BoolArray:
    """(...) whether the rows (..., d) differ from the others, by at least ``minimum`` in L2; true where one is NaN."""
    away = ((rows - others) ** 2).sum(axis=-1)
    found: BoolArray = ~((away == 0) | (away < minimum**2))
    return found


def distinct(rows: FloatArray, valid: BoolArray, minimum: float) -> BoolArray:
    """(n, k) which of the rows (n, k, d) are ``valid`` and ``minimum`` away from all that count before them."""
    counts = valid.copy()
    for place in range(1, rows.shape[1]):
        close = ~apart(rows[:, place, None], rows[:, :place], minimum)
        counts[:, place] &= ~(close & counts[:, :place]).any(axis=1)
    return counts


def diverse_subset(
    rows: FloatArray,
    costs: FloatArray,
    size: int,
    weights: FloatArray,
    worth: float,
    alternatives: Callable[[int], BoolArray],
    chosen: Sequence[int] = (),
) -> list[int]:
    """The indices of at most ``size`` of the rows (n, d), those ``chosen`` before and others, one after the other.

    Each choice minimises costs / size - worth det(K), where K is the kernel of the rows chosen so far and of the row
    itself, among the rows that are alternatives to those chosen. The first of equals is chosen.

    costs: (n,) of the rows.
    alternatives: of the row with an index, (n,) which of the rows may be in a set with it; not the row itself.
    """
    found: list[int] = []
    remaining = np.ones(len(rows), dtype=np.bool_)
    similarity = np.empty((len(rows), 0))
    while len(found) < size and (remaining.any() or len(found) < len(chosen)):
        if len(found) < len(chosen):
            best = chosen[len(found)]
        else:
            objective = costs / size
            if found:
                own = kernel(rows[None, found], weights)[0]
                rest = 1 + RIDGE - np.einsum("nk,kl,nl->n", similarity, np.linalg.inv(own), similarity)
                objective = objective - worth * np.linalg.det(own) * rest
            best = int(np.where(remaining, objective, np.inf).argmin())
        found.append(best)
        if len(found) == size:
            break
        remaining &= alternatives(best)
        nearness = 1 / (1 + distances(rows, rows[best], weights))
        similarity = np.concatenate([similarity, nearness[:, None]], axis=1)
    return found


@dataclass(frozen=True)
class SetSparsifier:
    """Makes the counterfactuals of n factuals sparse, one after the other.

    Attributes:
        dominance: of the counterfactuals of the factuals (n, d).
        limits: of their counterfactuals.
        valid: whether rows (r, d) are counterfactuals of the factuals ``owner`` (r,).
        weights: (d,) of the positions in the distance.
        minimum: the smallest distance of two counterfactuals of a factual.
        search: how numbers are moved towards the factual.
        restored: which columns are reset.
        alternatives: whether counterfactuals that contain the changes of another one are left out.
    """

    encoding: Encoding
    dominance: Dominance
    limits: Limits
    valid: Callable[[FloatArray, IntArray], BoolArray]
    weights: FloatArray
    minimum: float
    search: Literal["linear", "binary", "none"]
    restored: Literal["numbers", "all"]
    alternatives: bool = True

    def sparse(self, sets: FloatArray, settled: IntArray | None = None) -> FloatArray:
        """(n, k, d) the counterfactuals (n, k, d) made sparse, the closest first; NaN stays NaN, and comes last.

        Those that then contain the changes of another one are left out, unless the sets are as published.

        settled: (n,) how many of each set, the first ones, are sparse already.
        """
        sets = sets.copy()
        settled = np.zeros(len(sets), dtype=np.int64) if settled is None else settled
        for place in range(sets.shape[1] if self.search != "none" else 0):
            given = np.flatnonzero(~np.isnan(sets[:, place, 0]) & (settled <= place))
            if len(given):
                others = np.delete(sets[given], place, axis=1)
                sets[given, place] = self._reset(sets[given, place], given, others)
        if self.alternatives:
            sets[~self.dominance.undominated(sets, ~np.isnan(sets[:, :, 0]))] = np.nan
        away = distances(sets, self.dominance.factuals[:, None], self.weights)
        order = np.where(np.isnan(away), np.inf, away).argsort(axis=1, kind="stable")
        return np.take_along_axis(sets, order[:, :, None], axis=1)

    def _reset(self, rows: FloatArray, owner: IntArray, others: FloatArray) -> FloatArray:
        """(r, d) one counterfactual of each of the factuals ``owner`` (r,) made sparse.

        others: (r, k - 1, d) the rest of each set, from which it stays at the minimum distance.
        """
        rows, factuals = rows.copy(), self.dominance.factuals[owner]
        starts = [block.start for block in self.encoding.blocks]
        number = self.encoding.numeric[starts]
        for whole in (True, False):
            sizes = np.add.reduceat(np.abs(rows - factuals) * self.weights, starts, axis=1)
            if not whole or self.restored == "numbers":
                sizes[:, ~number] = 0.0
            order = np.where(sizes > 0, sizes, np.inf).argsort(axis=1, kind="stable")
            for turn in range(int((sizes > 0).sum(axis=1).max(initial=0))):
                column = order[:, turn]
                changed = np.flatnonzero(sizes[np.arange(len(rows)), column] > 0)
                own = self.encoding.column_of[None, :] == column[changed][:, None]
                ends = np.where(own, factuals[changed], rows[changed])
                rows[changed] = self._moved(rows[changed], ends, owner[changed], others[changed], whole)
        return rows

    def _moved(
        self, rows: FloatArray, ends: FloatArray, owner: IntArray, others: FloatArray, whole: bool
    ) -> FloatArray:
        """``rows`` moved to ``ends``, or as far as they stay valid and the others (r, k - 1, d) are not near."""

        def found(tried: FloatArray) -> BoolArray:
            far = apart(tried[:, None], others, self.minimum).all(axis=1)
            return self.valid(tried, owner) & far

        if whole:
            return np.where(found(ends)[:, None], ends, rows)
        if self.search == "binary":
            return pulled_back(found, ends, rows, HALVINGS, lambda points: self.limits.snapped(points, owner))
        going = np.ones(len(rows), dtype=bool)
        moved = rows.copy()
        for step in range(1, 10):
            tried = self.limits.snapped(rows + step / 10 * (ends - rows), owner)
            going &= found(tried)
            moved[going] = tried[going]
        return moved
