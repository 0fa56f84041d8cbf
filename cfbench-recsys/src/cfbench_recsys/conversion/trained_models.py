"""Reads a file with a trained model as data: nothing in it is executed."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.models import state_from_file
from cfbench_core.plain_text import one_line
from cfbench_recsys.real_arrays import array_of_tensor, check_real


@dataclass(frozen=True)
class TrainedModel:
    """What a file holds.

    Attributes:
        arrays: by name.
        kind: what the file says it is, "recbole LightGCN"; empty where it says nothing.
        options: numbers and words of the file that are no arrays of the model.
        users, items: their identifiers, in the order of the arrays' axes; None where the file has none.
    """

    arrays: Mapping[str, np.ndarray]
    kind: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    users: tuple[str, ...] | None = None
    items: tuple[str, ...] | None = None


def read_model(path: Path) -> TrainedModel:
    """The model in a ``.safetensors``, ``.npz``, ``.pt`` or ``.pth`` file.

    A PyTorch file may hold a state dict, or a dictionary with ``state_dict`` and, optionally, ``library``, ``model``,
    ``options``, ``users`` and ``items``. A NumPy file may hold ``users`` and ``items`` among its arrays.

    Raises:
        UserError: if the file is not there, or cannot be read without executing what it holds.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.suffix == ".npz":
        return _from_named(_numpy_arrays(path), path)
    if path.suffix in (".pt", ".pth"):
        return _from_torch(path)
    if path.suffix == ".safetensors":
        return TrainedModel(_numbers(state_from_file(path), path))
    raise UserError(f"{path}: cannot tell its form from its name; it must be .safetensors, .npz, .pt or .pth")


def read_identifiers(path: Path) -> tuple[str, ...]:
    """One identifier per line, in the order of a model's arrays.

    Raises:
        UserError: if the file cannot be read as text.
    """
    try:
        return tuple(path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: cannot be read as text with one identifier per line: {one_line(str(error))}"
        ) from None


def _numpy_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        if not zipfile.is_zipfile(path):
            raise UserError(f"{path}: is no .npz file, or is damaged")
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except UserError:
        raise
    except Exception as error:  # NumPy raises various types for a damaged file
        reason = one_line(str(error))
        if "pickle" in reason:  # and advises to execute what is in the file
            reason = "it is damaged, or holds objects of Python, which cannot be read without executing them"
        raise UserError(f"{path}: cannot be read as arrays of NumPy: {reason}") from None


def _from_named(found: Mapping[str, np.ndarray], path: Path) -> TrainedModel:
    own = {name: array for name, array in found.items() if name not in _IDENTIFIERS}
    options = {name: array.item() for name, array in own.items() if array.ndim == 0}
    arrays = {name: array for name, array in own.items() if array.ndim > 0}
    users, items = (
        _identifiers(found[name].tolist(), name, path) if name in found else None for name in _IDENTIFIERS
    )
    return TrainedModel(
        _numbers(arrays, path),
        str(options.pop("library", "")),
        {str(k): v for k, v in options.items()},
        users,
        items,
    )


_IDENTIFIERS = ("users", "items")


def _numbers(arrays: Mapping[str, np.ndarray], path: Path) -> Mapping[str, np.ndarray]:
    """The arrays, all of which must be of real numbers."""
    check_real(arrays, path)
    return arrays


def _identifiers(found: object, name: str, path: Path) -> tuple[str, ...]:
    if not isinstance(found, (list, tuple)) or not all(isinstance(one, (str, int)) for one in found):
        raise UserError(f"{path}: {name} must be a list of identifiers, words or whole numbers")
    return tuple(map(str, found))


def _from_torch(path: Path) -> TrainedModel:
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what the next line refuses anyway
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # torch raises various types for a file that is not data alone
        raise UserError(
            f"{path}: holds more than tensors, lists, numbers and words, or is no file of PyTorch, and cannot be read "
            "without executing what it holds; export the model first (docs/how-to/explain-a-model-of-another-library.md)"
        ) from None
    about: Mapping[str, Any] = {}
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        about, found = found, found["state_dict"]
    if not isinstance(found, Mapping) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise UserError(f"{path}: must hold a state dict, tensors by name")
    arrays = {str(name): array_of_tensor(tensor, str(name), path) for name, tensor in found.items()}
    options = about.get("options", {})
    return TrainedModel(
        _numbers(arrays, path),
        f"{about.get('library', '')} {about.get('model', '')}".strip(),
        dict(options) if isinstance(options, Mapping) else {},
        *(_identifiers(_listed(about[name]), name, path) if name in about else None for name in _IDENTIFIERS),
    )


def _listed(found: Any) -> Any:
    """A tensor as a list, anything else as it is."""
    return found.tolist() if hasattr(found, "tolist") else found
