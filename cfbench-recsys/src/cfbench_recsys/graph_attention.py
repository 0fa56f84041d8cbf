"""Attention over the edges of a graph, and the same on many edited graphs at once. Memory O(edges x heads).

Node n on one side of the graph attends to its neighbours m on the other, with weights w_nm (1 in the graph as it
is). For each head, with queries q, keys k and values v of c columns,

    s_nm = q_n . k_m / sqrt(c)
    a_nm = exp(BOUND tanh(s_nm / BOUND))                      between exp(-BOUND) and exp(BOUND)
    T_n  = sum_m w_nm a_nm v_m / sum_m w_nm a_nm              0 for a node without edges

so an edge of weight 0 is no edge and one of weight 1 is a full one. The bound stands for the maximum that a
softmax subtracts. It depends on no other edge, so both sums can be corrected edge by edge, and no edge is so
heavy that what is left without it would drown in rounding.

Queries, keys and values do not depend on the graph here. An edit then changes T at the ends of the edited edges
only, and there by a few terms of the two sums: exact, cheap, and differentiable in the weights.

Products over edges are those of sparse matrices, both ways: nothing of (edges, c) is ever formed.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan
import torch
from torch import Tensor

from cfbench_recsys.bipartite_graph import SMALLEST_DEGREE

BOUND = 3.0
"""Of a logit: an edge counts at most exp(6) = 403 times as much as another. (Published code of graph
transformers clamps at 10, where the gradient is lost.)"""


class Pattern:
    """Which edges there are, from rows to columns: a sparse matrix whose values come from outside.

    Attributes:
        shape: (rows, columns).
        lengths: (rows,) edges of each row.
        order: (edges,) the edges by column: values[order] are those of the transposed matrix.
    """

    def __init__(self, starts: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        """starts (rows + 1,), columns (edges,), int64: of a CSR matrix, in which an edge may stand twice."""
        self.shape = shape
        self.lengths = torch.diff(starts)
        rows = torch.repeat_interleave(torch.arange(shape[0], device=starts.device), self.lengths)
        self.order = torch.argsort(columns, stable=True)
        self._indices = (starts.int(), columns.int())  # 32 bits are faster
        self._transposed = (starts_of(columns, shape[1]).int(), rows[self.order].int())

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
    values: Tensor

    @staticmethod
    def of(inputs: Tensor, query: Tensor, key: Tensor, value: Tensor, heads: int) -> Heads:
        """inputs (nodes, d); query, key, value (d, d); c = d / ``heads``."""

        def split(matrix: Tensor) -> Tensor:
            return (inputs @ matrix).view(len(inputs), heads, -1).transpose(0, 1).contiguous()

        return Heads(split(query), split(key), split(value))


def strengths(pattern: Pattern, queries: Tensor, keys: Tensor) -> Tensor:
    """(edges,) a_nm of one head; queries (rows, c), keys (columns, c)."""
    scaled = queries / (math.sqrt(queries.shape[1]) * BOUND)
    return torch.exp(BOUND * torch.tanh(edge_products(pattern, scaled, keys)))


def attend(pattern: Pattern, looking: Heads, seen: Heads) -> Tensor:
    """(rows, heads * c) T of the nodes ``looking``, for weights of 1."""
    return _averages(_sums(pattern, looking, seen), pattern.lengths > 0)


def shares(pattern: Pattern, looking: Heads, seen: Heads) -> Tensor:
    """(edges,) how much of a node's attention an edge has, in even shares: 1 where all have the same.

    The mean over the heads of lengths_n a_nm / sum_m a_nm.
    """
    total = torch.zeros(len(pattern), device=seen.keys.device, dtype=seen.keys.dtype)
    for queries, keys in zip(looking.queries, seen.keys, strict=True):
        strength = strengths(pattern, queries, keys)
        sums = edge_sums(pattern, strength, torch.ones_like(keys[:, :1]))[:, 0]
        scale = torch.where(pattern.lengths > 0, pattern.lengths / sums, 0.0)
        total = total + strength * torch.repeat_interleave(scale, pattern.lengths)
    return total / len(looking.queries)


@dataclass(frozen=True)
class Changes:
    """B versions of a matrix H (nodes, d) that differ from it in N rows: H_b = H + changes.

    Attributes:
        node, version: (N,) which row, in which version; no pair twice.
        change: (N, d) what is added to it.
    """

    node: Tensor
    version: Tensor
    change: Tensor

    def add_transposed_product(self, total: Tensor, columns: Tensor) -> Tensor:
        """total (d, B) + (H_b - H)^T x_b for the columns x_b of ``columns`` (nodes, B)."""
        moved = self.change * columns[self.node, self.version][:, None]
        return total.T.index_add(0, self.version, moved).T

    def add_product(self, total: Tensor, embeddings: Tensor) -> Tensor:
        """total (nodes, B) + (H_b - H) y_b for the columns y_b of ``embeddings`` (d, B)."""
        moved = torch.linalg.vecdot(self.change, embeddings.T[self.version])
        return total.index_put((self.node, self.version), moved, accumulate=True)


class Attention:
    """Attention of one side over one graph, ready for edits.

    Attributes:
        output: (nodes, heads * c) T.
    """

    def __init__(self, pattern: Pattern, looking: Heads, seen: Heads) -> None:
        self._looking, self._seen = looking, seen
        self._degrees = pattern.lengths.to(seen.values.dtype)
        self._sums = _sums(pattern, looking, seen)
        self.output = _averages(self._sums, pattern.lengths > 0)

    def edited(self, versions: int, rows: Tensor, nodes: Tensor, others: Tensor, delta: Tensor) -> Changes:
        """How T changes, in B = ``versions`` of the graph; differentiable in ``delta``.

        ``delta[e]`` is added to the weight of the edge between ``nodes[e]`` of this side and ``others[e]`` in
        version ``rows[e]``; all (E,).
        """
        touched, places = torch.unique(nodes * versions + rows, return_inverse=True)
        node, version = touched // versions, touched % versions
        order = torch.argsort(places, stable=True)
        starts = starts_of(places, len(touched))
        pattern = Pattern(starts, others[order], (len(touched), self._seen.keys.shape[1]))
        delta = delta[order]
        sums = []
        for head, (queries, keys, values) in enumerate(
            zip(self._looking.queries, self._seen.keys, self._seen.values, strict=True)
        ):
            weights = delta * strengths(pattern, queries[node], keys)
            sums.append(self._sums[head, node] + edge_sums(pattern, weights, _with_ones(values)))
        degrees = self._degrees[node].index_add(0, places[order], delta)
        output = _averages(torch.stack(sums), degrees > SMALLEST_DEGREE)
        return Changes(node, version, output - self.output[node])


def starts_of(places: Tensor, count: int) -> Tensor:
    """(count + 1,) where each of 0..count-1 begins in ``places`` once these are sorted."""
    counts = torch.bincount(places, minlength=count)
    return torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])


def _sums(pattern: Pattern, looking: Heads, seen: Heads) -> Tensor:
    """(heads, rows, c + 1) sum_m a_nm [v_m, 1], both sums of T in one product."""
    heads = zip(looking.queries, seen.keys, seen.values, strict=True)
    return torch.stack(
        [edge_sums(pattern, strengths(pattern, query, key), _with_ones(value)) for query, key, value in heads]
    )


def _averages(sums: Tensor, connected: Tensor) -> Tensor:
    """(rows, heads * c) T, the heads side by side; sums (heads, rows, c + 1), connected (rows,) bool."""
    divisor = torch.where(connected, sums[..., -1], 1.0)
    means = torch.where(connected[:, None], sums[..., :-1] / divisor[..., None], 0.0)
    return means.transpose(0, 1).flatten(1)


def _with_ones(values: Tensor) -> Tensor:
    return torch.cat([values, values.new_ones(len(values), 1)], dim=1)


def _sparse(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(starts, columns, values, shape)
