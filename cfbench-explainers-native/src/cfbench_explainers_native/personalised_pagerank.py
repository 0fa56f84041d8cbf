"""Personalised PageRank between items, by walks item - user - item over the interactions.

A walker stops at each node with probability alpha, and otherwise moves to a random neighbour. pi(i, v) is the
probability that one who starts at item i stops at item v. With R (users, items), D_U and D_I the degrees,

    pi = alpha sum_t (1 - alpha)^2t T^t = alpha (1 - (1 - alpha)^2 T)^-1,      T = D_I^-1 R^T D_U^-1 R.

A walker whose node has no neighbour vanishes. Two ways to pi:

- exactly, for all items at once: T is similar to a symmetric matrix, so one dense Cholesky factorisation
  inverts it, in items^3 operations and items^2 memory;
- column by column (all i for one v) by *reverse local push* (Andersen et al., "Local computation of PageRank
  contributions", WAW 2007): probability that waits at v, at first 1, is pushed backwards against the walk,
  alpha of it staying as the estimate. As long as no node waits with more than ``eps``, the estimate is too
  small by at most ``eps``. All nodes above ``eps`` are pushed in the same round, many columns side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_recsys.edits import FloatArray, IntArray

EXACT_UP_TO = 6000
"""Items for which all pairs are computed: 288 MB, and twice as much while they are."""

PUSH_ERROR = 1e-7
"""The error for more items than that, if none is configured."""

COLUMNS = 64
"""Items that are pushed from side by side."""


@dataclass(frozen=True)
class ItemProximity:
    """pi(i, v) for all i and for the requested v.

    Attributes:
        values: (items, columns), dense or sparse.
        columns: (items,) where the column of each item stands, -1 if it was not requested.
    """

    values: FloatArray | scipy.sparse.csc_matrix
    columns: IntArray

    @staticmethod
    def exact(interactions: scipy.sparse.csr_matrix, alpha: float) -> ItemProximity:
        """pi on the graph ``interactions`` for all v."""
        return ItemProximity(all_pairs(interactions, alpha), np.arange(interactions.shape[1]))

    @staticmethod
    def pushed(
        interactions: scipy.sparse.csr_matrix, wanted: IntArray, alpha: float, eps: float
    ) -> ItemProximity:
        """pi on the graph ``interactions`` for v in ``wanted``, too small by at most ``eps``."""
        items = interactions.shape[1]
        wanted = np.unique(wanted)
        columns = np.full(items, -1)
        columns[wanted] = np.arange(len(wanted))
        walks = Walks.of(interactions, alpha)
        blocks = [
            scipy.sparse.csc_matrix(walks.push(wanted[start : start + COLUMNS], eps))
            for start in range(0, len(wanted), COLUMNS)
        ]
        return ItemProximity(scipy.sparse.hstack(blocks, format="csc"), columns)

    def between(self, sources: IntArray, targets: IntArray) -> FloatArray:
        """(len(sources), len(targets)) pi(i, v)."""
        columns = self.columns[targets]
        if not isinstance(self.values, np.ndarray):
            found: FloatArray = self.values[:, columns][sources].toarray()
            return found
        return self.values[np.ix_(sources, columns)]


@dataclass(frozen=True)
class Walks:
    """Steps of walkers who do not stop.

    Attributes:
        from_users: (users, items) probability of the step from a user to an item; from_items: the way back.
        alpha: probability to stop.
    """

    from_users: scipy.sparse.csr_matrix
    from_items: scipy.sparse.csr_matrix
    alpha: float

    @staticmethod
    def of(interactions: scipy.sparse.csr_matrix, alpha: float) -> Walks:
        return Walks(_steps(interactions, alpha), _steps(interactions.T.tocsr(), alpha), alpha)

    def push(self, targets: IntArray, eps: float) -> FloatArray:
        """(items, len(targets)) estimates of pi, too small by at most ``eps``."""
        estimate = np.zeros((self.from_users.shape[1], len(targets)))
        at_items = np.zeros_like(estimate)
        at_items[targets, np.arange(len(targets))] = 1.0
        at_users = np.zeros((self.from_users.shape[0], len(targets)))
        while True:
            pushed = np.where(at_items > eps, at_items, 0.0)
            estimate += self.alpha * pushed
            at_items -= pushed
            at_users += self.from_users @ pushed
            pushed_on = np.where(at_users > eps, at_users, 0.0)
            at_users -= pushed_on
            at_items += self.from_items @ pushed_on
            if not pushed.any() and not pushed_on.any():
                return estimate


def all_pairs(interactions: scipy.sparse.csr_matrix, alpha: float) -> FloatArray:
    """(items, items) pi, exactly."""
    to_users = _inverse(_degrees(interactions))
    of_items = np.sqrt(np.maximum(_degrees(interactions.T.tocsr()), 1.0))
    half = (scipy.sparse.diags(np.sqrt(to_users)) @ interactions @ scipy.sparse.diags(1.0 / of_items)).tocsr()
    system = (half.T @ half).toarray()
    system *= -((1.0 - alpha) ** 2)
    system[np.diag_indices(len(system))] += 1.0
    factor, _ = scipy.linalg.lapack.dpotrf(system.T, lower=1, overwrite_a=1)
    pairs, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril_indices(len(pairs), -1)
    pairs.T[lower] = pairs[lower]
    pairs *= alpha * of_items
    pairs /= of_items[:, None]
    return np.ascontiguousarray(pairs)


def _steps(matrix: scipy.sparse.csr_matrix, alpha: float) -> scipy.sparse.csr_matrix:
    """Rows to columns, each neighbour with equal probability, if the walker does not stop."""
    return (scipy.sparse.diags((1.0 - alpha) * _inverse(_degrees(matrix))) @ matrix).tocsr()


def _degrees(matrix: scipy.sparse.csr_matrix) -> FloatArray:
    degrees: FloatArray = np.diff(matrix.indptr).astype(np.float64)
    return degrees


def _inverse(degrees: FloatArray) -> FloatArray:
    return np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
