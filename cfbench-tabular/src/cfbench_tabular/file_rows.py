"""The rows of a file that a table has: each keeps its position in the file, also where rows before it were dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

EMPTY = "it is empty"
"""Why a row without any cell is dropped."""
MOST_NAMED = 3
"""Missing columns that the reason names."""


@dataclass(frozen=True)
class FileRows:
    """The positions in the file, from 0, of the N rows of a table. An index is a position in the arrays of the table.

    Attributes:
        positions: (N,) ascending; None: no row was dropped, so that each index is the position in the file.
        dropped: why rows of the file are not in the table, by their positions.
    """

    positions: IntArray | None = None
    dropped: Mapping[int, str] = field(default_factory=dict)

    @staticmethod
    def without(dropped: Mapping[int, str], rows: int) -> FileRows:
        """The rows of a file of ``rows`` rows without those that are dropped."""
        if not dropped:
            return FileRows()
        return FileRows(np.setdiff1d(np.arange(rows), np.fromiter(dropped, dtype=np.int64)), dict(dropped))

    @staticmethod
    def of_files(files: Sequence[tuple[FileRows, int]]) -> FileRows:
        """The rows of several files, one after another; each with the number of its rows in the table."""
        dropped: dict[int, str] = {}
        start = 0
        for own, rows in files:
            dropped.update({start + row: reason for row, reason in own.dropped.items()})
            start += rows + len(own.dropped)
        return FileRows.without(dropped, start)

    def in_file(self, indices: Any) -> IntArray:
        """The positions in the file of rows of the table."""
        found: IntArray = np.asarray(indices, dtype=np.int64)
        return found if self.positions is None else self.positions[found]

    def indices(self, rows: Any) -> IntArray:
        """The indices of rows of the file, which must be in the table."""
        found: IntArray = np.asarray(rows, dtype=np.int64)
        return found if self.positions is None else np.searchsorted(self.positions, found)

    def drop(self, reasons: Mapping[int, str], rows: int) -> FileRows:
        """Without further rows, by their indices, of the ``rows`` rows of the table."""
        further = {int(self.in_file(index)): reason for index, reason in reasons.items()}
        return FileRows.without({**self.dropped, **further}, rows + len(self.dropped))


EVERY_ROW = FileRows()
"""That no row of the file was dropped."""


def reason_of(columns: Sequence[str]) -> str:
    """Why a row without values in ``columns`` is dropped."""
    names = [repr(name) for name in columns[:MOST_NAMED]]
    if len(columns) > MOST_NAMED:
        names.append(f"{len(columns) - MOST_NAMED} more columns")
    if len(names) == 1:
        return f"its {names[0]} is missing"
    return f"its {', '.join(names[:-1])} and {names[-1]} are missing"
