"""Counterfactuals as lists of changed columns, the form in which they are stored and shown.

A row of ``explanations.parquet`` is one changed column with its raw value before and after, as text (numbers with
all their digits, so that they are restored exactly). Some explainers return vectors that do not represent a row,
with a category that is 0.4 of one level and 0.6 of another. Such a column takes one line for each level that
changed, with the level in ``level`` and its weights in ``original`` and ``value``; ``level`` is null otherwise.

Scores are always computed from these lines, for external explanations as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.encoding import Encoding, levels_of
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True)
class Change:
    """One changed column, or one changed level of a column in a vector that does not represent a row."""

    column: str
    level: str | None
    original: str
    value: str


def feature_changes(encoding: Encoding, factual: FloatArray, counterfactual: FloatArray) -> list[Change]:
    """The changes between two vectors (d,); empty if there are none or if ``counterfactual`` contains NaN."""
    if np.isnan(counterfactual).any():
        return []
    found: list[Change] = []
    for place, (column, block) in enumerate(zip(encoding.columns, encoding.blocks, strict=True)):
        pair = np.stack([factual[block], counterfactual[block]])
        if (pair[0] == pair[1]).all():
            continue
        if column.kind == "numeric":
            before, after = encoding.decode_number(place, pair[:, 0]).tolist()
            if before != after:
                found.append(Change(column.name, None, repr(before), repr(after)))
            continue
        levels = levels_of(pair)
        if (levels >= 0).all():
            found.append(Change(column.name, None, column.levels[levels[0]], column.levels[levels[1]]))
            continue
        names = column.levels if pair.shape[1] > 1 else column.levels[1:]
        found += [
            Change(column.name, name, repr(before), repr(after))
            for name, before, after in zip(names, *pair.tolist(), strict=True)
            if before != after
        ]
    return found


def apply(encoding: Encoding, factual: FloatArray, changed: Iterable[tuple[str, Any, Any]]) -> FloatArray:
    """(d,) the vector of ``factual`` (d,) with the changes ``(column, level or None, value)``.

    Raises:
        UserError: for a column or a level that does not exist, or a value that is not a number where one
        belongs.
    """
    vector = factual.copy()
    places = {column.name: place for place, column in enumerate(encoding.columns)}
    for name, level, value in changed:
        if name not in places:
            raise UserError(f"explanations: no column {name!r}.{did_you_mean(str(name), places)}")
        place = places[name]
        column, block = encoding.columns[place], encoding.blocks[place]
        if level is None:
            raw = np.array([_number(name, value) if column.kind == "numeric" else str(value)], dtype=object)
            vector[block] = encoding.encode_column(place, raw)[0]
            continue
        names = column.levels if block.stop - block.start > 1 else column.levels[1:]
        if level not in names:
            raise UserError(
                f"explanations: column {name!r} has no level {level!r}.{did_you_mean(str(level), names)}"
            )
        vector[block.start + names.index(level)] = _number(name, value)
    return vector


def _number(column: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise UserError(f"explanations: column {column!r}: the value must be a number, got {value!r}")
    return number
