"""Explanations made elsewhere: a table of texts, joined to the rows of a data set by user, item and time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfbench_core.errors import UserError
from cfbench_text.reading import csv_rows, json_lines, opened

LABELS = ("dataset", "model")
"""Columns that tell to which cells of a plan a row belongs; without one it belongs to all."""


def rows_of(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a JSON-lines, CSV or Parquet file, with their numbers."""
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        try:
            table = parquet.read_table(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
        yield from enumerate(table.to_pylist(), start=1)
        return
    with opened(path) as file:
        if path.name.lower().removesuffix(".gz").endswith(".csv"):
            yield from csv_rows(path, file)
        else:
            yield from json_lines(path, file)


def models_in(path: Path) -> list[str]:
    """The distinct names in a file's column model, in order of appearance; empty when it has none."""
    if not path.is_file():
        raise UserError(f"{path}: no such file (texts as JSON lines, CSV or Parquet: user, item, text)")
    return list(dict.fromkeys(str(row["model"]) for _, row in rows_of(path) if row.get("model") is not None))


def read_texts(
    path: Path, labels: Mapping[str, str | int], units: Sequence[tuple[str, str, str, int]]
) -> dict[str, tuple[str, float]]:
    """The texts of a cell, by unit, each with the rating that it goes with, NaN if none.

    Args:
        labels: of the cell. units: (unit, user, item, time) of the rows to explain. Rows of the file name
            theirs by ``unit``, or by ``user``, ``item`` and, where that is not enough, ``time``.

    Raises:
        UserError: the row, and what is wrong: nothing to join by, a row that is not explained, two texts for one.
    """
    by_unit = {unit: unit for unit, *_ in units}
    by_time = {(user, item, time): unit for unit, user, item, time in units}
    by_pair: dict[tuple[str, str], list[str]] = {}
    for unit, user, item, _ in units:
        by_pair.setdefault((user, item), []).append(unit)
    found: dict[str, tuple[str, float]] = {}
    for number, row in rows_of(path):
        if any(row.get(name) is not None and str(row[name]) != str(value) for name, value in labels.items()):
            continue
        where = f"{path}:{number}"
        if "text" not in row:
            raise UserError(f"{where}: has no text; it has {', '.join(map(str, row))}")
        unit = _unit(where, row, by_unit, by_time, by_pair)
        if unit in found:
            raise UserError(f"{where}: a second text for {unit}")
        text, rating = row["text"], row.get("rating")
        missing = text is None or (isinstance(text, float) and math.isnan(text))
        found[unit] = ("" if missing else str(text), _rating(where, rating))
    return found


def _rating(where: str, rating: Any) -> float:
    try:
        return math.nan if rating is None or rating == "" else float(rating)
    except (TypeError, ValueError):
        raise UserError(f"{where}: rating must be a number, got {str(rating)[:40]!r}") from None


def _unit(
    where: str,
    row: Mapping[str, Any],
    by_unit: Mapping[str, str],
    by_time: Mapping[tuple[str, str, int], str],
    by_pair: Mapping[tuple[str, str], Sequence[str]],
) -> str:
    """The explained row that a row of the file belongs to."""
    if row.get("unit") is not None:
        told, units = str(row["unit"]), [by_unit[str(row["unit"])]] if str(row["unit"]) in by_unit else []
    elif row.get("user") is None or row.get("item") is None:
        raise UserError(f"{where}: needs unit, or user and item; it has {', '.join(map(str, row))}")
    else:
        user, item, time = str(row["user"]), str(row["item"]), row.get("time")
        told = f"user {user}, item {item}"
        if time is None or time == "":
            units = list(by_pair.get((user, item), ()))
        else:
            told += f", time {time}"
            known = by_time.get((user, item, int(time)))
            units = [] if known is None else [known]
    if len(units) != 1:
        why = "is not a row that is explained" if not units else "has several rows: give its time"
        raise UserError(f"{where}: {told} {why}")
    return units[0]
