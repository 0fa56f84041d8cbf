"""Products whose result for one unit does not depend, bit by bit, on the other units of its batch.

A search repeats thousands of steps, and a difference in the last digit between a unit alone and in a batch can grow into
another answer. Elementwise functions and sums along contiguous rows give each unit the same bits in any
batch (measured with torch on x86-64: sigmoid, exp, tanh, softmax, reciprocal roots). Three operations do not:

- products of a CSR matrix with few columns, for which MKL has other kernels on Intel processors: :func:`columnwise_product`;
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

COLUMNS = 24
"""Columns of a block. BLAS gives each column of a block of 24 the same bits at any of the 24 places, as it does for 8 and
48, but not for 16, 32, 40 and 64 (measured with MKL and AVX-512, whose kernels are 24 columns wide). A block of 24 costs no
more than one of 8."""

FEW_COLUMNS = 24
"""On Intel processors, 4, 8, 12, 16, 20 and 24 columns have kernels of their own in MKL's sparse product, which add in
another order than that for all other numbers of columns up to 600 (measured with MKL 2024.2; six shapes, one and two
threads)."""


class _ColumnProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
        ctx.transposed = transposed
        return _in_blocks(matrix, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _in_blocks(ctx.transposed, gradient)


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


def column_product(matrix: Tensor, x: Tensor, transposed: Tensor | None = None) -> Tensor:
    """``matrix @ x`` for a constant ``matrix`` (n, m) and x (m, B) with a column for each unit; differentiable in x.

    ``transposed``: the transpose (m, n) of the matrix, where it is at hand. Contiguous ones are multiplied faster.
    """
    other = matrix.T if transposed is None else transposed
    if not x.requires_grad:
        return _in_blocks(matrix, x)
    result: Tensor = _ColumnProduct.apply(matrix, other, x)  # type: ignore[no-untyped-call]
    return result


def columnwise_product(matrix: Tensor, x: Tensor) -> Tensor:
    """``matrix @ x`` for a CSR matrix (n, m) and x (m, B): each column has the same bits in any batch."""
    count = x.shape[1]
    if count <= FEW_COLUMNS and count % 4 == 0:
        return (matrix @ torch.nn.functional.pad(x, (0, 1)))[:, :count].contiguous()
    return matrix @ x


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
    if len(matrix) == 1:  # several threads would divide such a product within its columns
        return (x.T.contiguous() * matrix).sum(dim=1)[None]
    rows, count = x.shape
    width = -(-count // COLUMNS) * COLUMNS
    if count < width:
        padded = x.new_zeros(rows, width)
        padded[:, :count] = x
        x = padded
    product = x.new_empty(len(matrix), width)
    torch.bmm(matrix.expand(width // COLUMNS, *matrix.shape), _blocks(x.contiguous()), out=_blocks(product))
    return product[:, :count]


def _blocks(x: Tensor) -> Tensor:
    """A view (blocks, n, COLUMNS) of a contiguous x (n, blocks * COLUMNS)."""
    return x.view(len(x), -1, COLUMNS).transpose(0, 1)
