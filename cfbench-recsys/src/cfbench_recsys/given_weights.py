"""Weights of a recommender that were trained elsewhere."""

from __future__ import annotations

from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.models import State, state_from_file
from cfbench_recsys.interactions import Interactions


def given_weights(path: Path, interactions: Interactions) -> State:
    """Weights of a user's own. Axes of users or items follow the order of the dataset's indices.

    Raises:
        UserError: if the file is no safetensors file, or no array has an axis of users or items.
    """
    state = state_from_file(path)
    users, items = interactions.matrix.shape
    if not any({users, items} & set(array.shape) for array in state.values()):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in state.items())
        raise UserError(
            f"{path}: no array has {items} items or {users} users of {interactions.name} (found: {shapes})"
        )
    return state
