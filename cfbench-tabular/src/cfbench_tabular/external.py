"""A table of explanations made elsewhere: whose they are and for which cells, told before anything is computed.

Imports no pandas: this is part of planning.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest

LABELS = ("dataset", "model", "explainer")
"""Columns that may tell to which cells of a plan a row belongs; a table without one serves all its values."""


class ExternalTable:
    """Which combinations of labels the rows of a table bear.

    Raises:
        UserError: when the file is not there, or is no table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise UserError(
                f"{path}: no such file (explanations as Parquet or CSV, columns as a run's explanations.parquet, "
                "or whole rows)"
            )
        self.digest = file_digest(path)
        self.labels, self._combinations = _of_csv(path) if path.suffix == ".csv" else _of_parquet(path)

    def explainers(self) -> list[str]:
        """The distinct values of the column explainer, in order of appearance; without it, the file's name."""
        if "explainer" not in self.labels:
            return [self.path.stem]
        place = self.labels.index("explainer")
        return list(dict.fromkeys(combination[place] for combination in self._combinations))

    def lacks(self, cell: Mapping[str, str | int]) -> str:
        """Why there is nothing in the table for a cell with these labels; empty when there is something.

        A method that answered nothing at all cannot be told from one that was not asked.
        """
        wanted = tuple(str(cell[label]) for label in self.labels)
        if not self.labels or wanted in self._combinations:
            return ""
        described = ", ".join(f"{label} {value}" for label, value in zip(self.labels, wanted, strict=True))
        return f"{self.path.name} has no rows for {described}"


Combinations = dict[tuple[str, ...], None]


def _of_csv(path: Path) -> tuple[list[str], Combinations]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            labels = [label for label in LABELS if label in (rows.fieldnames or [])]
            return labels, dict.fromkeys(tuple(str(row[label]) for label in labels) for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as a table: {str(error).splitlines()[0]}") from None


def _of_parquet(path: Path) -> tuple[list[str], Combinations]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            labels = [label for label in LABELS if label in file.schema_arrow.names]
            if not labels:
                return labels, {}
            table = file.read(labels).group_by(labels, use_threads=False).aggregate([])
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    return labels, dict.fromkeys(tuple(str(row[label]) for label in labels) for row in table.to_pylist())
