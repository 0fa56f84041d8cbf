"""Transformer layers (Vaswani et al. 2017) for all positions at once or for one position after the other.

Post-norm, as in PETER: x' = norm(x + attention(x)), y = norm(x' + W_2 relu(W_1 x')). The keys and values of earlier
positions are cached, so a new position costs one row instead of recomputing the text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Cache = tuple[tuple["Tensor", "Tensor"], ...]
"""For each layer the keys and the values, (B, heads, positions, d / heads)."""


def transformer(dimensions: int, heads: int, hidden: int, layers: int, dropout: float) -> Any:
    """Layers with random weights."""
    from torch import nn

    def layer() -> Any:
        return nn.ModuleDict(
            {
                "query-key-value": nn.Linear(dimensions, 3 * dimensions),
                "mixed": nn.Linear(dimensions, dimensions),
                "first norm": nn.LayerNorm(dimensions),
                "wide": nn.Linear(dimensions, hidden),
                "narrow": nn.Linear(hidden, dimensions),
                "second norm": nn.LayerNorm(dimensions),
                "dropout": nn.Dropout(dropout),
            }
        )

    if dimensions % heads:
        raise ValueError(f"dimensions ({dimensions}) must be a multiple of heads ({heads})")
    return nn.ModuleList(layer() for _ in range(layers))


def run(
    layers: Any, heads: int, x: Tensor, sees: Tensor | None, cache: Cache | None = None
) -> tuple[Tensor, Cache]:
    """Hidden states (B, T, d) of T positions that follow those in the cache, and the cache with them.

    Args:
        x: (B, T, d) inputs.
        sees: (T, positions) which positions each one attends to, those of the cache first; None: all.
    """
    grown = []
    for number, layer in enumerate(layers):
        past = None if cache is None else cache[number]
        mixed, keys_values = _attend(layer, heads, x, sees, past)
        x = layer["first norm"](x + layer["dropout"](mixed))
        wide = layer["dropout"](layer["wide"](x).relu())
        x = layer["second norm"](x + layer["dropout"](layer["narrow"](wide)))
        grown.append(keys_values)
    return x, tuple(grown)


def _attend(
    layer: Any, heads: int, x: Tensor, sees: Tensor | None, past: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    rows, count, d = x.shape
    split = layer["query-key-value"](x).view(rows, count, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
    query, key, value = split[0], split[1], split[2]
    if past is not None:
        key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
    dropout = layer["dropout"].p if layer.training else 0.0
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=sees, dropout_p=dropout)
    return layer["mixed"](mixed.transpose(1, 2).reshape(rows, count, d)), (key, value)


def positions(first: int, count: int, dimensions: int, device: Any = None) -> Tensor:
    """(count, d) sinusoidal position encodings, starting at position ``first``."""
    import torch

    place = torch.arange(first, first + count, device=device)[:, None]
    even = torch.arange(0, dimensions, 2, device=device)
    angles = place * torch.exp(even * (-math.log(10_000.0) / dimensions))
    found = torch.empty(count, dimensions, device=device)
    found[:, 0::2] = angles.sin()
    found[:, 1::2] = angles.cos()[:, : dimensions // 2]
    return found
