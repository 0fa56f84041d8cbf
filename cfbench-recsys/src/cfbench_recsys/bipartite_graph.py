"""The user-item graph: normalised propagation, and the same on many edited graphs at once.

A is the symmetric adjacency matrix over users and items, D its diagonal of degrees, and one layer of
propagation is Ã = D^-1/2 A D^-1/2 (0 for a node without edges). The graph is bipartite, so a layer takes user
values to items by Rᵀ and item values to users by R, with R (users, items) the binary interactions; both are
stored as sparse matrices of O(edges).

B edited graphs A_b = A + Delta_b (Delta_b a few edges, of any weight) need no B matrices: a layer applied to
one column for each graph, x (nodes, B), is

    y[:, b] = D_b^-1/2 (A + Delta_b) D_b^-1/2 x[:, b]
            = factor * (A (factor * x) + scatter of Delta),    factor[n, b] = degree_b(n)^-1/2,

one product with the shared A, elementwise scalings, and a few scattered entries. It is exact, and
differentiable in the weights of the edited edges, through the degrees too.

Edges may have *strengths* (an attention, see ``graph_attention.py``): A then holds a strength in place of each 1,
and D its sums. Everything else stays as it is.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan
import torch
from torch import Tensor

from cfbench_recsys.batch_products import columnwise_product, scaled_columns
from cfbench_recsys.degrees import inverse_roots
from cfbench_recsys.edits import FloatArray


class _SparseProduct(torch.autograd.Function):
    """``matrix @ x`` for a constant sparse matrix; its transpose is at hand, so going back is as cheap."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transposed: Tensor) -> Tensor:
        ctx.transposed = transposed
        return columnwise_product(matrix, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return columnwise_product(ctx.transposed, gradient), None, None


def sparse_product(x: Tensor, matrix: Tensor, transposed: Tensor) -> Tensor:
    """``matrix @ x``, differentiable in ``x``."""
    result: Tensor = _SparseProduct.apply(x, matrix, transposed)  # type: ignore[no-untyped-call]
    return result


def sparse_tensor(matrix: scipy.sparse.csr_matrix, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A SciPy matrix as a torch CSR tensor with 32-bit indices (which are faster), if they suffice."""
    index = torch.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else torch.int64
    starts, columns = (torch.from_numpy(numbers).to(index) for numbers in (matrix.indptr, matrix.indices))
    return csr_tensor(starts, columns, torch.from_numpy(matrix.data).to(dtype), matrix.shape, device)


def csr_tensor(
    starts: Tensor,
    columns: Tensor,
    values: Tensor,
    shape: tuple[int, int],
    device: torch.device | None = None,
) -> Tensor:
    """A CSR tensor, without the warnings that torch gives with the first one of a process."""
    _make_the_first_one()
    return torch.sparse_csr_tensor(starts, columns, values, shape, device=device)


@functools.cache
def _make_the_first_one() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))


class Propagation:
    """Ã of one fixed graph, for embeddings: what training needs."""

    def __init__(
        self,
        interactions: scipy.sparse.csr_matrix,
        dtype: torch.dtype,
        device: torch.device,
        strengths: FloatArray | None = None,
    ) -> None:
        matrix = normalized(interactions, strengths)
        self.to_users_matrix = sparse_tensor(matrix, dtype, device)
        self.to_items_matrix = sparse_tensor(matrix.T.tocsr(), dtype, device)

    def to_items(self, users: Tensor) -> Tensor:
        """(users, d) -> (items, d)"""
        return sparse_product(users, self.to_items_matrix, self.to_users_matrix)

    def to_users(self, items: Tensor) -> Tensor:
        """(items, d) -> (users, d)"""
        return sparse_product(items, self.to_users_matrix, self.to_items_matrix)

    def mean_of_layers(self, users: Tensor, items: Tensor, layers: int) -> tuple[Tensor, Tensor]:
        """1/(L+1) sum_{l=0..L} Ã^l E for the embeddings E = (users, items)."""
        user_sum, item_sum = users, items
        for _ in range(layers):
            users, items = self.to_users(items), self.to_items(users)
            user_sum, item_sum = user_sum + users, item_sum + items
        return user_sum / (layers + 1), item_sum / (layers + 1)


def normalized(
    interactions: scipy.sparse.csr_matrix, strengths: FloatArray | None = None
) -> scipy.sparse.csr_matrix:
    """D^-1/2 R D^-1/2 (users, items), float64; every stored entry is an edge.

    strengths: (edges,) of the edges in the order of ``interactions.data``; none: 1 each.
    """
    rows = np.repeat(np.arange(interactions.shape[0]), np.diff(interactions.indptr))
    user_degrees = np.bincount(rows, strengths, minlength=interactions.shape[0])
    item_degrees = np.bincount(interactions.indices, strengths, minlength=interactions.shape[1])
    data = 1.0 / np.sqrt(user_degrees[rows] * item_degrees[interactions.indices])
    if strengths is not None:
        data *= strengths
    return scipy.sparse.csr_matrix(
        (data, interactions.indices, interactions.indptr), shape=interactions.shape
    )


class BipartiteGraph:
    """A graph whose edited versions can be propagated on, B of them at a time. Float64.

    strengths: (edges,) of the edges in the order of ``interactions.data``; none: 1 each.
    """

    def __init__(
        self,
        interactions: scipy.sparse.csr_matrix,
        device: torch.device,
        strengths: FloatArray | None = None,
    ) -> None:
        values = np.ones(interactions.nnz) if strengths is None else np.asarray(strengths, dtype=np.float64)
        weighted = scipy.sparse.csr_matrix(
            (values, interactions.indices, interactions.indptr), shape=interactions.shape
        )
        self.users, self.items = weighted.shape
        self.device = device
        self.to_users_matrix = sparse_tensor(weighted, torch.float64, device)
        self.to_items_matrix = sparse_tensor(weighted.T.tocsr(), torch.float64, device)
        self.starts = torch.from_numpy(weighted.indptr.astype(np.int64)).to(device)
        self.neighbours = torch.from_numpy(weighted.indices.astype(np.int64)).to(device)
        self.strengths = torch.from_numpy(values).to(device)
        rows = np.repeat(np.arange(self.users), np.diff(weighted.indptr))
        user_degrees = np.bincount(rows, values, minlength=self.users)
        item_degrees = np.bincount(weighted.indices, values, minlength=self.items)
        self.user_degrees, self.item_degrees = (
            torch.from_numpy(degrees.astype(np.float64)).to(device)  # integers where there is no edge
            for degrees in (user_degrees, item_degrees)
        )

    def histories(self, users: Tensor) -> Tensor:
        """(items, B) the strength of each edge of user b: Rᵀ applied to the unit vectors of ``users`` (B,)."""
        starts = self.starts[users]
        lengths = self.starts[users + 1] - starts
        columns = torch.repeat_interleave(torch.arange(len(users), device=self.device), lengths)
        ends = torch.cumsum(lengths, 0)
        within = torch.arange(len(columns), device=self.device) - (ends - lengths)[columns]
        found = torch.zeros(self.items, len(users), dtype=torch.float64, device=self.device)
        edges = starts[columns] + within
        found[self.neighbours[edges], columns] = self.strengths[edges]
        return found

    def edited(
        self, graphs: int, rows: Tensor, edge_users: Tensor, edge_items: Tensor, delta: Tensor
    ) -> EditedGraphs:
        """B = ``graphs`` versions: ``delta[e]`` is added to the weight of edge e in graph ``rows[e]``."""
        return EditedGraphs(self, graphs, rows, edge_users, edge_items, delta)


class EditedGraphs:
    """B edited versions of one graph; column b of every matrix belongs to version b."""

    def __init__(
        self,
        graph: BipartiteGraph,
        graphs: int,
        rows: Tensor,
        edge_users: Tensor,
        edge_items: Tensor,
        delta: Tensor,
    ) -> None:
        self.graph = graph
        self.rows, self.edge_users, self.edge_items, self.delta = rows, edge_users, edge_items, delta
        self.scale_users = _scaling(graph.user_degrees, graphs, edge_users, rows, delta)
        self.scale_items = _scaling(graph.item_degrees, graphs, edge_items, rows, delta)

    def to_items(self, users: Tensor) -> Tensor:
        """One layer: values of the users (users, B) -> values of the items (items, B)."""
        scaled = self.scale_users(users)
        summed = sparse_product(scaled, self.graph.to_items_matrix, self.graph.to_users_matrix)
        moved = scaled[self.edge_users, self.rows] * self.delta
        return self.scale_items(summed.index_put_((self.edge_items, self.rows), moved, accumulate=True))

    def to_users(self, items: Tensor) -> Tensor:
        """One layer: values of the items (items, B) -> values of the users (users, B)."""
        scaled = self.scale_items(items)
        summed = sparse_product(scaled, self.graph.to_users_matrix, self.graph.to_items_matrix)
        moved = scaled[self.edge_items, self.rows] * self.delta
        return self.scale_users(summed.index_put_((self.edge_users, self.rows), moved, accumulate=True))

    def to_items_from(self, users: Tensor) -> Tensor:
        """``to_items`` of the unit vectors of ``users`` (B,), one for each graph: a look-up, no product."""
        own = self.edge_users == users[self.rows]
        rows, delta = self.rows[own], self.delta[own]
        edges = self.graph.histories(users).index_put_((self.edge_items[own], rows), delta, accumulate=True)
        degrees = self.graph.user_degrees[users].index_add_(0, rows, delta)
        return self.scale_items(scaled_columns(edges, inverse_roots(degrees)))


_MOST_FACTORS_PER_EDGE = 8
"""Up to here a factor for every node of every version is faster than finding out which nodes are touched."""

_Scaling = Callable[[Tensor], Tensor]
"""degree^-1/2 in each version, times values x (nodes, B)."""


def _scaling(degrees: Tensor, graphs: int, nodes: Tensor, rows: Tensor, delta: Tensor) -> _Scaling:
    """Both forms add up the same numbers in the same order, so they have the same bits."""
    if len(degrees) * graphs <= _MOST_FACTORS_PER_EDGE * len(nodes):
        return _all_scaled(degrees, graphs, nodes, rows, delta)
    return _TouchedScaled(degrees, graphs, nodes, rows, delta)


def _all_scaled(degrees: Tensor, graphs: int, nodes: Tensor, rows: Tensor, delta: Tensor) -> _Scaling:
    """With a factor for every node of every version."""
    edited = degrees[:, None].repeat(1, graphs).index_put_((nodes, rows), delta, accumulate=True)
    return inverse_roots(edited).mul


class _TouchedScaled:
    """With factors for the nodes that an edit touches, and one for all versions of the others."""

    def __init__(self, degrees: Tensor, graphs: int, nodes: Tensor, rows: Tensor, delta: Tensor) -> None:
        touched, places = torch.unique(nodes * graphs + rows, return_inverse=True)
        node, graph = touched // graphs, touched % graphs
        edited = degrees[node].index_add_(0, places, delta)
        self.touched = (node, graph)
        self.factors = inverse_roots(edited)
        self.untouched_factors = inverse_roots(degrees)[:, None]

    def __call__(self, x: Tensor) -> Tensor:
        return (x * self.untouched_factors).index_put_(self.touched, x[self.touched] * self.factors)
