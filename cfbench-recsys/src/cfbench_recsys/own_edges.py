"""Scores of a graph recommender when nothing but edges of the scored user differs, without propagating.

Most searches are for edges of the user to whom something is recommended. Such an edit changes one row of R (users,
items), the degree of its user u and those of a few items, so that everything beyond can be prepared once. With R the
(weighted) interactions, D_a and D_c the inverse roots of the degrees of users and items, E_U and E_I the free
embeddings, and w_0..w_3 the weights of the layers (see ``recommenders/graph_convolution.py``), prepared are

    G = Rᵀ D_a² R,        M = Rᵀ D_a E_U,        N = G D_c E_I,        Q = G D_c² M,

G (items, items), the others (items, d). An edit makes h, the row of u, h' = h + δ, and D_a, D_c become D_a', D_c',
which differ from them at u and where δ is not 0. The matrix of one layer is D_a' R' D_c' with R' = R + e_u δᵀ. So for
an item vector q, with a = (D_a)_u,

    R'ᵀ D_a'² R' q = G q + h (a'² h'ᵀq - a² hᵀq) + δ a'² h'ᵀq,

and G D_c' x = G D_c x + G (D_c' - D_c) x, where the second term needs the columns of G of the items with δ alone.
With these two rules each layer of F_u = Eᵀ P e_u is a sum over the items of h and h', and the scores P E F_u on the
items are

    w_0 E_I F_u + D_c' ((w_1 M + w_2 N + w_3 Q) F_u + G γ + h θ_1 + δ θ_2),

with γ (items of h and h' only) and the numbers θ of :meth:`OwnEdges.scores`. A batch of B edits costs O(B items (d +
|h|)) in place of O(B (edges + nodes d)); what is prepared takes 8 items² bytes. Exact up to rounding, and an edit has
the same bits in every batch: sums go over the items of one user in ascending order, and dense products are those of
``batch_products.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.degrees import inverse_roots
from cfbench_recsys.edits import FloatArray, IntArray

MOST_LAYERS = 3

MOST_ITEMS = 5_000
"""More would make G larger than 200 MB."""


def can_prepare(items: int, weights: Sequence[float]) -> bool:
    """Whether :class:`OwnEdges` has a formula for these weights of layers, and room for so many items."""
    return items <= MOST_ITEMS and len(weights) <= MOST_LAYERS + 1


class OwnEdges:
    """What is prepared for one graph, its embeddings and weights of layers.

    Args:
        graph: (users, items), the weight of each edge.
        users: (users, d) free embeddings, float64; items: (items, d).
        weights: of the layers 0 to at most ``MOST_LAYERS``; their sum is not 0.
    """

    def __init__(
        self,
        graph: scipy.sparse.csr_matrix,
        users: FloatArray,
        items: FloatArray,
        weights: Sequence[float],
    ) -> None:
        import torch

        graph = graph.astype(np.float64)
        graph.sort_indices()
        self.graph, self.users, self.items = graph, users, np.ascontiguousarray(items)
        shares = np.asarray(weights) / sum(weights)
        self.shares = np.pad(shares, (0, MOST_LAYERS + 1 - len(shares)))
        self.user_degrees, self.item_degrees = (np.asarray(graph.sum(axis=axis)).ravel() for axis in (1, 0))
        self.user_roots, self.item_roots = (
            inverse_roots(self.user_degrees),
            inverse_roots(self.item_degrees),
        )
        weighted = graph.multiply(self.user_roots[:, None]).tocsr()
        self.gram: FloatArray = (weighted.T @ weighted).toarray(order="C")
        self.from_users: FloatArray = np.ascontiguousarray(weighted.T @ users)  # M
        scaled = self.item_roots[:, None]
        twice = self.gram @ (scaled * items)  # N
        _, first, second, third = self.shares
        self.sent = second * self.from_users + third * twice
        thrice = self.gram @ (scaled**2 * self.from_users)  # Q
        back = first * self.from_users + second * twice + third * thrice
        self.back = torch.from_numpy(np.concatenate([items, back]))

    def scores(self, users: IntArray, rows: IntArray, items: IntArray, delta: FloatArray) -> FloatArray:
        """(B, items) logits of ``users`` (B,), each on its graph: edge (users[rows[e]], items[e]) weighs ``delta[e]`` more.

        No edge is named twice in one graph.
        """
        import torch

        from cfbench_recsys.batch_products import column_product

        zeroth, first, second, third = self.shares
        own = _Entries(self, users, rows, items, delta)
        h, change, after, item, unit = own.before, own.change, own.before + own.change, own.items, own.rows
        a, a_after = self.user_roots[users], inverse_roots(self.user_degrees[users] + own.sums(change))
        c, c_after = self.item_roots[item], inverse_roots(self.item_degrees[item] + change)

        def at_user(q: FloatArray) -> tuple[FloatArray, FloatArray]:
            """What h and δ are multiplied with in R'ᵀ D_a'² R' q, for q on the entries."""
            edited = a_after**2 * own.sums(after * q)
            return edited - a**2 * own.sums(h * q), edited

        layer = a_after[unit] * c_after * after  # layer 1 of the unit vector of u
        z = c_after * layer
        for_history, for_change = at_user(z)
        # layer 3 less D_c G z, which ``sent`` holds
        more = c_after * (h * for_history[unit] + change * for_change[unit])
        touched = np.flatnonzero(change)
        more[touched] += (c_after - c)[touched] * own.gram_times(z, touched)
        # layer 2 at u less what ``sent`` holds
        user_value = a_after * own.sums(after * z) - a * own.sums(h * z)
        own_embeddings = self.users[users]
        embedding: FloatArray = (zeroth + second * user_value)[:, None] * own_embeddings
        embedding += own.times(first * layer + third * more, self.items) + own.times(z, self.sent)

        back = column_product(self.back, torch.from_numpy(embedding.T)).numpy()
        alone, moved = back[: len(self.items)], back[len(self.items) :]
        on_items, at_u = alone[item, unit], (own_embeddings * embedding).sum(axis=1)
        from_users = (self.from_users[item] * embedding[unit]).sum(axis=1)
        alpha, beta = (a_after - a) * at_u, a_after * at_u
        q = c_after**2 * (from_users + h * alpha[unit] + change * beta[unit])
        even, odd = at_user(c_after * on_items), at_user(q)
        theta = [
            first * start + second * middle + third * end
            for start, middle, end in zip((alpha, beta), even, odd, strict=True)
        ]
        gamma = second * (c_after - c) * on_items + third * (q - c**2 * from_users)
        total = own.times(gamma, self.gram)
        total += moved.T
        there = total[unit, item] + h * theta[0][unit] + change * theta[1][unit]
        total *= self.item_roots
        total[unit, item] = there * c_after
        total += zeroth * alone.T
        return total


class _Entries:
    """The items of the row of each unit's user before and after the edit, ascending; all arrays (entries,).

    Attributes:
        rows, items: unit and item.
        before: h, the weight of the edge, 0 where there is none.
        change: δ.
    """

    def __init__(
        self, prepared: OwnEdges, users: IntArray, rows: IntArray, items: IntArray, delta: FloatArray
    ) -> None:
        graph, self.prepared, self.units = prepared.graph, prepared, len(users)
        width = graph.shape[1]
        starts, lengths = graph.indptr[users].astype(np.int64), np.diff(graph.indptr)[users].astype(np.int64)
        edges = _ranges(starts, lengths)
        keys = np.repeat(np.arange(len(users)), lengths) * width + graph.indices[edges]
        before, named = graph.data[edges], rows * width + items
        places = np.searchsorted(keys, named)  # each row ascends, and so do the keys
        added = np.append(keys, -1)[places] != named
        if added.any():
            keys, before = np.append(keys, named[added]), np.append(before, np.zeros(int(added.sum())))
            order = np.argsort(keys)
            keys, before = keys[order], before[order]
            places = np.searchsorted(keys, named)
        self.rows, self.items = np.divmod(keys, width)
        self.before, self.change = before, np.zeros(len(keys))
        self.change[places] = delta
        self.lengths = np.bincount(self.rows, minlength=self.units)
        self.ends = np.cumsum(self.lengths)
        indptr, shape = np.append(0, self.ends), (self.units, width)
        self._sparse = scipy.sparse.csr_matrix((self.change, self.items, indptr), shape=shape)

    def sums(self, values: FloatArray) -> FloatArray:
        """(B,) the sum over the entries of each unit."""
        found: FloatArray = np.bincount(self.rows, values, minlength=self.units).astype(np.float64)
        return found

    def times(self, values: FloatArray, matrix: FloatArray) -> FloatArray:
        """(B, n) for each unit the sum over its entries of value times row of the item in ``matrix`` (items, n)."""
        self._sparse.data = values
        product: FloatArray = self._sparse @ matrix
        return product

    def gram_times(self, values: FloatArray, some: IntArray) -> FloatArray:
        """(some,) G ``values`` at the entries ``some``, each for its unit."""
        unit = self.rows[some]
        lengths = self.lengths[unit]
        others = _ranges((self.ends - self.lengths)[unit], lengths)
        which = np.repeat(np.arange(len(some)), lengths)
        products = self.prepared.gram[self.items[some][which], self.items[others]] * values[others]
        found: FloatArray = np.bincount(which, products, minlength=len(some)).astype(np.float64)
        return found


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """The numbers start, start + 1, ... of each range, one range after the other."""
    ends = np.cumsum(lengths)
    found: IntArray = np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)
    return found
