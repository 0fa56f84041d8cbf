"""The arrays in an object: made read-only, and digested to notice that one has changed.

An object is searched through its attributes, mappings, lists and tuples. Libraries are recognized without importing them:
an object of torch or pandas exists only if its library is imported.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from cfbench_core.isolation.packages import own_packages
from cfbench_core.lifecycle.code import is_in_house

DEPTH = 8
"""Attributes of attributes are searched to this depth."""

MOST = 20_000
"""The number of objects after which the search ends."""

Leaf = Any
"""An array, tensor, frame, number or text."""

_SPARSE = ("data", "indices", "indptr", "row", "col", "offsets")
_NO_CONTAINERS = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.GeneratorType,
    type,
)
_PLAIN = (str, bytes, bool, int, float, complex)


def leaves(
    value: object, skipped: set[int] | None = None, enters: Callable[[object], bool] = lambda part: True
) -> Iterator[tuple[str, Leaf]]:
    """Arrays, tensors, frames, numbers and texts in an object, each with its path: ``"split.train.data"``.

    Args:
        skipped: objects (by ``id``) that are not searched; those that are found are added.
        enters: whether the attributes of an object are searched.
    """
    seen = set() if skipped is None else skipped
    waiting = [("", value, 0)]
    count = 0
    while waiting and count < MOST:
        path, one, depth = waiting.pop()
        count += 1
        if isinstance(one, _PLAIN):
            yield path, one
            continue
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if _is_leaf(one):
            yield path, one
        elif depth < DEPTH and (depth == 0 or not is_foreign_model(one)) and enters(one):
            inner = [(_join(path, name), member, depth + 1) for name, member in _members(one)]
            waiting += reversed(inner)


def is_foreign_model(value: object) -> bool:
    """Whether an object is a model of another distribution: its attributes may change as it is queried."""
    return hasattr(value, "state") and type(value).__module__.partition(".")[0] not in own_packages()


def freeze(value: object, skipped: set[int] | None = None) -> None:
    """Makes the NumPy arrays in an object read-only, those of sparse matrices included; see :func:`leaves`.

    Not those inside objects of other libraries, such as a fitted estimator: their compiled code may ask for arrays that
    can be written, if only to read them (``GradientBoostingClassifier`` and ``SVC`` of scikit-learn do).
    """
    for _, leaf in leaves(value, skipped, lambda part: not _is_of_library(part)):
        if isinstance(leaf, np.ndarray) and leaf.flags.writeable:
            leaf.setflags(write=False)


def fingerprint(leaf: Leaf) -> object:
    """A value that differs if the content of the leaf differs (but for one case in four billion)."""
    if isinstance(leaf, np.ndarray):
        return leaf.shape, leaf.dtype.str, _checksum(leaf)
    if _is_tensor(leaf):
        return tuple(leaf.shape), str(leaf.dtype), _checksum_of_tensor(leaf)
    if isinstance(leaf, _PLAIN):
        return type(leaf).__name__, repr(leaf)  # repr: a NaN equals itself
    columns = leaf.items() if hasattr(leaf, "columns") else [("", leaf)]
    return tuple((str(name), len(column), _checksum(np.asarray(column))) for name, column in columns)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _is_leaf(value: object) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value) or _is_frame(value)


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(value, torch.Tensor)


def _is_frame(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "to_numpy")


def _members(value: object) -> Iterator[tuple[str, object]]:
    """The parts of an object that is no leaf."""
    if isinstance(value, Mapping):
        if type(value) is dict or isinstance(value, types.MappingProxyType):
            yield from ((str(name), member) for name, member in list(value.items()))
    elif isinstance(value, (list, tuple)):
        if value and all(isinstance(member, _PLAIN) for member in value):
            if isinstance(value, list):  # a tuple of these cannot change
                yield "", _text(value)
        else:
            yield from ((str(place), member) for place, member in enumerate(value))
    elif isinstance(value, functools.partial):
        yield from ((str(place), member) for place, member in enumerate(value.args))
        yield from value.keywords.items()
    elif isinstance(value, _NO_CONTAINERS):
        return
    elif _is_sparse(value):
        yield from (
            (name, getattr(value, name)) for name in _SPARSE if isinstance(_raw(value, name), np.ndarray)
        )
    else:
        yield from list(getattr(value, "__dict__", {}).items())
        if dataclasses.is_dataclass(value) and not hasattr(value, "__dict__"):
            yield from ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))


def _is_of_library(value: object) -> bool:
    """Whether an object's class is neither cfbench's nor a plugin's nor the user's, and it is no container or sparse
    matrix."""
    package = type(value).__module__.partition(".")[0]
    known = package in sys.stdlib_module_names or _is_sparse(value) or is_in_house(package)
    return not known


def _is_sparse(value: object) -> bool:
    return type(value).__module__.startswith("scipy.sparse")


def _raw(value: object, name: str) -> object:
    return getattr(value, "__dict__", {}).get(name)


def _text(values: list[Any]) -> str:
    return f"{len(values)} values, checksum {zlib.crc32(repr(values).encode('utf-8', 'surrogatepass'))}"


def _checksum(array: np.ndarray) -> int:
    if array.dtype.hasobject:
        return zlib.crc32(repr(array.tolist()).encode("utf-8", "surrogatepass"))
    if array.dtype.kind in "USMm" or not array.flags.c_contiguous:
        return zlib.crc32(array.tobytes())
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _checksum_of_tensor(tensor: Any) -> int:
    torch = sys.modules["torch"]
    with torch.no_grad():
        if tensor.layout != torch.strided:
            coalesced = tensor.to_sparse_coo().coalesce()
            return _checksum_of_tensor(coalesced.indices()) ^ _checksum_of_tensor(coalesced.values())
        plain = tensor.detach().cpu().contiguous().reshape(-1)
        return _checksum(plain.view(torch.uint8).numpy()) if plain.numel() else 0
