"""Reading and writing of the suite's tables: units, explanations (see ``changes.py``), scores."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.changes import apply, changes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import FloatArray

if TYPE_CHECKING:
    import pandas as pd

UNIT = ("unit", "row", "factual_class")
COLUMNS = ("unit", "row", "column", "level", "original", "value", "factual_class", "wanted_class")
"""Of explanations.parquet. All but ``row`` are text; ``level`` may be null."""


def write_explanations(
    folder: Path,
    encoding: Encoding,
    units: pd.DataFrame,
    factuals: FloatArray,
    answers: FloatArray,
    classes: tuple[str, str],
) -> int:
    """Writes ``explanations.parquet``: the changes of each answer. Returns how many answers there are.

    units: B rows with unit, row, factual_class (0 or 1); factuals, answers: (B, d); classes: their names.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    answered = 0
    for place, (unit, row, label) in enumerate(zip(*(units[n].tolist() for n in UNIT), strict=True)):
        changed = changes(encoding, factuals[place], answers[place])
        answered += bool(changed)
        for change in changed:
            line = (unit, row, change.column, change.level, change.original, change.value)
            named = (classes[label], classes[1 - label])
            for name, value in zip(COLUMNS, (*line, *named), strict=True):
                rows[name].append(value)
    schema = pa.schema([(name, pa.int64() if name == "row" else pa.string()) for name in COLUMNS])
    parquet.write_table(pa.table(rows, schema=schema), folder / "explanations.parquet", compression="zstd")
    return answered


def read_answers(
    table: pd.DataFrame, encoding: Encoding, units: Iterable[str], factuals: FloatArray
) -> FloatArray:
    """(B, d) the counterfactuals that a table of explanations describes; NaN for units it does not name."""
    answers = np.full_like(factuals, np.nan)
    by_unit: dict[str, list[tuple[str, Any, Any]]] = {}
    for unit, column, level, value in zip(
        table["unit"], table["column"], table["level"], table["value"], strict=True
    ):
        by_unit.setdefault(unit, []).append((column, level, value))
    for place, unit in enumerate(units):
        if unit in by_unit:
            answers[place] = apply(encoding, factuals[place], by_unit[unit])
    return answers


def read_explanations(path: Path) -> pd.DataFrame:
    """A table of explanations, Parquet or CSV: unit (text), column, level (text or None), value, labels.

    ``row`` may stand in for ``unit``.

    Raises:
        UserError: when the file cannot be read, or lacks a column.
    """
    import pandas as pd
    import pyarrow as pa

    try:
        table = pd.read_csv(path, dtype=str) if path.suffix == ".csv" else pd.read_parquet(path)
    except (pa.ArrowInvalid, pd.errors.ParserError, pd.errors.EmptyDataError, OSError) as error:
        raise UserError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from None
    if "unit" not in table and "row" in table:
        table = table.assign(unit=table["row"])
    lacking = [name for name in ("unit", "column", "value") if name not in table]
    if lacking:
        raise UserError(
            f"{path}: has no column {', '.join(lacking)}; it has {', '.join(map(str, table.columns))}"
        )
    level = table["level"] if "level" in table else [None] * len(table)
    return table.assign(
        unit=[str(unit) for unit in table["unit"]],
        level=pd.Series(
            [None if pd.isna(name) else str(name) for name in level], dtype=object, index=table.index
        ),
    )


def with_labels(table: pd.DataFrame, labels: Mapping[str, str | int]) -> pd.DataFrame:
    """The rows of a table that belong to a cell, as far as the table has columns that tell."""
    for name, value in labels.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    return table


def explainers_in(path: Path) -> list[str]:
    """The distinct names in a file's column explainer, in order of appearance; empty when it has none."""
    if not path.is_file():
        raise UserError(
            f"{path}: no such file (explanations as Parquet or CSV, columns as a run's explanations.parquet)"
        )
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if "explainer" not in (rows.fieldnames or []):
                return []
            return list(dict.fromkeys(row["explainer"] for row in rows))
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            if "explainer" not in file.schema_arrow.names:
                return []
            return list(dict.fromkeys(map(str, file.read(columns=["explainer"])["explainer"].to_pylist())))
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
