"""The rows of external explanations, which have one of two forms.

Long, with a row for each change: unit, column, value, and optionally counterfactual (from 1, for units with several) and
level. Wide, with a row for each counterfactual: unit, counterfactual (optional), and a value for every feature. ``row``
may replace ``unit``. An empty cell of a CSV file is a missing value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.file_rows import EVERY_ROW, FileRows
from cfbench_tabular.table import AnyArray

COLUMNS = ["unit", "counterfactual", "column", "level", "value", "original"]

MOST_COUNTERFACTUALS = 1000
"""Per factual; a larger number in the column ``counterfactual`` is an error."""


def long_rows(
    table: pd.DataFrame, features: Mapping[str, AnyArray], path: Path, file_rows: FileRows = EVERY_ROW
) -> pd.DataFrame:
    """A table in the long form: unit (text), counterfactual (int), column, level (text or missing), value and original
    (missing where it is not given).

    Args:
        features: the raw values of the columns of the data set, by name.
        path: the file of the table.
        file_rows: which row of the data file each of these values belongs to; a unit is a row of the file.

    Raises:
        UserError: if the table lacks a column, or has an invalid unit or counterfactual number.
    """
    if path.suffix == ".csv":
        table = table.mask(table == "")
    table = _with_dates(table)
    both = {"unit", "row"} <= {*table} and "row" not in features
    if "unit" not in table and "row" in table:
        table = table.assign(unit=table["row"])
    lacking = [name for name in ("unit", "column", "value") if name not in table]
    wide = "unit" not in lacking and bool(lacking) and bool(set(features) & set(table.columns))
    if lacking and not wide:
        raise UserError(
            f"{path}: has no column {', '.join(lacking)}; it has {', '.join(map(str, table.columns))}. "
            "It must be unit, column, value, or unit and a column for each feature"
        )
    rows = len(next(iter(features.values()))) + len(file_rows.dropped)
    expected = f"a row of the data set (0 to {rows - 1})"
    units = _integers(path, table["unit"], 0, rows - 1, f"unit {{}} is not {expected}")
    if both:
        _check_rows(path, table["row"], units)
    _check_dropped(path, units, file_rows)
    numbers = pd.Series(1, table.index)
    if "counterfactual" in table:
        message = "counterfactual must be 1, 2, 3, ..., got {}"
        numbers = _integers(path, table["counterfactual"], 1, MOST_COUNTERFACTUALS, message)
    table = table.assign(unit=units.astype(str), counterfactual=numbers)
    if wide:
        table = _changes(path, table, features, file_rows).assign(original=None)
    lacking = [name for name in ("level", "original") if name not in table]
    table = table.assign(**dict.fromkeys(lacking))
    return table[COLUMNS].astype({"level": "string"})


def _check_rows(path: Path, rows: pd.Series, units: pd.Series) -> None:
    """That a column ``row``, where it is filled in, names the same rows as ``unit``."""
    wrong = rows.notna() & (pd.to_numeric(rows, errors="coerce") != units)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise UserError(
            f"{path}: unit '{units.iloc[place]}' has another row in the column row: {str(rows.iloc[place])!r}"
        )


def _check_dropped(path: Path, units: pd.Series, file_rows: FileRows) -> None:
    wrong = units[units.isin(list(file_rows.dropped))]
    if len(wrong):
        unit = int(wrong.iloc[0])
        raise UserError(f"{path}: unit '{unit}' is a row that was dropped, because {file_rows.dropped[unit]}")


def _with_dates(table: pd.DataFrame) -> pd.DataFrame:
    """Columns of dates and times in Parquet as text in ISO 8601: dates where no time is other than midnight."""
    moments = table.select_dtypes(["datetime", "datetimetz"])
    for name, values in moments.items():
        dates = (values.dropna() == values.dropna().dt.normalize()).all()
        text = (
            values.dt.strftime("%Y-%m-%d")
            if dates
            else values.map(lambda one: one.isoformat(), na_action="ignore")
        )
        table = table.assign(**{str(name): text.astype(object)})
    return table


def _integers(path: Path, given: pd.Series, lowest: int, highest: int, message: str) -> pd.Series:
    """Whole numbers within a range; "7.0" is 7."""
    numbers = pd.to_numeric(given, errors="coerce")
    wrong = given[~(numbers.between(lowest, highest) & (numbers % 1 == 0))]
    if len(wrong):
        raise UserError(f"{path}: {message.format(repr(str(wrong.iloc[0])))}")
    return numbers.astype("int64")


def _changes(
    path: Path, table: pd.DataFrame, features: Mapping[str, AnyArray], file_rows: FileRows
) -> pd.DataFrame:
    """Complete counterfactual rows as changes from the rows of the data set; an empty cell means no change."""
    lacking = [name for name in features if name not in table]
    if lacking:
        hint = did_you_mean(lacking[0], [str(name) for name in table if name not in features])
        raise UserError(f"{path}: has complete rows, but no column {', '.join(map(repr, lacking))}.{hint}")
    duplicates = table[["unit", "counterfactual"]].duplicated()
    if duplicates.any():
        unit = table["unit"][duplicates].iloc[0]
        raise UserError(f"{path}: two rows for unit {unit!r}: number them in a column 'counterfactual'")
    indices, numbered = file_rows.indices(table["unit"].astype(int)), table[["unit", "counterfactual"]]
    parts = []
    for name, values in features.items():
        given = _as_levels(values, table[name])
        changed = [
            not pd.isna(new) and not _same(old, new) for old, new in zip(values[indices], given, strict=True)
        ]
        parts.append(numbered[changed].assign(column=name, level=None, value=given[changed].astype(str)))
    return pd.concat(parts, ignore_index=True)


def _as_levels(values: AnyArray, given: pd.Series) -> pd.Series:
    """Cells of a category as the levels of the data set: in Parquet, 2 is 2.0 if other cells are missing."""
    levels = set(values.tolist())
    if not all(isinstance(level, str) for level in levels):
        return given
    names = {
        cell: str(cell).removesuffix(".0") for cell in given.dropna().unique() if str(cell) not in levels
    }
    return given.astype(object).replace({cell: name for cell, name in names.items() if name in levels})


def _same(old: Any, new: Any) -> bool:
    """Whether a cell equals the value of the data set, compared as numbers if that is a number, else as text."""
    if isinstance(old, str):
        return old == str(new)
    try:
        return float(old) == float(new)
    except ValueError:
        return False
