"""Edits that are made by a fraction, for methods that follow gradients: margins of items, and gradients per unit.

Gradients are given in units of each unit's largest component, since scores of recommenders differ in scale by orders of
magnitude, and rounded to a grid of 2**-24, so that edges that are equal on paper tie. That numbers do not depend on the
batch does not rest on the grid but on how they are computed, see ``batch_products.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cfbench_recsys.edits import BoolArray
from cfbench_recsys.targets import Targets

if TYPE_CHECKING:
    from torch import Tensor

GRID = 2.0**24


def seen_mask(targets: Targets, items: int) -> BoolArray:
    """(B, items) True for the interactions of the user, which are no candidates."""
    seen: BoolArray = np.zeros((len(targets), items), dtype=np.bool_)
    known, absent = targets.seen
    rows, columns = np.nonzero(~absent)
    seen[rows, known[rows, columns]] = True
    return seen


def list_margins(scores: Tensor, seen: Tensor, items: Tensor, k: int) -> Tensor:
    """(B, T) the score of each item minus that of the K-th best other candidate, at least -1e9; differentiable.

    An item has left the top K when its margin is negative.

    Args:
        scores: (B, all items).
        seen: (B, all items) True where an item is no candidate.
        items: (B, T) int64.
    """
    import torch

    candidates = scores.masked_fill(seen, -torch.inf)
    own = scores.gather(1, items)
    count = candidates.shape[1]
    best = candidates.topk(min(k + 1, count), dim=1)
    # An item among the first K has the (K+1)-th for its K-th other. By index: a tie must not make it its own rival.
    among = (best.indices[:, None, :k] == items[:, :, None]).any(dim=2)
    last = best.values[:, -1:]
    before = best.values[:, -2:-1] if count > k else last
    other = torch.where(among, last, before).clamp(min=-1e9)
    return own - other


def per_unit_scale(gradient: Tensor, rows: Tensor, units: int) -> Tensor:
    """(E,) a gradient in units of the largest component of its unit, on the grid.

    Args:
        gradient: (E,).
        rows: (E,) the unit of each component.
    """
    import torch

    largest = gradient.new_zeros(units)
    largest.scatter_reduce_(0, rows, gradient.abs(), "amax")
    return torch.round(gradient / largest.clamp(min=1e-300)[rows] * GRID) / GRID
