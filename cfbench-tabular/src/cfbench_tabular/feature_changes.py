"""Counterfactuals as lists of changed columns, the form in which they are stored and shown.

A row of ``explanations.parquet`` is one changed column with its raw value before and after, as text: numbers with
the decimals of their column, or with all their digits where it has no step, so that they are restored exactly; dates
and times in ISO 8601. Some explainers return vectors that do not represent a row,
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
from cfbench_tabular.column_types import Format, number_of, text_of_number
from cfbench_tabular.encoding import Encoding, levels_of
from cfbench_tabular.table import FloatArray

RANK = "rank "
"""Precedes the number of a value between two ordered levels."""


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
                texts = [text_of_number(value, column.format, column.step) for value in (before, after)]
                found.append(Change(column.name, None, *texts))
            continue
        if column.scalar:
            texts = _ranks(encoding, place, pair[:, 0])
            if texts[0] != texts[1]:
                found.append(Change(column.name, None, *texts))
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
            if column.kind == "numeric":
                number = _number(name, value, column.format)
                vector[block] = encoding.encode_number(place, np.array([number]))
            elif column.scalar and str(value).startswith(RANK):
                number = _number(name, str(value).removeprefix(RANK))
                vector[block] = encoding.encode_number(place, np.array([number]))
            else:
                vector[block] = encoding.encode_column(place, np.array([str(value)], dtype=object))[0]
            continue
        names = column.levels if block.stop - block.start > 1 else column.levels[1:]
        if level not in names:
            raise UserError(
                f"explanations: column {name!r} has no level {level!r}.{did_you_mean(str(level), names)}"
            )
        vector[block.start + names.index(level)] = _number(name, value)
    return vector


def _ranks(encoding: Encoding, place: int, pair: FloatArray) -> list[str]:
    """The levels of an ordered column; a value between two levels as its rank."""
    names, levels = encoding.columns[place].levels, encoding.ranks(place, pair)
    numbers = encoding.decode_number(place, pair).tolist()
    return [
        names[level] if level >= 0 else f"{RANK}{number!r}"
        for level, number in zip(levels, numbers, strict=True)
    ]


def _number(column: str, value: Any, form: Format = "number") -> float:
    try:
        number = number_of(value, form)
    except (TypeError, ValueError):
        try:  # a date between two days is stored as a number
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
    if not np.isfinite(number):
        raise UserError(f"explanations: column {column!r}: the value must be a {form}, got {value!r}")
    return number
