"""Recommenders on disk: named arrays in safetensors, and what is needed to build the model again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from scipy import sparse

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_recsys.interactions import Interactions

STATE = "state.safetensors"
RECOMMENDER = "recommender.json"


def save_model(model: Any, parameters: Mapping[str, Any], folder: Path) -> None:
    """A fitted recommender; ``parameters`` are those of its reference in the configuration."""
    save_state(model.state(), folder)
    (folder / RECOMMENDER).write_text(json.dumps(parameters), encoding="utf-8")


def load_model(folder: Path, interactions: sparse.csr_matrix) -> Any:
    """What :func:`save_model` wrote, ready to score the graph ``interactions`` (users, items)."""
    model = create(json.loads((folder / RECOMMENDER).read_text(encoding="utf-8")))
    model.load_state(load_state(folder), interactions)
    return model


def save_state(state: Mapping[str, np.ndarray], folder: Path) -> None:
    """Named arrays into ``folder/state.safetensors``."""
    save_file({name: np.ascontiguousarray(array) for name, array in state.items()}, folder / STATE)


def load_state(folder: Path) -> dict[str, np.ndarray]:
    """What :func:`save_state` wrote."""
    state: dict[str, np.ndarray] = load_file(folder / STATE)
    return state


def state_from_file(path: Path, interactions: Interactions) -> dict[str, np.ndarray]:
    """Weights of the user's own. Axes of users or items follow the order of the data set's indices.

    Raises:
        UserError: if the file is no safetensors file.
    """
    try:
        state: dict[str, np.ndarray] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a safetensors file ({error})") from None
    users, items = interactions.matrix.shape
    if not any({users, items} & set(array.shape) for array in state.values()):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in state.items())
        raise UserError(
            f"{path}: no array has {items} items or {users} users of {interactions.name} (found: {shapes})"
        )
    return state
