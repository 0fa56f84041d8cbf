"""The cells of a text file, as text, and their values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.column_types import Format, number_of
from cfbench_tabular.file_rows import EVERY_ROW, FileRows
from cfbench_tabular.number_forms import hint_on
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True)
class Sheet:
    """The cells of a text file, as text.

    Attributes:
        names: the names of the columns.
        rows: the cells of each row, as many as ``names``.
        places: the file and line of each row, ``my.csv:17``.
        file_rows: the position of each row in the file.
    """

    names: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    places: Sequence[str]
    file_rows: FileRows = EVERY_ROW

    @functools.cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The cells of each column, by its name."""
        return dict(zip(self.names, zip(*self.rows, strict=True), strict=True))

    def with_columns(self, columns: Sequence[Sequence[str]]) -> Sheet:
        """The sheet with other cells, given by column."""
        return replace(self, rows=list(zip(*columns, strict=True)))


def numbers(cells: Sequence[str], column: str, places: Sequence[str], form: Format = "number") -> FloatArray:
    """(N,) float64 of text.

    Raises:
        UserError: for the first cell that is not a finite number, a date or a time, with its line.
    """
    if form != "number":
        return _moments(cells, column, places, form)
    read = number_or_nan if "_" in "".join(cells) else float
    try:
        found = np.fromiter(map(read, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        found = np.array([number_or_nan(cell) for cell in cells])
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        raise UserError(
            f"{places[wrong[0]]}: column {column!r}: {cells[wrong[0]]!r} is not a finite number{hint_on(cells[wrong[0]])}"
        )
    return found


def _moments(cells: Sequence[str], column: str, places: Sequence[str], form: Format) -> FloatArray:
    found = np.empty(len(cells))
    for row, cell in enumerate(cells):
        try:
            found[row] = number_of(cell, form)
        except ValueError:
            example = "2026-11-23" if form == "date" else "2026-11-23T12:30:00"
            hint = "; if it counts days or seconds, set epoch" if np.isfinite(number_or_nan(cell)) else ""
            raise UserError(
                f"{places[row]}: column {column!r}: {cell!r} is not a {form} such as {example}{hint}"
            ) from None
    return found


def in_order(levels: Iterable[str]) -> list[str]:
    """Levels sorted by value if all are numbers, else by name."""
    levels = sorted(levels)
    return sorted(levels, key=float) if all(np.isfinite(number_or_nan(level)) for level in levels) else levels


def number_or_nan(cell: str) -> float:
    """The number that a cell holds; NaN for other text, also for 2024_10, which Python reads as 202410."""
    try:
        return float(cell) if "_" not in cell else float("nan")
    except ValueError:
        return float("nan")
