"""The column ``original`` of external explanations: if it contradicts the data set, they are of other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError
from cfbench_tabular.column_types import Format, number_of
from cfbench_tabular.table import FILLED_IN, Column, Table

RELATIVE, OF_RANGE = 1e-6, 1e-9
"""How much an original may differ from the value of the data set: a share of that value, plus one of the column's range."""


def check_originals(rows: pd.DataFrame, data: Table, path: Path) -> None:
    """That the originals of explanations in the long form, where they are given, are the values of the data set.

    Args:
        rows: unit (the row of the file, as text), column, level and original.

    Raises:
        UserError: for the first that is not, with its row, its column and both values.
    """
    columns = {column.name: column for column in data.columns}
    given = rows[
        rows["original"].notna() & (rows["original"].astype(str) != "") & rows["column"].isin(columns)
    ]
    indices = data.file_rows.indices(given["unit"].astype(int).to_numpy())
    spread = {name: _spread(data, column) for name, column in columns.items()}
    cells = zip(
        indices.tolist(),
        *(given[name].tolist() for name in ("unit", "column", "level", "original")),
        strict=True,
    )
    for index, unit, name, level, original in cells:
        column = columns[name]
        if isinstance(level, str):
            agrees = _number(original) == float(data.values[name][index] == level)
        elif column.kind == "numeric":
            value = float(data.values[name][index])
            agrees = _close(_number(original, column.format), value, spread[name])
        else:
            agrees = str(data.values[name][index]) in (str(original), str(original).removesuffix(".0"))
        if not agrees:
            raise UserError(
                f"{path}: row {unit}: column {name!r}: its original is {str(original)!r}{_of_level(level)}, but that row of "
                f"{data.name} has {data.text(column, index)}{_filled_in(data, name, int(unit))}: the explanations "
                "must be of the same rows, counted from 0 in the data file"
            )


def _spread(data: Table, column: Column) -> float:
    return float(np.ptp(data.values[column.name])) if column.kind == "numeric" else 0.0


def _close(given: float, value: float, spread: float) -> bool:
    return abs(given - value) <= RELATIVE * abs(value) + OF_RANGE * spread


def _number(given: Any, form: Format = "number") -> float:
    """What is given as a number, a date or a time; NaN if it is none. Fractions of a day are given as numbers."""
    for one in dict.fromkeys((form, "number")):
        try:
            return float(number_of(given, one))
        except (TypeError, ValueError):
            continue
    return float("nan")


def _of_level(level: Any) -> str:
    return f" for the level {level!r}" if isinstance(level, str) else ""


def _filled_in(data: Table, name: str, row: int) -> str:
    if name not in data.imputed or row not in data.imputed[name].rows:
        return ""
    return f" (filled in with {FILLED_IN[data.imputed[name].method]})"
