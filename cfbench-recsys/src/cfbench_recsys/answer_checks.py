"""Checks of what an explainer returned, before anything is computed with it."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_recsys.edits import ADD, Edits, FloatArray
from cfbench_recsys.targets import Targets


def check_importances(importances: FloatArray, targets: Targets, label: str) -> None:
    """That importances (B, H) are finite where there is an interaction.

    Raises:
        UserError: if not, beginning with ``label``.
    """
    if not np.isfinite(importances[~targets.padding]).all():
        raise UserError(f"{label}: importances has NaN or infinity for an interaction of the user")


def check_edits(edits: Edits, targets: Targets, graph: scipy.sparse.csr_matrix, label: str) -> None:
    """That there is an edit for each target, of edges of the graph. ``answer_limits.py`` checks scope and budget.

    Args:
        graph: (users, items) the interactions.

    Raises:
        UserError: if not, beginning with ``label``.
    """
    if not isinstance(edits, Edits):
        raise UserError(f"{label}: counterfactuals must return Edits, not {type(edits).__name__}")
    if not np.array_equal(edits.users, targets.users):
        raise UserError(f"{label}: counterfactuals must give one edit for each target, for its user")
    if not targets.additions and (edits.ops == ADD).any():
        raise UserError(f"{label}: it adds edges, but 'protocol.edits' has removals only")
    rows = edits.rows
    if len(rows) and (rows[0] < 0 or rows[-1] >= len(targets) or (np.diff(rows) < 0).any()):
        raise UserError(f"{label}: the rows of its edits must ascend from 0 to {len(targets) - 1}")
    for name, ids, size in (
        ("user", edits.edge_users, graph.shape[0]),
        ("item", edits.edge_items, graph.shape[1]),
    ):
        outside = ids[(ids < 0) | (ids >= size)]
        if len(outside):
            raise UserError(f"{label}: it edits {name} {outside[0]}, but {name}s go from 0 to {size - 1}")
