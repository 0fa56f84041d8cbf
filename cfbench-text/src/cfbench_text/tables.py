"""External explanations: a table of texts, joined to the rows of a data set by user, item and time."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_text.reading import csv_rows, json_lines, opened
from cfbench_text.row_store import GROUP

LABELS = ("dataset", "model")
"""Columns that assign a row to cells of the plan; without them it belongs to all cells."""


def rows_of(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a JSON-lines, CSV or Parquet file, with their numbers; never the whole of it at once."""
    if path.suffix == ".parquet":
        yield from enumerate(_rows_of_parquet(path), start=1)
        return
    with opened(path) as file:
        if path.name.lower().removesuffix(".gz").endswith(".csv"):
            yield from csv_rows(path, file)
        else:
            yield from json_lines(path, file)


def _rows_of_parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(GROUP, use_threads=False):
                yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None


def models_in(path: Path) -> list[str]:
    """The distinct names in a file's column model, in order of appearance; empty when it has none."""
    if not path.is_file():
        raise UserError(f"{path}: no such file (texts as JSON lines, CSV or Parquet: user, item, text)")
    return list(dict.fromkeys(str(row["model"]) for _, row in rows_of(path) if row.get("model") is not None))


def read_texts(path: Path, labels: Mapping[str, str | int], units: Units) -> Iterator[tuple[int, str, float]]:
    """The texts of a cell in the order of the file: the place of the row that each explains, the text, and the
    rating that it goes with, NaN if none.

    Args:
        labels: of the cell. units: the rows to explain. Rows of the file name theirs by ``unit``, or by ``user``,
            ``item`` and, where that is not enough, ``time``.

    Raises:
        UserError: the row, and what is wrong: nothing to join by, a row that is not explained, two texts for one.
    """
    seen = np.zeros(len(units), dtype=bool)
    for number, row in rows_of(path):
        if any(row.get(name) is not None and str(row[name]) != str(value) for name, value in labels.items()):
            continue
        where = f"{path}:{number}"
        if "text" not in row:
            raise UserError(f"{where}: has no text; it has {', '.join(map(str, row))}")
        place = _place(where, row, units)
        if seen[place]:
            raise UserError(f"{where}: a second text for {units.names[place]}")
        seen[place] = True
        text, rating = row["text"], row.get("rating")
        missing = text is None or (isinstance(text, float) and math.isnan(text))
        yield place, "" if missing else str(text), _rating(where, rating)


class Units:
    """The rows to explain, found by their names, or by user, item and time. All (N,)."""

    def __init__(
        self, names: Sequence[str], users: Sequence[str], items: Sequence[str], times: Sequence[int]
    ) -> None:
        self.names, self.users, self.items, self.times = names, users, items, times

    def __len__(self) -> int:
        return len(self.names)

    @functools.cached_property
    def by_name(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @functools.cached_property
    def by_pair(self) -> Mapping[tuple[str, str], Sequence[int]]:
        found: dict[tuple[str, str], tuple[int, ...]] = {}
        for place, pair in enumerate(zip(self.users, self.items, strict=True)):
            found[pair] = (*found.get(pair, ()), place)
        return found


def _rating(where: str, rating: Any) -> float:
    try:
        return math.nan if rating is None or rating == "" else float(rating)
    except (TypeError, ValueError):
        raise UserError(f"{where}: rating must be a number, got {str(rating)[:40]!r}") from None


def _place(where: str, row: Mapping[str, Any], units: Units) -> int:
    """The place of the explained row that a row of the file belongs to."""
    found: Sequence[int]
    if row.get("unit") is not None:
        name = str(row["unit"])
        found = [units.by_name[name]] if name in units.by_name else []
    elif row.get("user") is None or row.get("item") is None:
        raise UserError(f"{where}: needs unit, or user and item; it has {', '.join(map(str, row))}")
    else:
        user, item, time = str(row["user"]), str(row["item"]), row.get("time")
        name = f"user {user}, item {item}"
        found = units.by_pair.get((user, item), ())
        if time is not None and time != "":
            name += f", time {time}"
            found = [place for place in found if units.times[place] == _time(where, time)]
    if len(found) != 1:
        why = "is not a row that is explained" if not found else "has several rows: give its time"
        raise UserError(f"{where}: {name} {why}")
    return found[0]


def _time(where: str, time: Any) -> int:
    try:
        return int(time)
    except (TypeError, ValueError):
        raise UserError(f"{where}: time must be a whole number of seconds, got {str(time)[:40]!r}") from None
