"""A mixture of experts that maps a vector of a user or item into the embedding space of a language model.

Ma et al., "XRec", 2024: K linear experts, and a gate that weights them for each vector,

    f_k(x) = (dropout(x) - b_k) W_k,        g = softmax(x G + noise),        a(x) = sum_k g_k f_k(x).

During training the noise is normal with standard deviation softplus(x S) + 0.01 in each component, so that every expert
is used from the start; there is none at test time. G and S are initialised with zeros, W_k randomly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

LEAST_NOISE = 0.01
FIRST_NUMBERS = 0.02
"""Standard deviation of W before learning."""


def mixture(inputs: int, outputs: int, experts: int) -> Any:
    """The weights: a ``torch.nn.ParameterDict``."""
    import torch
    from torch import nn

    return nn.ParameterDict(
        {
            "offset": nn.Parameter(torch.zeros(experts, inputs)),
            "weight": nn.Parameter(torch.randn(experts, inputs, outputs) * FIRST_NUMBERS),
            "gate": nn.Parameter(torch.zeros(inputs, experts)),
            "noise": nn.Parameter(torch.zeros(inputs, experts)),
        }
    )


def gates(weights: Any, x: Tensor) -> Tensor:
    """(B, K) how much of each expert, noisy while it learns."""
    import torch
    from torch.nn.functional import softplus

    logits = x @ weights["gate"]
    if weights.training:
        logits = logits + torch.randn_like(logits) * (softplus(x @ weights["noise"]) + LEAST_NOISE)
    found: Tensor = logits.softmax(dim=-1)
    return found


def adapted(weights: Any, x: Tensor, dropout: float) -> Tensor:
    """(B, outputs) of vectors (B, inputs)."""
    import torch
    from torch.nn.functional import dropout as dropped

    outputs = [
        (dropped(x, dropout, weights.training) - offset) @ weight
        for offset, weight in zip(weights["offset"], weights["weight"], strict=True)
    ]
    return torch.einsum("bk,kbd->bd", gates(weights, x), torch.stack(outputs))
