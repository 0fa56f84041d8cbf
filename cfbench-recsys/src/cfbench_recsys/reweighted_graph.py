"""Propagation on one version of a graph that differs from it in very many edges.

``EditedGraphs`` (see ``bipartite_graph.py``) adds the edited edges one by one to a product with the shared matrix,
which is cheap for a few edges. A unit whose scope holds most of a large graph edits hundreds of thousands of them, each
to its own weight. Then it is several times faster to store the edited graph itself,

    N = D^-1/2 W D^-1/2,     W the weights of all edges, D their sums,

and to propagate by products with N. With g the gradient in the entries n_e of N, that in the weights is

    dL/dw_e = g_e (d_u d_i)^-1/2  -  1/(2 d_u) sum over e' of u of g_e' n_e'  -  1/(2 d_i) sum over e' of i of g_e' n_e'

for the edge e = (u, i). Float64, on the CPU, one graph at a time: what a unit gets never depends on other units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan
import torch
from torch import Tensor

from cfbench_recsys.degrees import inverse_roots
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.graph_edits import MANY_EDGES


class EdgePattern:
    """Where the edges of a graph are, in the order of its CSR matrix."""

    def __init__(self, interactions: scipy.sparse.csr_matrix) -> None:
        self.shape = interactions.shape
        self.starts, self.columns = interactions.indptr, interactions.indices
        self.items = interactions.indices.astype(np.intp)
        self._degrees = np.diff(interactions.indptr)
        users = np.arange(self.shape[0]).repeat(self._degrees)
        self._keys = users * self.shape[1] + self.items
        self._order = None if (np.diff(self._keys) > 0).all() else np.argsort(self._keys, kind="stable")

    def places(self, edge_users: IntArray, edge_items: IntArray) -> IntArray | None:
        """(E,) the place of each edge in the CSR matrix; None if one of them is not in the graph."""
        wanted = edge_users * self.shape[1] + edge_items
        found = np.searchsorted(self._keys, wanted, sorter=self._order)
        found = np.minimum(found, len(self._keys) - 1)
        places: IntArray = found if self._order is None else self._order[found]
        return places if (self._keys[places] == wanted).all() else None

    def matrix(self, entries: FloatArray) -> scipy.sparse.csr_matrix:
        """(users, items) with these entries (edges,)."""
        return scipy.sparse.csr_matrix((entries, self.columns, self.starts), shape=self.shape)

    def products(self, users: FloatArray, items: FloatArray) -> FloatArray:
        """(edges,) the product of the values of each edge's user and item."""
        found = users.repeat(self._degrees)
        found *= items.take(self.items, mode="clip")  # checks nothing, which is faster
        return found

    def subtract(self, found: FloatArray, users: FloatArray, items: FloatArray) -> None:
        """Subtracts the values of each edge's user and item from ``found`` (edges,)."""
        found -= users.repeat(self._degrees)
        found -= items.take(self.items, mode="clip")

    def sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(users,), (items,) sums of ``values`` (edges,) over the edges of each node."""
        matrix = self.matrix(values)
        users, items = self.shape
        return matrix @ np.ones(items), matrix.T @ np.ones(users)


def edited_weights(strengths: Tensor, places: Tensor, delta: Tensor) -> Tensor:
    """(edges,) ``strengths`` plus ``delta`` (E,) at the ``places`` (E,), which may repeat."""
    found: Tensor = _EditedWeights.apply(strengths, places, delta)  # type: ignore[no-untyped-call]
    return found


class ReweightedGraph:
    """One version of a graph, with any weights on its edges. Stands in for ``EditedGraphs`` of a single version.

    weights: (edges,) float64, in the order of the CSR matrix; what is computed is differentiable in them.
    """

    def __init__(self, pattern: EdgePattern, weights: Tensor) -> None:
        self.pattern = pattern
        self.entries: Tensor = _Normalization.apply(weights, pattern)  # type: ignore[no-untyped-call]

    def to_items(self, users: Tensor) -> Tensor:
        """One layer: values of the users (users, 1) -> values of the items (items, 1)."""
        found: Tensor = _Layer.apply(self.entries, users, self.pattern, True)  # type: ignore[no-untyped-call]
        return found

    def to_users(self, items: Tensor) -> Tensor:
        """One layer: values of the items (items, 1) -> values of the users (users, 1)."""
        found: Tensor = _Layer.apply(self.entries, items, self.pattern, False)  # type: ignore[no-untyped-call]
        return found

    def to_items_from(self, users: Tensor) -> Tensor:
        """``to_items`` of the unit vector of ``users`` (1,): a look-up, no product."""
        user = int(users[0])
        edges = slice(self.pattern.starts[user], self.pattern.starts[user + 1])
        places = (torch.from_numpy(self.pattern.items[edges]), torch.zeros((), dtype=torch.int64))
        return torch.zeros(self.pattern.shape[1], 1, dtype=torch.float64).index_put_(
            places, self.entries[edges]
        )


class _EditedWeights(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, strengths: Tensor, places: Tensor, delta: Tensor) -> Tensor:
        ctx.places = places
        return strengths.index_add(0, places, delta)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, gradient.index_select(0, ctx.places)


class _Normalization(torch.autograd.Function):
    """(edges,) weights -> the entries of D^-1/2 W D^-1/2."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, pattern: EdgePattern) -> Tensor:
        values = weights.numpy()
        factors = [inverse_roots(torch.from_numpy(sums)).numpy() for sums in pattern.sums(values)]
        both = pattern.products(*factors)
        entries = values * both
        ctx.pattern, ctx.factors, ctx.both, ctx.entries = pattern, factors, both, entries
        return torch.from_numpy(entries)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        of_entries, pattern = gradient.numpy(), ctx.pattern
        sums = pattern.sums(of_entries * ctx.entries)
        user_share, item_share = (
            0.5 * total * factor**2 for total, factor in zip(sums, ctx.factors, strict=True)
        )
        found = of_entries * ctx.both
        pattern.subtract(found, user_share, item_share)
        return torch.from_numpy(found), None


class _Layer(torch.autograd.Function):
    """The product of the matrix with these ``entries``, or of its transpose (``to_items``), with x (nodes, 1)."""

    @staticmethod
    def forward(ctx: Any, entries: Tensor, x: Tensor, pattern: EdgePattern, to_items: bool) -> Tensor:
        matrix = pattern.matrix(entries.detach().numpy())
        values = np.ascontiguousarray(x.detach().numpy()[:, 0])
        ctx.matrix, ctx.values, ctx.pattern, ctx.to_items = matrix, values, pattern, to_items
        return torch.from_numpy((matrix.T if to_items else matrix) @ values)[:, None]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        of_result = np.ascontiguousarray(gradient.numpy()[:, 0])
        of_x = (ctx.matrix if ctx.to_items else ctx.matrix.T) @ of_result
        users, items = (ctx.values, of_result) if ctx.to_items else (of_result, ctx.values)
        of_entries = torch.from_numpy(ctx.pattern.products(users, items))
        return of_entries, torch.from_numpy(of_x)[:, None], None, None


class Division:
    """Which units of a batch get a matrix of their own: those that edit at least ``MANY_EDGES``, all of them in the graph.

    It depends on each unit alone, never on the batch. A search scores the same edges with other weights in each step. A
    division that is stored and checked with :meth:`is_of` spares it looking up hundreds of thousands of edges again.

    Attributes:
        large: (unit, numbers of its edges in the batch, their places in the pattern) of each such unit.
        rest: (units,) the other units; rest_edges: the numbers of their edges. Where ``large`` is empty, there are none.
    """

    def __init__(
        self, pattern: EdgePattern, units: int, rows: Tensor, edge_users: Tensor, edge_items: Tensor
    ) -> None:
        self._units, self._edges = units, (rows, edge_users, edge_items)
        self._versions = [tensor._version for tensor in self._edges]
        self.large: list[tuple[int, Tensor | slice, Tensor]] = []
        if len(rows) < MANY_EDGES or rows.device.type != "cpu":
            return
        for unit in torch.nonzero(torch.bincount(rows, minlength=units) >= MANY_EDGES)[:, 0].tolist():
            edges = _as_slice(torch.nonzero(rows == unit)[:, 0])
            places = pattern.places(edge_users[edges].numpy(), edge_items[edges].numpy())
            if places is not None:
                self.large.append((unit, edges, torch.from_numpy(places)))
        if not self.large:
            return
        joint = torch.ones(units, dtype=torch.bool)
        joint[[unit for unit, _, _ in self.large]] = False
        self.rest = torch.nonzero(joint)[:, 0]
        self.rest_edges = torch.nonzero(joint[rows])[:, 0]

    def is_of(self, units: int, *edges: Tensor) -> bool:
        """Whether these are the very tensors (rows, users, items of the edges) that were divided, unchanged."""
        same = self._units == units and all(
            own is other for own, other in zip(self._edges, edges, strict=True)
        )
        return same and self._versions == [tensor._version for tensor in edges]


def _as_slice(numbers: Tensor) -> Tensor | slice:
    """Ascending ``numbers`` as a slice where they follow one another, as a unit's edges mostly do."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers
