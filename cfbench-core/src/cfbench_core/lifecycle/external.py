"""External explanations at plan time: whose they are and to which cells they belong, without reading all of a table.

Imports no pandas. The rows are read, checked and joined with the units by ``external_rows.py``, in a stage.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.plain_text import one_line

if TYPE_CHECKING:
    import pyarrow as pa

Combinations = dict[tuple[str, ...], None]

NUMBERS = ("a finite number",)
"""The values of a column of numbers."""
TABLE_FORM = "explanations as Parquet or CSV, columns as in a run's explanations.parquet"


class ExternalTable:
    """The combinations of labels in the rows of a table.

    Attributes:
        known: columns that decide to which cells of a plan a row belongs; a table without one serves all its values.
        needed: columns that every such table has.
        form: what such a table is, for the message about a missing file.
        values: columns whose cells are empty or one of these words; of ``NUMBERS``, a finite number.
        labels: those of ``known`` that the table has.
        columns: all that the table has; None where a suite reads another format.

    Raises:
        UserError: when the file does not exist, is no table, lacks a column, or holds another value; names the row.
    """

    columns: tuple[str, ...] | None = None

    def __init__(
        self,
        path: Path,
        known: Sequence[str],
        needed: Sequence[str] = (),
        form: str = TABLE_FORM,
        values: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.path, self.known, self.needed, self.form = path, tuple(known), tuple(needed), form
        self.values = values or {}
        if not path.is_file():
            raise UserError(f"{path}: no such file ({self.form})")
        self.labels, self._combinations = self.combinations()

    @functools.cached_property
    def digest(self) -> str:
        """The fingerprint of the file."""
        return file_digest(self.path)

    def authors(self, column: str) -> list[str]:
        """The distinct values of a column ("explainer"), in order of appearance; without it, the file's name.

        Raises:
            UserError: if rows have no value there: a row of a table must have a name.
        """
        if column not in self.labels:
            return [self.path.name.partition(".")[0]]
        place = self.labels.index(column)
        names = list(dict.fromkeys(combination[place] for combination in self._combinations))
        if "" in names:
            raise UserError(
                f"{self.path}: rows without {column}: fill the column in, or leave it out for the name of the file"
            )
        return names

    def check_unit(self, key: Sequence[str]) -> None:
        """Refuses a table that cannot name a unit: without a column ``unit`` and any column of ``key``.

        A table with some columns of the key may still have what cells with a shorter key need.

        Raises:
            UserError: says what is needed and what the table has.
        """
        if self.columns is not None and not {"unit", *key} & {*self.columns}:
            raise UserError(f"{self.path}: {needs_unit(key, self.columns)}")

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
                checked = [column for column in self.values if column in (rows.fieldnames or [])]
                found: Combinations = {}
                for row in rows:
                    for column in checked:
                        self._check(column, row[column], f"{self.path}:{rows.line_num}")
                    found[tuple(row[label] or "" for label in labels)] = None
                return labels, found
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{self.path}: cannot be read as a table: {str(error).splitlines()[0]}") from None

    def _of_parquet(self) -> tuple[list[str], Combinations]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(self.path) as file:
                labels = self._labels(file.schema_arrow.names)
                for column in [name for name in self.values if name in file.schema_arrow.names]:
                    self._check_distinct(column, file.read([column]).column(0))
                if not labels:
                    return labels, {}
                table = file.read(labels).group_by(labels, use_threads=False).aggregate([])
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{self.path}: not a Parquet file ({str(error).splitlines()[0]})") from None
        texts = (
            tuple("" if row[label] is None else str(row[label]) for label in labels)
            for row in table.to_pylist()
        )
        return labels, dict.fromkeys(texts)

    def _check_distinct(self, column: str, values: pa.ChunkedArray) -> None:
        """Checks each distinct value once; of a column of numbers only infinity can be wrong."""
        import pyarrow as pa
        from pyarrow import compute

        suspicious = values.filter(compute.is_inf(values)) if pa.types.is_floating(values.type) else values
        for value in suspicious.unique().to_pylist():
            row = compute.index(values, pa.scalar(value, values.type)).as_py() + 1
            self._check(column, value, f"{self.path}: row {row:,}")

    def _check(self, column: str, value: object, where: str) -> None:
        allowed = self.values[column]
        if value in (None, "") or value != value:  # NaN: missing in tables of pandas
            return
        if not (_is_finite(value) if allowed is NUMBERS else value in allowed):
            raise UserError(
                f"{where}: {column} must be {' or '.join(allowed)}, got {one_line(str(value), 40)!r}"
            )

    def _labels(self, columns: Iterable[str]) -> list[str]:
        """The label columns that the table has."""
        self.columns = present = tuple(columns)
        missing = [column for column in self.needed if column not in present]
        if missing:
            raise UserError(
                f"{self.path}: misses the columns {', '.join(missing)} (has {', '.join(present) or 'none'})"
            )
        return [label for label in self.known if label in present]


def needs_unit(key: Sequence[str], columns: Iterable[str]) -> str:
    """ "needs a column unit, or user and item (has importance)": for a table whose rows do not name their units."""
    instead = f", or {' and '.join(key)}" if key else ""
    return f"needs a column unit{instead} (has {', '.join(columns) or 'none'})"


def _is_finite(value: object) -> bool:
    try:
        return math.isfinite(float(str(value)))
    except ValueError:
        return False
