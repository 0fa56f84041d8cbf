"""The inverse roots of the degrees of a graph's nodes, which normalise its edges."""

from __future__ import annotations

import numpy as np

from cfbench_recsys.edits import FloatArray

SMALLEST_DEGREE = 1e-9
"""A node with a smaller (or negative) degree counts as isolated: its factor and gradients are 0."""


def inverse_roots(degrees: FloatArray) -> FloatArray:
    """degree^-1/2, and 0 for isolated nodes."""
    connected = degrees > SMALLEST_DEGREE
    found: FloatArray = np.where(connected, 1.0 / np.sqrt(np.where(connected, degrees, 1.0)), 0.0)
    return found
