"""External texts in JSON lines, CSV or Parquet: whose they are, and which rows they explain. Nothing is read as a whole."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external import Combinations, ExternalTable
from cfbench_text.field_checks import finite_number, review_text, seconds

GROUP = 2_000
"""Rows of a Parquet file that are read together."""


class TextTable(ExternalTable):
    """The combinations of dataset and model in the rows of a file.

    Raises:
        UserError: when the file does not exist, or one of its rows cannot be read; names the row.
    """

    def __init__(self, path: Path, known: Sequence[str]) -> None:
        super().__init__(path, known, form="texts as JSON lines, CSV or Parquet: user, item, text")

    def combinations(self) -> tuple[list[str], Combinations]:
        labels: list[str] | None = None
        found: Combinations = {}
        for number, row in rows_of(self.path):
            if labels is None:
                labels = [name for name in self.known if row.get(name) is not None]
            missing = [name for name in labels if row.get(name) is None]
            if missing:
                raise UserError(f"{self.path}:{number}: has no {missing[0]}, which the first row has")
            where = f"{self.path}:{number}"
            _text_of(where, row)
            _rating_of(where, row)
            found[tuple(str(row[name]) for name in labels)] = None
        return labels or [], found


def rows_of(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a JSON-lines, CSV or Parquet file, with their numbers; never the whole of it at once."""
    from cfbench_text.reading import csv_rows, json_lines, opened

    if path.suffix == ".parquet":
        yield from enumerate(_rows_of_parquet(path), start=1)
        return
    with opened(path) as file:
        if path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
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


class Places:
    """Finds the unit that a row explains: by its name, or by user, item and, where that is not enough, time. All (N,)."""

    def __init__(
        self, names: Sequence[str], users: Sequence[str], items: Sequence[str], times: Sequence[int]
    ) -> None:
        self.names, self.users, self.items, self.times = names, users, items, times

    @functools.cached_property
    def _by_name(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @functools.cached_property
    def _by_pair(self) -> Mapping[tuple[str, str], Sequence[int]]:
        found: dict[tuple[str, str], tuple[int, ...]] = {}
        for place, pair in enumerate(zip(self.users, self.items, strict=True)):
            found[pair] = (*found.get(pair, ()), place)
        return found

    def of(self, where: str, row: Mapping[str, Any]) -> tuple[int | None, str]:
        """The place of the unit, None if it is not explained, and what the row calls it.

        Raises:
            UserError: when the row names no unit, or several.
        """
        if row.get("unit") is not None:
            name = str(row["unit"])
            return self._by_name.get(name), name
        if row.get("user") is None or row.get("item") is None:
            raise UserError(f"{where}: needs unit, or user and item; it has {', '.join(map(str, row))}")
        user, item, time = str(row["user"]), str(row["item"]), row.get("time")
        name = f"user {user}, item {item}"
        found = self._by_pair.get((user, item), ())
        if time is not None and time != "":
            name += f", time {time}"
            second = seconds(where, "time", time)
            found = [place for place in found if self.times[place] == second]
        if len(found) > 1:
            raise UserError(f"{where}: {name} has several rows: give its time")
        return (found[0] if found else None), name


def texts_of(
    path: Path, labels: Mapping[str, str | int], places: Places, unknown: dict[str, None]
) -> Iterator[tuple[str, str, float]]:
    """The texts of a cell: unit, text, rating. What names no unit of the cell goes to ``unknown``.

    Raises:
        UserError: the row, and what is wrong: no text, nothing to join by, two texts for one unit.
    """
    seen = bytearray(len(places.names))  # whether a unit has a text
    for line, row in rows_of(path):
        if any(row.get(name) is not None and str(row[name]) != str(value) for name, value in labels.items()):
            continue
        where = f"{path}:{line}"
        place, name = places.of(where, row)
        text, rating = _text_of(where, row), _rating_of(where, row)
        if place is None:
            unknown[name] = None
            continue
        if seen[place]:
            raise UserError(f"{where}: a second text for {places.names[place]}")
        seen[place] = 1
        yield places.names[place], text, rating


def _text_of(where: str, row: Mapping[str, Any]) -> str:
    """The text of a row.

    Raises:
        UserError: if it has none. Null is refused: nobody can say whether it stands for a failure or an empty text.
    """
    if "text" not in row:
        raise UserError(f"{where}: has no text; it has {', '.join(map(str, row))}")
    text = row["text"]
    if text is None or (isinstance(text, float) and math.isnan(text)):
        raise UserError(f'{where}: its text is null: leave the row out, or give "" for an empty text')
    return review_text(where, text)


def _rating_of(where: str, row: Mapping[str, Any]) -> float:
    """The rating that goes with a text, NaN if none.

    Raises:
        UserError: if it is no finite number.
    """
    return finite_number(where, "rating", row.get("rating"))
