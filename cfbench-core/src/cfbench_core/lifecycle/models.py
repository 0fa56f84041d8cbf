"""Models and trained explainers on disk: named arrays in safetensors.

One convention for all: ``state() -> dict[str, ndarray]`` returns everything that was learned, and
``load_state(state, data)`` restores it in a fresh object for the data that it is used with. The class of that object
comes from the plan (``Task.models``), never from the cache.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import load_file, save_file

from cfbench_core.config.component import create
from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line

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
    """What :func:`save_state` wrote: views of the file, which is mapped into memory.

    Processes that load the same model share its pages. What is written to an array stays in this process.
    """
    path = folder / STATE
    if os.name == "nt":  # a file that is mapped cannot be removed there
        state: State = load_file(path)
        return state
    return _mapped(path)


def _mapped(path: Path) -> State:
    """The arrays of a file in the format of safetensors: eight bytes for the length of the JSON that follows, where each
    array has its type, shape, and begin and end among the bytes behind it."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {name: _view(content, start, entry) for name, entry in header.items()}


def _view(content: mmap.mmap, start: int, entry: Mapping[str, Any]) -> np.ndarray:
    begin, end = entry["data_offsets"]
    if begin == end:  # an empty array at the end of the file has no place in the map
        return np.empty(entry["shape"], _TYPES[entry["dtype"]])
    dtype = np.dtype(_TYPES[entry["dtype"]])
    count = (end - begin) // dtype.itemsize
    return np.frombuffer(content, dtype, count, start + begin).reshape(entry["shape"])


_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?", "C64": "<c8",
    **{f"{kind}{8 * size}": f"<{letter}{size}" for kind, letter in (("I", "i"), ("U", "u")) for size in (1, 2, 4, 8)},
}  # fmt: skip
"""Of NumPy, by their names in safetensors."""


def checked_state(state: object, label: str) -> State:
    """What a component returned as its state.

    Raises:
        UserError: when it is not a mapping from names to NumPy arrays.
    """
    if isinstance(state, Mapping) and all(isinstance(array, np.ndarray) for array in state.values()):
        return {str(name): array for name, array in state.items()}
    raise UserError(f"{label}: a state must be NumPy arrays by name, a dict, not {type(state).__name__}")


def state_from_file(path: Path) -> State:
    """Weights of a user's own. bfloat16, which NumPy does not have, becomes float32, which has all of its numbers.

    Raises:
        UserError: if the file is no safetensors file, or has an array of another type that NumPy does not have.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            types = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - not a mapping
        for name, dtype in types.items():
            if dtype not in _TYPES and dtype != _BFLOAT16:
                raise UserError(f"{path}: {one_line(name)} has the type {dtype}, which NumPy does not have")
        state: State = load_file(path) if _BFLOAT16 not in types.values() else _widened(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a safetensors file ({error})") from None
    return state


_BFLOAT16 = "BF16"


def _widened(path: Path) -> State:
    """The arrays of a safetensors file with bfloat16, whose bits are the upper half of those of a float32."""
    found: State = {}
    for name, entry in deserialize(path.read_bytes()):  # type: ignore[no-untyped-call]
        if entry["dtype"] == _BFLOAT16:
            array = (np.frombuffer(entry["data"], "<u2").astype("<u4") << 16).view("<f4")
        else:
            array = np.frombuffer(entry["data"], _TYPES[entry["dtype"]])
        found[name] = array.reshape(entry["shape"])
    return found
