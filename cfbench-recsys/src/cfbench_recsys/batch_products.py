"""Products whose result for one unit does not depend, bit by bit, on the other units of its batch.

A search repeats thousands of steps, and a difference in the last digit between a unit alone and in a batch can grow into
another answer. Elementwise functions, sparse products and sums along contiguous rows give each unit the same bits in any
batch (measured with torch on x86-64: sigmoid, exp, tanh, softmax, reciprocal roots, CSR times dense). Two operations do not:

- dense products, for BLAS adds in an order that depends on the shapes. :func:`column_product` calls it with blocks of one
  fixed shape, :func:`scattered_product` adds the columns that count one by one, and :func:`rows_product` adds along
  contiguous rows;
- sums over the rows of a matrix with a column for each unit, also in the gradient of a scaling of columns:
  :func:`scaled_columns`.

Each is differentiable, and its gradient has the same property.
"""

from __future__ import annotations

from typing import Any

import scipy  # scipy.sparse is imported at first use, not by every plan
import torch
from torch import Tensor

COLUMNS = 8
"""Columns of a block. BLAS gives each column of a block of eight the same bits at any of the eight places; of wider blocks
it does not."""


class _ColumnProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
        ctx.transposed = transposed
        return _in_blocks(matrix, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _in_blocks(ctx.transposed, gradient)


class _ScatteredProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, transposed: Tensor, x: Tensor) -> Tensor:
        ctx.transposed = transposed
        rows = scipy.sparse.csr_matrix(x.detach().numpy().T)
        return torch.from_numpy((rows @ transposed.numpy()).T)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, _in_blocks(ctx.transposed, gradient)


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
    result: Tensor = _ColumnProduct.apply(matrix, other, x)  # type: ignore[no-untyped-call]
    return result


def scattered_product(transposed: Tensor, x: Tensor) -> Tensor:
    """The same for x (m, B) most of whose entries are 0, on the CPU, from the ``transposed`` matrix (m, n).

    The products of what is not 0 are added in the order of the rows of x, each one rounded.
    """
    result: Tensor = _ScatteredProduct.apply(transposed, x)  # type: ignore[no-untyped-call]
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
    rows, count = x.shape
    blocks = -(-count // COLUMNS)
    if count % COLUMNS:
        padded = x.new_zeros(rows, blocks * COLUMNS)
        padded[:, :count] = x
        x = padded
    blocked = x.reshape(rows, blocks, COLUMNS).transpose(0, 1).contiguous()
    product = torch.bmm(matrix.expand(blocks, *matrix.shape), blocked)
    return product.transpose(0, 1).reshape(len(matrix), blocks * COLUMNS)[:, :count]
