"""Attention over the edges of a user-item graph: how much each edge counts. Memory O(edges x heads).

With queries q and keys k of c columns in each of H heads, a user u and an item i give each other's edge the strength

    a_ui = 1/(2H) sum_h [ exp(l(q_u . k_i)) + exp(l(q_i . k_u)) ],      l(x) = BOUND tanh(x / (BOUND sqrt(c)))

the mean, over the heads and over both directions, of the numerators of a softmax over the neighbours. The bound
stands for the maximum that a softmax subtracts: a strength depends on its two ends and on no other edge. So an edit
of the graph changes no strength, and only the sums by which the propagation normalises (``bipartite_graph.py``)
follow the edit: exact, cheap, and differentiable in the weights of the edges.

Products over edges are those of sparse matrices, both ways: nothing of (edges, c) is ever formed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan
import torch
from torch import Tensor

BOUND = 3.0
"""Of a logit: an edge counts at most exp(6) = 403 times as much as another. (Published code of graph
transformers clamps at 10, where the gradient is lost.)"""


class Pattern:
    """Which edges there are, from rows to columns: a sparse matrix whose values come from outside.

    Attributes:
        shape: (rows, columns).
        rows, columns: (edges,) the ends of each edge.
        order: (edges,) the edges by column: values[order] are those of the transposed matrix.
    """

    def __init__(self, starts: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        """starts (rows + 1,), columns (edges,), int64: of a CSR matrix, in which an edge may stand twice."""
        self.shape = shape
        rows = torch.repeat_interleave(torch.arange(shape[0], device=starts.device), torch.diff(starts))
        self.rows, self.columns = rows, columns
        self.order = torch.argsort(columns, stable=True)
        self._indices = (starts.int(), columns.int())  # 32 bits are faster
        self._transposed = (_starts_of(columns, shape[1]).int(), rows[self.order].int())

    @staticmethod
    def of(matrix: scipy.sparse.csr_matrix, device: torch.device) -> Pattern:
        """Every stored entry is an edge."""
        arrays = (matrix.indptr, matrix.indices)
        starts, columns = (torch.from_numpy(array.astype(np.int64)).to(device) for array in arrays)
        return Pattern(starts, columns, matrix.shape)

    def transposed(self) -> Pattern:
        """From columns to rows; its edges stand in ``order``."""
        starts, columns = self._transposed
        return Pattern(starts.long(), columns.long(), self.shape[::-1])

    def __len__(self) -> int:
        return len(self.order)

    def matrix(self, values: Tensor) -> Tensor:
        """(rows, columns) sparse, with ``values`` (edges,)."""
        return _sparse(*self._indices, values, self.shape)

    def transposed_matrix(self, values: Tensor) -> Tensor:
        """(columns, rows) sparse, the transpose of ``matrix(values)``."""
        return _sparse(*self._transposed, values.index_select(0, self.order), self.shape[::-1])

    def products(self, left: Tensor, right: Tensor) -> Tensor:
        """(edges,) left_row . right_column, without a gradient; left (rows, c), right (columns, c)."""
        if not len(self):
            return left.new_zeros(0)
        nothing = self.matrix(left.new_zeros(len(self)))
        found: Tensor = torch.sparse.sampled_addmm(nothing, left, right.T, beta=0.0).values()
        return found


class _EdgeProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.pattern = pattern
        return pattern.products(left, right)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors
        to_left = ctx.pattern.matrix(gradient) @ right
        return to_left, ctx.pattern.transposed_matrix(gradient) @ left, None


class _EdgeSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        ctx.save_for_backward(weights, right)
        ctx.pattern = pattern
        return pattern.matrix(weights) @ right

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        weights, right = ctx.saved_tensors
        to_weights, to_right = None, None
        if ctx.needs_input_grad[0]:
            to_weights = ctx.pattern.products(gradient.contiguous(), right)
        if ctx.needs_input_grad[1]:
            to_right = ctx.pattern.transposed_matrix(weights) @ gradient
        return to_weights, to_right, None


def edge_products(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """(edges,) left_row . right_column, differentiable; left (rows, c), right (columns, c)."""
    result: Tensor = _EdgeProducts.apply(left, right, pattern)  # type: ignore[no-untyped-call]
    return result


def edge_sums(pattern: Pattern, weights: Tensor, right: Tensor) -> Tensor:
    """(rows, c) sum of a row's weights (edges,) times right (columns, c), differentiable in both."""
    result: Tensor = _EdgeSums.apply(weights, right, pattern)  # type: ignore[no-untyped-call]
    return result


@dataclass(frozen=True)
class Heads:
    """What the nodes of a side bring along, each (heads, nodes, c)."""

    queries: Tensor
    keys: Tensor

    @staticmethod
    def of(inputs: Tensor, query: Tensor, key: Tensor, heads: int) -> Heads:
        """inputs (nodes, d); query, key (d, d); c = d / ``heads``."""

        def split(matrix: Tensor) -> Tensor:
            return (inputs @ matrix).view(len(inputs), heads, -1).transpose(0, 1).contiguous()

        return Heads(split(query), split(key))

    def __len__(self) -> int:
        return len(self.queries)


def edge_strengths(pattern: Pattern, users: Heads, items: Heads) -> Tensor:
    """(edges,) a_ui of the edges of ``pattern``, from users to items; differentiable in the heads."""
    total = users.queries.new_zeros(len(pattern))
    for query, key, other_query, other_key in _pairs(users, items):
        total = total + _strength(edge_products(pattern, query, other_key), query)
        total = total + _strength(edge_products(pattern, key, other_query), query)
    return total / (2 * len(users))


def pair_strengths(edge_users: Tensor, edge_items: Tensor, users: Heads, items: Heads) -> Tensor:
    """(E,) a_ui of any users ``edge_users`` and items ``edge_items``, both (E,); as :func:`edge_strengths`."""
    total = users.queries.new_zeros(len(edge_users))
    for query, key, other_query, other_key in _pairs(users, items):
        total = total + _strength((query[edge_users] * other_key[edge_items]).sum(1), query)
        total = total + _strength((key[edge_users] * other_query[edge_items]).sum(1), query)
    return total / (2 * len(users))


def _pairs(users: Heads, items: Heads) -> Iterator[tuple[Tensor, ...]]:
    """Queries and keys of the users, queries and keys of the items, head by head."""
    return zip(users.queries, users.keys, items.queries, items.keys, strict=True)


def _strength(products: Tensor, query: Tensor) -> Tensor:
    return torch.exp(BOUND * torch.tanh(products / (BOUND * math.sqrt(query.shape[1]))))


class AttentivePropagation:
    """One layer, D^-1/2 A D^-1/2 with A the strengths of the edges, differentiable in them: what training needs.

    The same as ``Propagation`` of ``bipartite_graph.py``, whose values are constant.

    Attributes:
        degrees: of the users and of the items, sums of strengths.
    """

    def __init__(self, pattern: Pattern, transposed: Pattern, strengths: Tensor) -> None:
        self.degrees = (
            strengths.new_zeros(pattern.shape[0]).index_add(0, pattern.rows, strengths),
            strengths.new_zeros(pattern.shape[1]).index_add(0, pattern.columns, strengths),
        )
        of_users, of_items = self.degrees
        values = strengths * (of_users[pattern.rows] * of_items[pattern.columns]).rsqrt()
        self._to_users = (pattern, values)
        self._to_items = (transposed, values[pattern.order])

    def to_users(self, items: Tensor) -> Tensor:
        """(items, d) -> (users, d)"""
        return edge_sums(*self._to_users, items)

    def to_items(self, users: Tensor) -> Tensor:
        """(users, d) -> (items, d)"""
        return edge_sums(*self._to_items, users)


def _starts_of(places: Tensor, count: int) -> Tensor:
    """(count + 1,) where each of 0..count-1 begins in ``places`` once these are sorted."""
    counts = torch.bincount(places, minlength=count)
    return torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])


def _sparse(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(starts, columns, values, shape)
