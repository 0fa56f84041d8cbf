"""The units of external explanations: dates counted as in the data file, and numbers that were scaled for a model.

Numbers in a column with an ``epoch`` count as in the data file: 45123 is 2023-07-16 where it is ``spreadsheet``. In
explanations of a run, dates are in ISO 8601; only fractions of a day, which no explainer of this distribution returns, are
numbers of days since 1970-01-01. Such tables have a column ``original``.

Programs that explain a model of scaled inputs often write scaled values. Such a table is scored as it stands, with a
warning: a value beyond the range of its column is no error, and some methods return many of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import ResultWarning, UserError
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.serial_moments import DAY_0_NUMBER, FIRST_DAY, LAST_DAY, in_iso
from cfbench_tabular.sheet import number_or_nan
from cfbench_tabular.table import Column, FloatArray, Table

LEAST_VALUES = 10
"""With fewer values in all suspicious columns there is no warning."""
MOSTLY_OUTSIDE = 0.5
"""Share of the values of a column that are well outside the range of the data set, in a table of scaled numbers."""
WELL = 0.1
"""Share of the range by which they are outside of it."""
MARGIN = 1.0
"""Standard deviations by which standardised values may exceed those of the data set."""
MOST_NAMED = 3
"""Columns that the warning names."""


def in_declared_units(table: pd.DataFrame, columns: tuple[Column, ...], path: Path) -> pd.DataFrame:
    """An external table, long or wide, with the numbers of columns that have an epoch as dates or times in ISO 8601.

    Raises:
        UserError: for a whole number that is no day of a spreadsheet.
    """
    own_form = "original" in table
    for column in columns:
        if not column.epoch:
            continue
        if column.name in table:
            cells = table[column.name]
            table = table.assign(**{column.name: _dated(cells, column, own_form, path)})
        elif {"column", "value"} <= {*table}:
            chosen = table["column"] == column.name
            values = table["value"].astype(object)
            values[chosen] = _dated(values[chosen], column, own_form, path)
            table = table.assign(value=values)
            if own_form:
                originals = table["original"].astype(object)
                originals[chosen] = _dated(originals[chosen], column, own_form, path)
                table = table.assign(original=originals)
    return table


def _dated(cells: pd.Series[Any], column: Column, own_form: bool, path: Path) -> pd.Series[Any]:
    return cells.astype(object).map(lambda cell: _moment(cell, column, own_form, path), na_action="ignore")


def _moment(cell: Any, column: Column, own_form: bool, path: Path) -> Any:
    """A cell with a number in the unit of its column as text in ISO 8601; others unchanged."""
    number = number_or_nan(str(cell))
    if not np.isfinite(number):
        return cell
    whole = number == int(number)
    if column.epoch == "unix":  # which counts as cfbench does
        return in_iso([str(cell)], "unix", "time")[0] if whole else cell
    if FIRST_DAY <= number < LAST_DAY + 1 and (whole or column.format == "time"):
        return in_iso([str(cell)], "spreadsheet", column.format)[0]
    if column.format == "time" or (own_form and not whole):
        return cell
    if whole:
        raise UserError(
            f"{path}: column {column.name!r}: {cell} is no day of a spreadsheet ({FIRST_DAY} to {LAST_DAY}), as which the "
            "column counts dates (epoch)"
        )
    return repr(number - DAY_0_NUMBER)


@dataclass(frozen=True)
class _Range:
    """The numbers of a column in a table of explanations, next to those of the data set.

    Attributes:
        seen, expected: the least and the greatest number in the explanations, and in the data set.
        values: the count of the numbers in the explanations.
        outside: the share of them well beyond the range of the data set.
        standardised, normalised: whether all could be standard deviations from the mean, or shares of the range.
    """

    column: str
    seen: tuple[float, float]
    expected: tuple[float, float]
    values: int
    outside: float
    standardised: bool
    normalised: bool

    def __str__(self) -> str:
        (low, high), (least, most) = self.seen, self.expected
        return (
            f"{self.column} is from {low:.4g} to {high:.4g}, in the data set from {least:.4g} to {most:.4g}"
        )


def warn_of_scaled(rows: pd.DataFrame, table: Table, encoding: Encoding, path: Path) -> None:
    """A warning if the values of external explanations in the long form look scaled.

    That is, if more columns of numbers are possible as scaled values only than are impossible as scaled values.
    """
    ranges = list(_ranges(rows, table, encoding))
    normalised = [one for one in ranges if one.normalised and one.outside >= MOSTLY_OUTSIDE]
    standardised = [one for one in ranges if one.standardised and one.outside >= MOSTLY_OUTSIDE]
    readings = (
        ("scaled to the range from 0 to 1", normalised, sum(not one.normalised for one in ranges)),
        ("standardised", standardised, sum(not one.standardised for one in ranges)),
    )
    words, suspicious, contrary = max(readings, key=lambda reading: len(reading[1]) - reading[2])
    if sum(one.values for one in suspicious) < LEAST_VALUES or len(suspicious) <= contrary:
        return
    named = "; ".join(map(str, suspicious[:MOST_NAMED]))
    more = len(suspicious) - MOST_NAMED
    warnings.warn(
        f"{path.name}: values look {words}: {named}{f'; {more} more columns' if more > 0 else ''}. "
        "Write them in the units of the data set",
        ResultWarning,
        stacklevel=2,
    )


def _ranges(rows: pd.DataFrame, table: Table, encoding: Encoding) -> Iterator[_Range]:
    given = rows[rows["level"].isna()]
    for place, column in enumerate(table.columns):
        texts = given["value"][given["column"] == column.name]
        if column.kind != "numeric" or column.format != "number" or not len(texts):
            continue
        numbers = np.array([number_or_nan(str(text)) for text in texts])
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            yield _range_of(column, numbers, table.values[column.name], encoding, place)


def _range_of(
    column: Column, numbers: FloatArray, values: FloatArray, encoding: Encoding, place: int
) -> _Range:
    least = min(float(values.min()), np.inf if column.low is None else column.low)
    most = max(float(values.max()), -np.inf if column.high is None else column.high)
    lowest, highest = encoding.encode_number(place, np.array([least, most]))
    beyond = np.maximum(least - numbers, numbers - most)
    return _Range(
        column.name,
        (float(numbers.min()), float(numbers.max())),
        (least, most),
        len(numbers),
        float((beyond > WELL * (most - least)).mean()),
        bool(((numbers >= lowest - MARGIN) & (numbers <= highest + MARGIN)).all()),
        bool(((numbers >= 0) & (numbers <= 1)).all()),
    )
