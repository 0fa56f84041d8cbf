"""Checks of what an explainer returned, before anything is computed with it."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_recsys.edits import ADD, REMOVE, Edits, FloatArray
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
    _check_arrays(edits, label)
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


def _check_arrays(edits: Edits, label: str) -> None:
    """That they are whole numbers, as many of each as there are edges."""
    for name in ("users", "rows", "edge_users", "edge_items", "ops"):
        array = getattr(edits, name)
        what = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
            raise UserError(f"{label}: {name} of its edits must be an array of whole numbers, not {what}")
        if array.ndim != 1 or (name != "users" and len(array) != len(edits.rows)):
            raise UserError(
                f"{label}: {name} of its edits must have one number for each edge, has {array.shape}"
            )
    if not np.isin(edits.ops, (REMOVE, ADD)).all():
        raise UserError(f"{label}: ops of its edits must be {REMOVE} (remove) or {ADD} (add)")
