"""External explanations at plan time: whose they are and to which cells they belong, without reading all of a table.

Imports no pandas. The rows are read, checked and joined with the units by ``external_rows.py``, in a stage.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest

Combinations = dict[tuple[str, ...], None]

TABLE_FORM = "explanations as Parquet or CSV, columns as in a run's explanations.parquet"


class ExternalTable:
    """The combinations of labels in the rows of a table.

    Attributes:
        known: columns that decide to which cells of a plan a row belongs; a table without one serves all its values.
        needed: columns that every such table has.
        form: what such a table is, for the message about a missing file.
        labels: those of ``known`` that the table has.

    Raises:
        UserError: when the file does not exist, is no table, or lacks a column.
    """

    def __init__(
        self,
        path: Path,
        known: Sequence[str],
        needed: Sequence[str] = (),
        form: str = TABLE_FORM,
    ) -> None:
        self.path, self.known, self.needed, self.form = path, tuple(known), tuple(needed), form
        if not path.is_file():
            raise UserError(f"{path}: no such file ({self.form})")
        self.labels, self._combinations = self.combinations()

    @functools.cached_property
    def digest(self) -> str:
        """The fingerprint of the file."""
        return file_digest(self.path)

    def authors(self, column: str) -> list[str]:
        """The distinct values of a column ("explainer"), in order of appearance; without it, the file's name."""
        if column not in self.labels:
            return [self.path.name.partition(".")[0]]
        place = self.labels.index(column)
        return list(dict.fromkeys(combination[place] for combination in self._combinations))

    def lacks(self, cell: Mapping[str, str | int]) -> str:
        """Why there is nothing in the table for a cell with these labels; empty when there is something.

        A method that answered nothing at all cannot be distinguished from one that was not run.
        """
        wanted = tuple(str(cell[label]) for label in self.labels)
        if not self.labels or wanted in self._combinations:
            return ""
        described = ", ".join(f"{label} {value}" for label, value in zip(self.labels, wanted, strict=True))
        return f"{self.path.name} has no rows for {described}"

    def combinations(self) -> tuple[list[str], Combinations]:
        """The label columns that the file has, and their distinct combinations; a suite may read other formats."""
        return self._of_csv() if self.path.suffix == ".csv" else self._of_parquet()

    def _of_csv(self) -> tuple[list[str], Combinations]:
        try:
            with self.path.open(newline="", encoding="utf-8-sig") as file:
                rows = csv.DictReader(file)
                labels = self._labels(rows.fieldnames or [])
                return labels, dict.fromkeys(tuple(str(row[label]) for label in labels) for row in rows)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{self.path}: cannot be read as a table: {str(error).splitlines()[0]}") from None

    def _of_parquet(self) -> tuple[list[str], Combinations]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(self.path) as file:
                labels = self._labels(file.schema_arrow.names)
                if not labels:
                    return labels, {}
                table = file.read(labels).group_by(labels, use_threads=False).aggregate([])
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{self.path}: not a Parquet file ({str(error).splitlines()[0]})") from None
        return labels, dict.fromkeys(tuple(str(row[label]) for label in labels) for row in table.to_pylist())

    def _labels(self, columns: Iterable[str]) -> list[str]:
        """The label columns that the table has."""
        present = list(columns)
        missing = [column for column in self.needed if column not in present]
        if missing:
            raise UserError(
                f"{self.path}: misses the columns {', '.join(missing)} (has {', '.join(present) or 'none'})"
            )
        return [label for label in self.known if label in present]
