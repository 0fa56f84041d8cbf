"""Whether two results are the same, deeply: arrays, tables, sparse matrices, dataclasses and containers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def difference(first: Any, second: Any, place: str = "it") -> str:
    """Where two values differ, "it.matrix"; empty if they are the same. NaN equals NaN."""
    if type(first) is not type(second):
        return f"{place} is {type(first).__name__}, then {type(second).__name__}"
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return _first(
            (getattr(first, field.name), getattr(second, field.name), f"{place}.{field.name}")
            for field in dataclasses.fields(first)
        )
    if isinstance(first, Mapping):
        if list(first) != list(second):
            return f"the keys of {place}"
        return _first((first[key], second[key], f"{place}[{key!r}]") for key in first)
    if isinstance(first, (list, tuple)):
        if len(first) != len(second):
            return f"the length of {place}"
        return _first(
            (one, other, f"{place}[{n}]") for n, (one, other) in enumerate(zip(first, second, strict=True))
        )
    return "" if _equal(first, second) else place


def _first(pairs: Any) -> str:
    return next((found for one, other, place in pairs if (found := difference(one, other, place))), "")


def _equal(first: Any, second: Any) -> bool:
    if hasattr(first, "tocoo"):  # a sparse matrix
        return bool(first.shape == second.shape and (first != second).nnz == 0)
    if hasattr(first, "equals"):  # pandas, Arrow
        return bool(first.equals(second))
    if hasattr(first, "dtype") and hasattr(first, "shape"):
        import numpy as np

        one, other = np.asarray(first), np.asarray(second)
        numbers = one.dtype.kind in "fc"
        return bool(one.dtype == other.dtype and np.array_equal(one, other, equal_nan=numbers))
    if hasattr(first, "__dict__") and "__eq__" not in vars(type(first)):
        return not difference(vars(first), vars(second))
    return bool(first == second) or (first != first and second != second)
