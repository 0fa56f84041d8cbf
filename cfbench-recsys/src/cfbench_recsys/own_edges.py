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
|h|)) in place of O(B (edges + nodes d)), and so do the gradients; what is prepared takes 8 items² bytes. Exact up to
rounding, and an edit has the same bits in every batch, gradients included: sums go over the items of one user in
ascending order, and dense products are those of ``batch_products.py``. On the CPU only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan
import torch
from torch import Tensor

from cfbench_recsys.batch_products import column_product
from cfbench_recsys.bipartite_graph import csr_tensor
from cfbench_recsys.degrees import inverse_roots
from cfbench_recsys.edits import FloatArray, IntArray

MOST_LAYERS = 3

MOST_ITEMS = 5_000
"""More would make G larger than 200 MB."""


MOST_EDITS = 256
"""Of one unit of ``score_weighted``. The products with G cost the square of the number of a user's items: on a graph like
MovieLens 1M, scores and gradients of 235 edges take .8 of the time of propagating, those of 450 edges 1.1 times as long."""


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
        graph = graph.astype(np.float64)
        graph.sort_indices()
        self.graph = graph
        shares = np.asarray(weights) / sum(weights)
        self.shares: list[float] = np.pad(shares, (0, MOST_LAYERS + 1 - len(shares))).tolist()
        user_degrees, item_degrees = (torch.from_numpy(_sums(graph, axis)) for axis in (1, 0))
        self.user_degrees, self.item_degrees = user_degrees, item_degrees
        self.user_roots, self.item_roots = inverse_roots(user_degrees), inverse_roots(item_degrees)
        weighted = graph.multiply(self.user_roots.numpy()[:, None]).tocsr()
        gram: FloatArray = (weighted.T @ weighted).toarray(order="C")
        from_users: FloatArray = weighted.T @ users  # M
        scaled = self.item_roots.numpy()[:, None]
        twice = gram @ (scaled * items)  # N
        thrice = gram @ (scaled**2 * from_users)  # Q
        _, first, second, third = self.shares
        back = first * from_users + second * twice + third * thrice
        self.gram, self.users, self.items = map(torch.from_numpy, (gram, users, np.ascontiguousarray(items)))
        self.from_users = torch.from_numpy(np.ascontiguousarray(from_users))
        self.sent = torch.from_numpy(second * from_users + third * twice)
        self.back = torch.from_numpy(np.concatenate([items, back]))
        self.back_across = self.back.T.contiguous()

    def scores(self, users: Tensor, rows: Tensor, items: Tensor, delta: Tensor) -> Tensor:
        """(B, items) logits of ``users`` (B,), each on its graph: edge (users[rows[e]], items[e]) weighs ``delta[e]`` more.

        Differentiable in ``delta``, through the degrees too. Changes of an edge that is named twice add up.
        """
        zeroth, first, second, third = self.shares
        own = _Entries(self, users, rows, items)
        item, unit, h, touched = own.items, own.rows, own.before, own.touched
        change = torch.zeros_like(h).index_add(0, own.places, delta)
        after = h + change
        a, a_after = self.user_roots[users], inverse_roots(self.user_degrees[users] + own.sums(change))
        c, c_after = (
            self.item_roots.index_select(0, item),
            inverse_roots(self.item_degrees.index_select(0, item) + change),
        )
        c_change = c_after - c

        def at_user(q: Tensor) -> tuple[Tensor, Tensor]:
            """What h and δ are multiplied with in R'ᵀ D_a'² R' q, for q on the entries."""
            edited = a_after**2 * own.sums(after * q)
            return edited - a**2 * own.sums(h * q), edited

        layer = own.of_unit(a_after) * c_after * after  # layer 1 of the unit vector of u
        z = c_after * layer
        for_history, for_change = at_user(z)
        # layer 3 less D_c G z, which ``sent`` holds
        more = c_after * (h * own.of_unit(for_history) + change * own.of_unit(for_change))
        more = more.index_add(0, touched, c_change.index_select(0, touched) * own.gram_times(z))
        # layer 2 at u less what ``sent`` holds
        user_value = a_after * own.sums(after * z) - a * own.sums(h * z)
        own_embeddings = self.users[users]
        embedding = (zeroth + second * user_value)[:, None] * own_embeddings
        embedding = embedding + own.times(first * layer + third * more, self.items) + own.times(z, self.sent)

        back = column_product(self.back, embedding.T, self.back_across)
        alone, moved = back[: len(self.items)], back[len(self.items) :]
        on_items, at_u = alone[item, unit], (own_embeddings * embedding).sum(dim=1)
        from_users = (self.from_users.index_select(0, item) * own.of_unit(embedding)).sum(dim=1)
        alpha, beta = (a_after - a) * at_u, a_after * at_u
        q = c_after**2 * (from_users + h * own.of_unit(alpha) + change * own.of_unit(beta))
        even, odd = at_user(c_after * on_items), at_user(q)
        of_history, of_change = (
            first * start + second * middle + third * end
            for start, middle, end in zip((alpha, beta), even, odd, strict=True)
        )
        gamma = second * c_change * on_items + third * (q - c**2 * from_users)
        total = own.times(gamma, self.gram).add_(moved.T)  # in place: as large as the result
        there = total[unit, item] + h * own.of_unit(of_history) + change * own.of_unit(of_change)
        total.mul_(self.item_roots).index_put_((unit, item), there * c_after)
        return total.add_(alone.T, alpha=zeroth) if zeroth else total


class _Entries:
    """The items of the row of each unit's user before and after the edit, ascending; all tensors (entries,).

    Attributes:
        rows, items: unit and item.
        before: h, the weight of the edge, 0 where there is none.
        places: (E,) the entry of each edited edge; touched: the entries that are edited, each once.
    """

    def __init__(self, prepared: OwnEdges, users: Tensor, rows: Tensor, items: Tensor) -> None:
        graph, self.prepared, self.units = prepared.graph, prepared, len(users)
        width, of_users = graph.shape[1], users.numpy()
        starts, lengths = (
            numbers[of_users].astype(np.int64) for numbers in (graph.indptr, np.diff(graph.indptr))
        )
        edges = _ranges(starts, lengths)
        keys = np.repeat(np.arange(self.units), lengths) * width + graph.indices[edges]
        before, named = graph.data[edges], rows.numpy() * width + items.numpy()
        places = np.searchsorted(keys, named)  # each row ascends, and so do the keys
        added = np.append(keys, -1)[places] != named
        if added.any():
            new = np.unique(named[added])
            keys, before = np.append(keys, new), np.append(before, np.zeros(len(new)))
            order = np.argsort(keys)
            keys, before = keys[order], before[order]
            places = np.searchsorted(keys, named)
        is_touched = np.zeros(len(keys), dtype=bool)
        is_touched[places] = True
        self._rows, self._items = np.divmod(keys, width)
        self._touched = np.flatnonzero(is_touched)
        self._lengths = np.bincount(self._rows, minlength=self.units)
        self._ends = np.cumsum(self._lengths)
        self._starts = torch.from_numpy(np.append(0, self._ends))
        self.rows, self.items, self.before, self.places, self.touched = map(
            torch.from_numpy, (self._rows, self._items, before, places, self._touched)
        )

    def sums(self, values: Tensor) -> Tensor:
        """(B,) the sum over the entries of each unit."""
        return torch.zeros(self.units, dtype=values.dtype).index_add(0, self.rows, values)

    def of_unit(self, values: Tensor) -> Tensor:
        """(entries, ...) the value of the unit of each entry."""
        return values.index_select(0, self.rows)

    def times(self, values: Tensor, matrix: Tensor) -> Tensor:
        """(B, n) for each unit the sum over its entries of value times row of the item in ``matrix`` (items, n)."""
        if not values.requires_grad:
            return self.sparse(values) @ matrix
        found: Tensor = _EntriesProduct.apply(values, matrix, self)  # type: ignore[no-untyped-call]
        return found

    def sparse(self, values: Tensor) -> Tensor:
        """(B, items) ``values`` on the entries."""
        shape = (self.units, self.prepared.graph.shape[1])
        return csr_tensor(self._starts, self.items, values, shape)

    def gram_times(self, values: Tensor) -> Tensor:
        """(touched,) G ``values`` at the entries that are edited, each for its unit."""
        unit = self._rows[self._touched]
        lengths = self._lengths[unit]
        others = _ranges((self._ends - self._lengths)[unit], lengths)
        which = np.repeat(np.arange(len(unit)), lengths)
        places = (self._items[self._touched] * len(self.prepared.gram))[which]
        places += self._items[others]
        entries = self.prepared.gram.view(-1).index_select(
            0, torch.from_numpy(places)
        )  # faster than with two indices
        products = entries * values.index_select(0, torch.from_numpy(others))
        zeros = torch.zeros(len(unit), dtype=values.dtype)
        return zeros.index_add(0, torch.from_numpy(which), products)


class _EntriesProduct(torch.autograd.Function):
    """The (B, items) matrix with ``values`` on the entries, times a constant ``matrix`` (items, n)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, matrix: Tensor, entries: _Entries) -> Tensor:
        ctx.matrix, ctx.entries = matrix, entries
        return entries.sparse(values.detach()) @ matrix

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        pattern, matrix = (
            ctx.entries.sparse(torch.zeros(len(ctx.entries.rows), dtype=gradient.dtype)),
            ctx.matrix,
        )
        # gradient times matrix.T where there are entries, and nowhere else
        product = torch.sparse.sampled_addmm(pattern, gradient.contiguous(), matrix.T, beta=0.0)
        return product.values(), None, None


def _sums(graph: scipy.sparse.csr_matrix, axis: int) -> FloatArray:
    found: FloatArray = np.asarray(graph.sum(axis=axis), dtype=np.float64).ravel()
    return found


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """The numbers start, start + 1, ... of each range, one range after the other."""
    ends = np.cumsum(lengths)
    found: IntArray = np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)
    return found
