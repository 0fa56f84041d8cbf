"""The rows of external explanations that belong to a cell, checked against its units before any chunk is computed.

One rule for all suites: units that the cell does not explain are excluded and reported; if none is left, that is an error.
A table without a column ``unit`` names its units by the columns that define them (user and item, row, ...). Where it has
both, they must agree: which of them is wrong cannot be known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external import needs_unit
from cfbench_core.lifecycle.tables import CODEC, EXPLANATIONS_FILE, read_units
from cfbench_core.stages import UNITS, TaskContext
from cfbench_core.user_files import read_csv_as_text


def select_rows(context: TaskContext) -> dict[str, Any]:
    """``explanations.parquet``: the rows of the file for this cell and its units. Nothing is cut into chunks yet."""
    path, labels = Path(context.parameters["file"]), context.parameters["labels"]
    table = with_numbers(with_labels(read_table(path), labels), context.parameters["numbers"], path)
    units = context.load(UNITS, read_units)
    if "read_file" in context.task.steps:
        table = context.step("read_file")(context, table, path)
    table = with_units(table, units, context.parameters["unit_key"], path)
    known = table["unit"].isin(units["unit"])
    note = unknown_units(table["unit"][~known].unique().tolist(), table["unit"].nunique(), units, path)
    table[known].to_parquet(context.output / EXPLANATIONS_FILE, index=False, compression=CODEC)
    return {"units": int(table["unit"][known].nunique()), **({"note": note} if note else {})}


def read_table(path: Path) -> pd.DataFrame:
    """A table, Parquet or CSV; in CSV everything is text, since an identifier may be "NA" or "007".

    Raises:
        UserError: when it cannot be read.
    """
    try:
        if path.suffix == ".csv":
            return read_csv_as_text(path)
        return pd.read_parquet(path)
    except (pa.ArrowInvalid, pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as a table: {str(error).splitlines()[0]}") from None


def with_numbers(table: pd.DataFrame, columns: Sequence[str], path: Path) -> pd.DataFrame:
    """The table with some columns as numbers, NaN where nothing is given; a column may be missing.

    Raises:
        UserError: when a value is no number.
    """
    for name in columns:
        if name in table:
            given = table[name]
            numbers = pd.to_numeric(given, errors="coerce")
            wrong = numbers.isna() & given.notna() & ~given.astype(str).str.lower().isin(["", "nan"])
            if wrong.any():
                raise UserError(f"{path}: {name} must be a number, got {given[wrong].iloc[0]!r}")
            table = table.assign(**{name: numbers})
    return table


def with_labels(table: pd.DataFrame, labels: Mapping[str, str | int]) -> pd.DataFrame:
    """The rows of a table that belong to a cell, as far as the table has columns for its labels."""
    for name, value in labels.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    return table


def with_units(table: pd.DataFrame, units: pd.DataFrame, key: Sequence[str], path: Path) -> pd.DataFrame:
    """The table with a column ``unit`` as text; derived from the columns ``key`` where it has none.

    Raises:
        UserError: when it has neither, or both and they disagree about a unit, or the key names several units.
    """
    if "unit" in table:
        table = table.assign(unit=table["unit"].astype(str))
        _check_agreement(table, units, key, path)
        return table
    missing = [name for name in key if name not in table]
    if missing or not key:
        raise UserError(f"{path}: {needs_unit(key, map(str, table))}")
    names = pd.MultiIndex.from_frame(units[list(key)].astype(str))
    if names.has_duplicates:
        raise UserError(f"{path}: {' and '.join(key)} name several units here: add a column unit")
    wanted = pd.MultiIndex.from_frame(table[list(key)].astype(str))
    place = names.get_indexer(wanted)
    described = wanted.map(lambda values: ", ".join(values)).to_numpy(dtype=object)
    return table.assign(
        unit=[units["unit"].iloc[p] if p >= 0 else d for p, d in zip(place, described, strict=True)]
    )


def _check_agreement(table: pd.DataFrame, units: pd.DataFrame, key: Sequence[str], path: Path) -> None:
    """That the columns ``key`` of a table, where they are filled in, are those of the units that it names.

    Raises:
        UserError: when they are not; it names the unit.
    """
    place = pd.Index(units["unit"].astype(str)).get_indexer(pd.Index(table["unit"]))
    for name in key:
        if name not in table:
            continue
        given, expected = _as_text(table[name]), units[name].astype(str).to_numpy()[place]
        wrong = (place >= 0) & (given != "").to_numpy() & (given.to_numpy() != expected)
        if wrong.any():
            row = int(wrong.argmax())
            raise UserError(
                f"{path}: unit {table['unit'].iloc[row]!r} has the {name} {expected[row]!r}, but its column {name} has "
                f"{given.iloc[row]!r}"
            )


def _as_text(column: pd.Series) -> pd.Series:
    """A column as text, "" where nothing is given; numbers that are whole without a decimal point."""
    given = column.notna()
    if column.dtype.kind == "f" and (column[given] % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype(str).where(given, "")


def unknown_units(unknown: Sequence[str], number: int, units: pd.DataFrame, path: Path) -> str:
    """A note on units of a file that are not explained here; "" when all are.

    Args:
        unknown: names of those. number: how many units the file has in all. units: those that are explained.

    Raises:
        UserError: when none of the file's units is explained.
    """
    if not len(unknown):
        return ""
    if len(unknown) == number:
        here = (
            f"units here are called {units['unit'].iloc[0]!r}, {units['unit'].iloc[-1]!r}"
            if len(units)
            else "there is none"
        )
        raise UserError(
            f"{path}: none of its {number:,} units is explained here. Its first is {unknown[0]!r}; {here}"
        )
    return (
        f"{len(unknown):,} of the {number:,} units in {path.name} are not explained here and are excluded, "
        f"for example {unknown[0]!r}"
    )
