"""Models and trained explainers on disk: named arrays in safetensors.

One convention for all: ``state() -> dict[str, ndarray]`` returns everything that was learned, and
``load_state(state, data)`` restores it in a fresh object for the data that it is used with. The class of that object
comes from the plan (``Task.models``), never from the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from cfbench_core.config.component import create
from cfbench_core.errors import UserError

State = dict[str, np.ndarray]

STATE = "state.safetensors"


def restored(component: Mapping[str, Any], state: State, data: Any) -> Any:
    """The usual step ``restore``: a fresh object of the component that takes its state back."""
    model = create(component)
    model.load_state(state, data)
    return model


def save_state(state: Mapping[str, np.ndarray], folder: Path) -> None:
    """Named arrays into ``folder/state.safetensors``."""
    save_file({name: np.ascontiguousarray(array) for name, array in state.items()}, folder / STATE)


def load_state(folder: Path) -> State:
    """What :func:`save_state` wrote."""
    state: State = load_file(folder / STATE)
    return state


def checked_state(state: object, label: str) -> State:
    """What a component returned as its state.

    Raises:
        UserError: when it is not a mapping from names to NumPy arrays.
    """
    if isinstance(state, Mapping) and all(isinstance(array, np.ndarray) for array in state.values()):
        return {str(name): array for name, array in state.items()}
    raise UserError(f"{label}: a state must be NumPy arrays by name, a dict, not {type(state).__name__}")


def state_from_file(path: Path) -> State:
    """Weights of a user's own.

    Raises:
        UserError: if the file is no safetensors file.
    """
    try:
        state: State = load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a safetensors file ({error})") from None
    return state
