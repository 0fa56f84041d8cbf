"""Models and trained explainers on disk: named arrays in safetensors, and what is needed to build the object again.

One convention for all: ``state() -> dict[str, ndarray]`` returns everything that was learned, and
``load_state(state, data)`` restores it in a fresh object for the data that it is used with.
"""

from __future__ import annotations

import json
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
COMPONENT = "component.json"


def save_model(model: Any, component: Mapping[str, Any], folder: Path) -> None:
    """A fitted model; ``component`` are the parameters of its :class:`ConfiguredComponent`."""
    save_state(model.state(), folder)
    (folder / COMPONENT).write_text(json.dumps(dict(component)), encoding="utf-8")


def load_model(folder: Path) -> tuple[dict[str, Any], State]:
    """What :func:`save_model` wrote: the component's parameters, and the state."""
    component: dict[str, Any] = json.loads((folder / COMPONENT).read_text(encoding="utf-8"))
    return component, load_state(folder)


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
