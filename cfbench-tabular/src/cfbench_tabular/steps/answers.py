"""Counterfactuals as rows of the contract's table (see ``feature_changes.py``), and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.stages import TaskContext
from cfbench_tabular.column_types import text_of_number
from cfbench_tabular.external_originals import check_originals
from cfbench_tabular.external_rows import long_rows
from cfbench_tabular.external_units import in_declared_units, warn_of_scaled
from cfbench_tabular.feature_changes import apply, feature_changes
from cfbench_tabular.steps.chunks import Chunk
from cfbench_tabular.steps.data import load_data
from cfbench_tabular.table import AnyArray, BoolArray, Column, FloatArray, Table

COLUMNS = {
    "unit": "string",
    "row": "int64",
    "counterfactual": "int64",
    "column": "string",
    "level": "string",
    "original": "string",
    "value": "string",
    "imputed": "bool",
    "factual_class": "string",
    "wanted_class": "string",
}
"""The columns of explanations.parquet with their types.

``counterfactual`` counts from 1. ``imputed``: the original value was missing in the file and is filled in.
"""


def to_rows(chunk: Chunk, answers: FloatArray) -> pd.DataFrame:
    """A row for each change of each counterfactual (B, n, d); one without changes counts as missing and has no row."""
    encoding, classes = chunk.data.encoding, chunk.data.predictions
    units = zip(*(chunk.units[name].tolist() for name in ("unit", "row", "factual_class")), strict=True)
    imputed = chunk.data.table.imputed_columns(chunk.units["row"].to_numpy())
    rows = [
        (
            *(unit, row, number, c.column, c.level, c.original, c.value, c.column in filled),
            *(classes[label], classes[1 - label]),
        )
        for (unit, row, label), filled, factual, found in zip(
            units, imputed, chunk.factuals.vectors, answers, strict=True
        )
        for number, counterfactual in enumerate(found, start=1)
        for c in feature_changes(encoding, factual, counterfactual)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def from_rows(chunk: Chunk, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
    """(B, n, d) counterfactuals, NaN for missing ones; every unit has an answer, since "none found" is one.

    n: the largest number in the column ``counterfactual`` among these units; 1 without that column.
    """
    known = {unit: place for place, unit in enumerate(chunk.factuals.units)}
    rows = rows[rows["unit"].isin(known)]
    numbers = rows["counterfactual"].tolist() if "counterfactual" in rows else [1] * len(rows)
    levels = rows["level"].astype(object).where(rows["level"].notna(), None)
    changes: dict[tuple[int, int], list[tuple[str, Any, Any]]] = {}
    for unit, number, *change in zip(
        rows["unit"], numbers, rows["column"], levels, rows["value"], strict=True
    ):
        changes.setdefault((known[unit], number), []).append((change[0], change[1], change[2]))
    factuals = chunk.factuals.vectors
    found = np.full((len(factuals), max(numbers, default=1), factuals.shape[1]), np.nan)
    for (place, number), changed in changes.items():
        found[place, number - 1] = apply(chunk.data.encoding, factuals[place], changed)
    return found, np.ones(len(found), dtype=bool)


def read_file(context: TaskContext, table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """External explanations as changes, also where the file has complete counterfactual rows."""
    prepared = load_data(context)
    data = prepared.table
    features = {
        column.name: data.values[column.name] if column.format == "number" else _as_text(data, column)
        for column in data.columns
    }
    rows = long_rows(in_declared_units(table, data.columns, path), features, path, data.file_rows)
    check_originals(rows, data, path)
    warn_of_scaled(rows, data, prepared.encoding, path)
    return rows.drop(columns="original")


def _as_text(table: Table, column: Column) -> AnyArray:
    """(N,) the dates or times of a column, as they are written in files."""
    numbers = table.values[column.name].tolist()
    return np.array([text_of_number(number, column.format, column.step) for number in numbers], dtype=object)
