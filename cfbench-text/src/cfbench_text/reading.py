"""Reads reviews from JSON lines or CSV, gzipped or not. Errors name the file and the line."""

from __future__ import annotations

import csv
import io
import json
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.user_files import find_column, need_column, unpacked
from cfbench_text.field_checks import finite_number, identifier, review_text, seconds
from cfbench_text.reviews import Reviews, array_of_text

USUAL: Mapping[str, tuple[str, ...]] = {
    "user": ("reviewerID", "user_id", "user", "userId", "uid"),
    "item": ("asin", "parent_asin", "item_id", "item", "itemId", "iid"),
    "text": ("reviewText", "text", "review", "review_text", "body"),
    "rating": ("overall", "rating", "stars", "score"),
    "time": ("unixReviewTime", "timestamp", "time", "unix_time"),
}
"""What the columns of review files are called; the first that is there counts."""

NEEDED = ("user", "item", "text")


def read_reviews(path: Path, name: str, domain: str, columns: Mapping[str, str | None]) -> Reviews:
    """The reviews of a file; those without a user, an item or a text field are left out and counted.

    Args:
        columns: what "user", "item", "text", "rating", "time" are called in it; None: by their usual names.

    Raises:
        UserError: file, line, and what is wrong: no JSON, a column that no line has, a rating that is no number.
    """
    names = _names(path, columns)
    columns_read: dict[str, list[Any]] = {key: [] for key in USUAL}
    dropped = 0
    for line, row in _rows(path):
        values = {key: None if column is None else row.get(column) for key, column in names.items()}
        if any(values[key] is None or (key != "text" and values[key] == "") for key in NEEDED):
            dropped += 1
            continue
        where = f"{path}:{line}"
        for key in ("user", "item"):
            columns_read[key].append(identifier(where, key, values[key]))
        columns_read["text"].append(review_text(where, values["text"]))
        columns_read["rating"].append(finite_number(where, str(names["rating"]), values["rating"]))
        columns_read["time"].append(seconds(where, str(names["time"]), values["time"]))
    if dropped:
        total = dropped + len(columns_read["user"])
        message = f"{path.name}: {dropped:,} of {total:,} reviews are left out, without user, item or text"
        warnings.warn(message, ResultWarning, stacklevel=2)
    return Reviews(
        name,
        domain,
        array_of_text(columns_read["user"]),
        array_of_text(columns_read["item"]),
        np.asarray(columns_read["rating"], dtype=np.float64),
        np.asarray(columns_read["time"], dtype=np.int64),
        array_of_text(columns_read["text"]),
        about={"dropped": {"without user, item or text": dropped}},
    )


def _names(path: Path, given: Mapping[str, str | None]) -> dict[str, str | None]:
    """What a file calls "user", "item" and so on; None where it may be missing and is.

    A JSON line may leave out what it does not know, so further lines are read until everything was found.
    """
    there: dict[str, None] = {}
    for _, row in _rows(path):
        there.update(dict.fromkeys(map(str, row)))
        if all(_is_there(there, given.get(key), key) for key in USUAL) or not _has_json_lines(path):
            break
    if not there:
        raise UserError(f"{path}: holds no reviews")
    return {
        key: (need_column if key in NEEDED else find_column)(there, path, given.get(key), USUAL[key], key)
        for key in USUAL
    }


def _is_there(names: Collection[str], given: str | None, key: str) -> bool:
    usual = (name.lower() for name in USUAL[key])
    return given in names if given is not None else not {*usual}.isdisjoint(map(str.lower, names))


def _has_json_lines(path: Path) -> bool:
    return Path(path.name.lower().removesuffix(".gz")).suffix not in (".csv", ".tsv")


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a file with their line numbers."""
    with opened(path) as file:
        yield from json_lines(path, file) if _has_json_lines(path) else csv_rows(path, file)


def json_lines(path: Path, file: IO[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Objects, one a line; blank lines are passed over.

    Raises:
        UserError: with the number of a line that holds no object.
    """
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: is not JSON ({error})") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: must be an object, one a line, got {line.strip()[:40]!r}")
        yield number, row


def csv_rows(path: Path, file: IO[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows under the names of the first line, with their line numbers."""
    csv.field_size_limit(sys.maxsize)  # a review may be longer than the module's 131,072 characters
    delimiter = "\t" if ".tsv" in path.name.lower() else ","
    reader = csv.DictReader(
        file, delimiter=delimiter
    )  # more fields than names: under None, for "" may be a name
    try:
        for row in reader:
            if None in row:
                raise UserError(f"{path}:{reader.line_num}: has more fields than the first line names")
            yield reader.line_num, row
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: {error}") from None


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """A text file, gzipped or not, read as UTF-8.

    Raises:
        UserError: if it cannot be read.
    """
    try:
        with unpacked(path) as binary:
            yield io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
