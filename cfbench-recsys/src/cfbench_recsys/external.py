"""A table of explanations made elsewhere: whose they are and of what kind, told before anything is computed.

Imports no pandas: this is part of planning.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfbench_core.errors import UserError

NEEDED = ("unit", "edge_user", "edge_item", "op")
"""The columns that every such table has."""

LABELS = ("dataset", "model", "explainer", "level", "format", "scope", "edit", "k")
"""Columns that may say to which cells of a plan a row belongs; a table without one serves all its values."""


class ExternalTable:
    """Which combinations of labels the rows of a table bear.

    Raises:
        UserError: when the file is not there, or is no table, or lacks a column.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise UserError(
                f"{path}: no such file (explanations as Parquet or CSV, columns as a run's explanations.parquet)"
            )
        self.labels, self._combinations = _of_csv(path) if path.suffix == ".csv" else _of_parquet(path)

    def explainers(self) -> list[str]:
        """The distinct values of the column explainer, in order of appearance; without it, the file's name."""
        if "explainer" not in self.labels:
            return [self.path.stem]
        place = self.labels.index("explainer")
        return list(dict.fromkeys(combination[place] for combination in self._combinations))

    def lacks(self, cell: Mapping[str, Any]) -> str:
        """Why there is nothing in the table for a cell with these labels; empty when there is something.

        A method that answered nothing at all cannot be told from one that was not asked.
        """
        wanted = tuple(str(cell[label]) for label in self.labels)
        if not self.labels or wanted in self._combinations:
            return ""
        described = ", ".join(f"{label} {value}" for label, value in zip(self.labels, wanted, strict=True))
        return f"{self.path.name} has no rows for {described}"


def _of_csv(path: Path) -> tuple[list[str], dict[tuple[str, ...], None]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            labels = _labels(path, rows.fieldnames or [])
            return labels, dict.fromkeys(tuple(str(row[label]) for label in labels) for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as a table: {str(error).splitlines()[0]}") from None


def _of_parquet(path: Path) -> tuple[list[str], dict[tuple[str, ...], None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            labels = _labels(path, file.schema_arrow.names)
            if not labels:
                return labels, {}
            table = file.read(labels).group_by(labels, use_threads=False).aggregate([])
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    return labels, dict.fromkeys(tuple(str(row[label]) for label in labels) for row in table.to_pylist())


def _labels(path: Path, columns: Iterable[str]) -> list[str]:
    """The label columns that the table has."""
    present: Sequence[str] = list(columns)
    missing = [column for column in NEEDED if column not in present]
    if missing:
        raise UserError(
            f"{path}: misses the columns {', '.join(missing)} (has {', '.join(present) or 'none'})"
        )
    return [label for label in LABELS if label in present]
