"""Parquet files that are read by rows: memory use does not grow with the size of the file.

A file has a column ``row`` with ascending numbers and is written in row groups. The footer stores the lowest and the
highest number of each group, so that other groups are skipped. A file is open only while it is read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_text.reviews import IntArray
from cfbench_text.triplets import Triplet

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

GROUP = 2_000
"""Rows that are written, and at most read, together."""
KINDS = {"row": "int64", "time": "int64", "part": "int64", "group": "int64", "rating": "float64"}
"""Types of columns that do not hold text."""
FAILURES_FILE = "failures.parquet"
"""The rows (or units) whose extraction failed, with the reason."""
STATEMENT = ("statement", "topic", "sentiment")


class RowStore:
    """``source``: a Parquet file, or the bytes of one."""

    def __init__(self, source: Path | bytes) -> None:
        self._source = source

    def __len__(self) -> int:
        with self._opened() as file:
            return int(file.metadata.num_rows)

    def batches(self, columns: Sequence[str], rows: IntArray | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of the file in its order, or those whose numbers are among ``rows`` (ascending)."""
        import pyarrow as pa

        with self._opened() as file:
            groups = [n for n in range(file.num_row_groups) if rows is None or _meets(file.metadata, n, rows)]
            wanted = list(columns) if rows is None else list(dict.fromkeys([*columns, "row"]))
            for batch in file.iter_batches(GROUP, row_groups=groups, columns=wanted, use_threads=False):
                if rows is None:
                    yield batch
                    continue
                found = _among(batch.column("row").to_numpy(), rows)
                if found.any():
                    yield batch.filter(pa.array(found)).select(list(columns))

    def column(self, name: str, rows: IntArray | None = None) -> Any:
        """One column as an array of numbers, or of Python strings."""
        numbers = KINDS.get(name)
        parts = [batch.column(name).to_numpy(zero_copy_only=False) for batch in self.batches([name], rows)]
        return np.concatenate([np.empty(0, dtype=numbers or object), *parts])

    def span(self, start: int, stop: int | None) -> pa.Table:
        """The rows at these places."""
        import pyarrow as pa

        with self._opened() as file:
            sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
            ends = np.cumsum([0, *sizes])
            stop = int(ends[-1]) if stop is None else stop
            groups = [n for n in range(len(sizes)) if ends[n] < stop and ends[n + 1] > start]
            if not groups:
                return pa.Table.from_batches([], file.schema_arrow)
            return file.read_row_groups(groups, use_threads=False).slice(
                start - int(ends[groups[0]]), stop - start
            )

    def triplets(self, rows: IntArray | None = None) -> Iterator[tuple[Any, Triplet]]:
        """The statements of a file of statements, each with the row that it belongs to."""
        known: dict[str, str] = {}  # there are few topics and sentiments: one string for each
        for batch in self.batches(("row", *STATEMENT), rows):
            row, statement, *labels = (batch.column(name).to_pylist() for name in ("row", *STATEMENT))
            topics, sentiments = ([known.setdefault(name, name) for name in names] for names in labels)
            for number, *of_one in zip(row, statement, topics, sentiments, strict=True):
                yield number, Triplet(*of_one)

    def triplets_by_row(self, rows: IntArray | None = None) -> dict[Any, tuple[Triplet, ...]]:
        """The statements of each row that has some."""
        found: dict[Any, list[Triplet]] = {}
        for row, triplet in self.triplets(rows):
            found.setdefault(row, []).append(triplet)
        return {row: tuple(of_row) for row, of_row in found.items()}

    @contextmanager
    def _opened(self) -> Iterator[parquet.ParquetFile]:
        from pyarrow import parquet

        source = io.BytesIO(self._source) if isinstance(self._source, bytes) else self._source
        with parquet.ParquetFile(source) as file:
            yield file


def _meets(metadata: Any, group: int, rows: IntArray) -> bool:
    """Whether a group may hold some of these numbers."""
    found = metadata.row_group(group)
    place = next(n for n in range(found.num_columns) if found.column(n).path_in_schema == "row")
    bounds = found.column(place).statistics
    if bounds is None or not bounds.has_min_max:
        return True
    return bool(np.searchsorted(rows, bounds.min) < np.searchsorted(rows, bounds.max, side="right"))


def _among(numbers: IntArray, rows: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of ``numbers`` are in ``rows`` (ascending)."""
    if not len(rows):
        return np.zeros(len(numbers), dtype=bool)
    places = np.searchsorted(rows, numbers).clip(max=len(rows) - 1)
    return np.asarray(rows[places] == numbers)


class RowWriter:
    """Writes a Parquet file part by part, for ``with``; the columns are those of ``columns``, text but for KINDS.

    text: columns of these names hold text, overriding ``KINDS``.
    """

    def __init__(self, to: Path | io.BytesIO, columns: Sequence[str], text: Sequence[str] = ()) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        kinds = {name: "string" if name in text else KINDS.get(name, "string") for name in columns}
        self._schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in kinds.items()])
        self._file = parquet.ParquetWriter(to, self._schema, compression="zstd")

    def write(self, columns: Mapping[str, Any]) -> None:
        """Rows, as one group, or several if they are many; nothing for none."""
        import pyarrow as pa

        arrays = [_array(columns[field.name], field.type) for field in self._schema]
        if len(arrays[0]):
            self._file.write_table(pa.table(arrays, schema=self._schema), row_group_size=GROUP)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _array(values: Any, kind: Any) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, kind, from_pandas=True)
    except UnicodeEncodeError:
        return pa.array([whole(value) for value in values], kind)


def whole(text: str) -> str:
    """The text with U+FFFD where half a character stands alone, as in JSON that was cut; no file can hold a half."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def read_failures(folder: Path) -> dict[Any, str]:
    """Reasons by row, of an artifact with statements."""
    store = RowStore(folder / FAILURES_FILE)
    rows = [row for batch in store.batches(["row"]) for row in batch.column("row").to_pylist()]
    return dict(zip(rows, store.column("reason").tolist(), strict=True))


class StatementWriter:
    """Writes ``statements.parquet`` part by part: row, statement, topic, sentiment. ``named``: rows are names."""

    def __init__(self, to: Path | io.BytesIO, named: bool = False) -> None:
        self._writer = RowWriter(to, ("row", *STATEMENT), text=("row",) if named else ())

    def write(self, rows: Sequence[Any], triplets: Sequence[Sequence[Triplet]]) -> None:
        flat = [(row, t) for row, of_row in zip(rows, triplets, strict=True) for t in of_row]
        columns = {name: [getattr(t, name) for _, t in flat] for name in STATEMENT}
        self._writer.write({"row": [row for row, _ in flat], **columns})

    def __enter__(self) -> StatementWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self._writer.__exit__(*error)
