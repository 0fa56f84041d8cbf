"""Reading and writing of tables of explanations (see ``feature_changes.py`` for their rows)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.external import ExternalTable
from cfbench_tabular.feature_changes import apply, feature_changes
from cfbench_tabular.table import AnyArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

UNIT = ("unit", "row", "factual_class")
COLUMNS = (
    "unit",
    "row",
    "counterfactual",
    "column",
    "level",
    "original",
    "value",
    "factual_class",
    "wanted_class",
)
"""The columns of explanations.parquet: ``row`` and ``counterfactual`` (from 1) are integers, the others text."""

MOST_COUNTERFACTUALS = 1000
"""Per factual in an external table; a larger number in the column ``counterfactual`` is an error."""


def write_explanations(
    folder: Path,
    encoding: Encoding,
    units: pd.DataFrame,
    factuals: FloatArray,
    counterfactuals: FloatArray,
    classes: tuple[str, str],
) -> int:
    """Writes ``explanations.parquet`` with the changes of each counterfactual; returns how many factuals have one.

    units: B rows with unit, row, factual_class (0 or 1); factuals: (B, d); counterfactuals: (B, n, d); classes: the
    names of class 0 and 1. A counterfactual without changes counts as missing and has no row.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    explained = 0
    for place, (unit, row, label) in enumerate(zip(*(units[n].tolist() for n in UNIT), strict=True)):
        before = len(rows["unit"])
        for number, counterfactual in enumerate(counterfactuals[place], start=1):
            for change in feature_changes(encoding, factuals[place], counterfactual):
                line = (unit, row, number, change.column, change.level, change.original, change.value)
                named = (classes[label], classes[1 - label])
                for name, value in zip(COLUMNS, (*line, *named), strict=True):
                    rows[name].append(value)
        explained += len(rows["unit"]) > before
    schema = pa.schema(
        [(name, pa.int64() if name in ("row", "counterfactual") else pa.string()) for name in COLUMNS]
    )
    parquet.write_table(pa.table(rows, schema=schema), folder / "explanations.parquet", compression="zstd")
    return explained


def read_counterfactuals(
    table: pd.DataFrame, encoding: Encoding, units: Iterable[str], factuals: FloatArray
) -> FloatArray:
    """(B, n, d) the counterfactuals that a table of explanations describes; NaN for missing ones.

    n: the largest number in its column ``counterfactual`` among these units; 1 without that column.
    """
    known = {unit: place for place, unit in enumerate(units)}
    table = table[table["unit"].isin(known)]
    numbers = table["counterfactual"].tolist() if "counterfactual" in table else [1] * len(table)
    by_number: dict[tuple[str, int], list[tuple[str, Any, Any]]] = {}
    fields = (table[name] for name in ("unit", "column", "level", "value"))
    for unit, column, level, value, number in zip(*fields, numbers, strict=True):
        by_number.setdefault((unit, number), []).append((column, level, value))
    counterfactuals = np.full((len(factuals), max(numbers, default=1), factuals.shape[1]), np.nan)
    for (unit, number), changed in by_number.items():
        counterfactuals[known[unit], number - 1] = apply(encoding, factuals[known[unit]], changed)
    return counterfactuals


def read_explanations(
    path: Path, features: Mapping[str, AnyArray], labels: Mapping[str, str | int]
) -> pd.DataFrame:
    """The part of a table of explanations, Parquet or CSV, that belongs to a cell. It has one of two forms.

    Long, with a row for each change: unit, column, value, and optionally counterfactual (from 1, for units with
    several) and level. Wide, with a row for each counterfactual: unit, counterfactual (optional), and a value for
    every feature. ``row`` may replace ``unit``. Other columns (dataset, model, explainer) are returned unchanged.

    Args:
        features: the raw values of the columns of the data set, by name; a unit is an index into them.
        labels: the labels of the cell; a table without a column of such a name applies to all its values.

    Returns:
        the long form: unit (text), counterfactual (int), column, level (text or None), value, and the other columns.

    Raises:
        UserError: if the file cannot be read, lacks a column, or has an invalid unit or counterfactual number.
    """
    import pandas as pd
    import pyarrow as pa

    try:
        table = pd.read_csv(path, dtype=str) if path.suffix == ".csv" else pd.read_parquet(path)
    except (pa.ArrowInvalid, pd.errors.ParserError, pd.errors.EmptyDataError, OSError) as error:
        raise UserError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from None
    table = with_labels(table, labels)
    if "unit" not in table and "row" in table:
        table = table.assign(unit=table["row"])
    lacking = [name for name in ("unit", "column", "value") if name not in table]
    wide = "unit" not in lacking and bool(lacking) and bool(set(features) & set(table.columns))
    if lacking and not wide:
        raise UserError(
            f"{path}: has no column {', '.join(lacking)}; it has {', '.join(map(str, table.columns))}. "
            "It must be unit, column, value, or unit and a column for each feature"
        )
    table = table.assign(unit=_units(path, table["unit"], features), counterfactual=_numbers(path, table))
    if wide:
        return _long(path, table, features)
    level = table["level"] if "level" in table else [None] * len(table)
    names = [None if pd.isna(name) else str(name) for name in level]
    return table.assign(level=pd.Series(names, dtype=object, index=table.index))


def _units(path: Path, given: pd.Series, features: Mapping[str, AnyArray]) -> list[str]:
    """Row numbers as text; 7.0 becomes "7"."""
    import pandas as pd

    rows = len(next(iter(features.values())))
    numbers = pd.to_numeric(given, errors="coerce")
    wrong = given[~(numbers.between(0, rows - 1) & (numbers % 1 == 0))]
    if len(wrong):
        raise UserError(f"{path}: unit {str(wrong.iloc[0])!r} is not a row of the data set (0 to {rows - 1})")
    return [str(int(number)) for number in numbers]


def _numbers(path: Path, table: pd.DataFrame) -> list[int]:
    import pandas as pd

    if "counterfactual" not in table:
        return [1] * len(table)
    numbers = pd.to_numeric(table["counterfactual"], errors="coerce")
    wrong = table["counterfactual"][~(numbers.between(1, MOST_COUNTERFACTUALS) & (numbers % 1 == 0))]
    if len(wrong):
        raise UserError(f"{path}: counterfactual must be 1, 2, 3, ..., got {str(wrong.iloc[0])!r}")
    return [int(number) for number in numbers]


def _long(path: Path, table: pd.DataFrame, features: Mapping[str, AnyArray]) -> pd.DataFrame:
    """Complete counterfactual rows as changes from the rows of the data set; an empty cell means no change."""
    import pandas as pd

    lacking = [name for name in features if name not in table]
    if lacking:
        raise UserError(f"{path}: has complete rows, but no column {', '.join(map(repr, lacking))}")
    duplicates = table[
        ["unit", "counterfactual", *(name for name in ExternalTable.known if name in table)]
    ].duplicated()
    if duplicates.any():
        unit = table["unit"][duplicates].iloc[0]
        raise UserError(f"{path}: two rows for unit {unit!r}: number them in a column 'counterfactual'")
    rows = table["unit"].astype(int).to_numpy()
    others = table.drop(columns=list(features))
    parts = []
    for name, values in features.items():
        given = _as_levels(values, table[name])
        changed = [
            not pd.isna(new) and not _same(old, new) for old, new in zip(values[rows], given, strict=True)
        ]
        parts.append(others[changed].assign(column=name, level=None, value=given[changed].astype(str)))
    return pd.concat(parts, ignore_index=True)


def _as_levels(values: AnyArray, given: pd.Series) -> pd.Series:
    """Cells of a category as the levels of the data set: pandas reads "2" as 2.0 if other cells are empty."""
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


def with_labels(table: pd.DataFrame, labels: Mapping[str, str | int]) -> pd.DataFrame:
    """The rows of a table with the labels of a cell, as far as the table has columns of these labels."""
    for name, value in labels.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    return table
