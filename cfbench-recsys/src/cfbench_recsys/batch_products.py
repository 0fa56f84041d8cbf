"""Products whose result for one unit does not depend, bit by bit, on the other units of its batch.

A search repeats thousands of steps, and a difference in the last digit between a unit alone and in a batch can grow into
another answer. Elementwise functions, sparse products and sums along contiguous rows give each unit the same bits in any
batch (measured with torch on x86-64: sigmoid, exp, tanh, softmax, reciprocal roots, CSR times dense). Two operations do not:

- dense products, for BLAS adds in an order that depends on the shapes. :func:`column_product` calls it with blocks of one
  fixed shape, and :func:`rows_product` adds along contiguous rows;
- sums over the rows of a matrix with a column for each unit, also in the gradient of a scaling of columns:
  :func:`scaled_columns`.

Each is differentiable, and its gradient has the same property.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

COLUMNS = 8
"""Columns of a block. BLAS gives each column of a block of eight the same bits at any of the eight places; of wider blocks
it does not."""


class _ColumnProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, x: Tensor) -> Tensor:
        ctx.matrix = matrix
        return _in_blocks(matrix, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, _in_blocks(ctx.matrix.T, gradient)


class _RowsProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrices: Tensor, transposed: Tensor, vectors: Tensor) -> Tensor:
        ctx.transposed = transposed
        return (matrices * vectors[:, None, :]).sum(dim=2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, (ctx.transposed * gradient[:, None, :]).sum(dim=2)


class _ScaledColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factors: Tensor) -> Tensor:
        ctx.save_for_backward(x, factors)
        return x * factors

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, factors = ctx.saved_tensors
        return gradient * factors, (gradient * x).T.contiguous().sum(dim=1)


def column_product(matrix: Tensor, x: Tensor) -> Tensor:
    """``matrix @ x`` for a constant ``matrix`` (n, m) and x (m, B) with a column for each unit; differentiable in x."""
    result: Tensor = _ColumnProduct.apply(matrix, x)  # type: ignore[no-untyped-call]
    return result


def rows_product(matrices: Tensor, transposed: Tensor, vectors: Tensor) -> Tensor:
    """(B, d) each of the constant ``matrices`` (B, d, d) times its vector (B, d); differentiable in the vectors.

    ``transposed``: the transposes of the matrices; both contiguous.
    """
    result: Tensor = _RowsProduct.apply(matrices, transposed, vectors)  # type: ignore[no-untyped-call]
    return result


def scaled_columns(x: Tensor, factors: Tensor) -> Tensor:
    """x (n, B) with column b times ``factors[b]``; differentiable in both."""
    result: Tensor = _ScaledColumns.apply(x, factors)  # type: ignore[no-untyped-call]
    return result


def _in_blocks(matrix: Tensor, x: Tensor) -> Tensor:
    count = x.shape[1]
    found = x.new_empty(matrix.shape[0], count)
    for start in range(0, count, COLUMNS):
        width = min(COLUMNS, count - start)
        block = x.new_zeros(x.shape[0], COLUMNS)
        block[:, :width] = x[:, start : start + width]
        found[:, start : start + width] = (matrix @ block)[:, :width]
    return found
