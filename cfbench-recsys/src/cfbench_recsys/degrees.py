"""The inverse roots of the degrees of a graph's nodes, which normalise its edges."""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST_DEGREE = 1e-9
"""A node with a smaller (or negative) degree counts as isolated: its factor and gradients are 0."""


def inverse_roots(degrees: Tensor) -> Tensor:
    """degree^-1/2, and 0 with a gradient of 0 for isolated nodes."""
    connected = degrees > SMALLEST_DEGREE
    return torch.where(connected, torch.where(connected, degrees, 1.0).rsqrt(), 0.0)
