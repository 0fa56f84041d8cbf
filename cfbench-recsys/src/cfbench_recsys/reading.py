"""Reading tables of interactions. An invalid file is reported in one line with the reason and the place.

Text is read as text: an identifier "007" stays what it is. Rows are counted from 1, the header and
empty lines not among them.
"""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.user_files import LONGEST_IDENTIFIER, check_identifier, find_column, need_column, unpacked
from cfbench_recsys.edits import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

USERS = (
    "user",
    "user_id",
    "userid",
    "uid",
    "u",
    "reviewerid",
    "reviewer_id",
    "customer_id",
    "member_id",
    "visitorid",
)
ITEMS = (
    "item", "item_id", "itemid", "iid", "i", "movie", "movie_id", "movieid", "product", "product_id",
    "productid", "parent_asin", "asin", "book_id", "isbn",
    "song_id", "track_id", "artist_id", "anime_id", "business_id",
)  # fmt: skip
RATINGS = ("rating", "ratings", "score", "stars", "overall", "value")
TIMES = ("timestamp", "time", "unixreviewtime", "date", "datetime")
SEPARATORS = ("::", "\t", ",", ";", "|")


def read_table(
    path: Path,
    *,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    known_names: Sequence[str] = (),
    quoted: bool = True,
    fields: Sequence[str] = (),
) -> pd.DataFrame:
    """A table: Parquet, atomic file (``.inter``, ``.item``), JSON lines, or delimited text, gzipped or not.

    Args:
        separator: of delimited text; None: found in the first line.
        header: whether the first line names the columns; None: found out. Without names, columns are "1",
            "2", ...
        known_names: names that make the first line a header; the usual ones are known already.
        quoted: whether quotation marks mean anything.
        fields: of JSON lines, all that is wanted; none: everything.

    Raises:
        UserError: if the file is empty, damaged, or not what its name says.
    """
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind in (".parquet", ".pq"):
        return _read_parquet(path)
    if kind in (".jsonl", ".json", ".ndjson"):
        return _read_json_lines(path, fields)
    text = _text(path, encoding)
    atomic = kind in (".inter", ".item", ".user") and _is_atomic(_first_lines(text, 1)[0])
    separator = "\t" if atomic else separator or _separator(text, path)
    if len(separator) > 1:  # the fast parser knows single characters only
        text, separator = text.replace(separator, "\x1f"), "\x1f"
    rows = [line.split(separator) for line in _first_lines(text, 2)]
    named = atomic if header is None else header
    if header is None and not atomic:
        named = _is_header(rows, (*USERS, *ITEMS, *known_names), path)
    table = _parse(text, separator, named, quoted and not atomic, path)
    if atomic:
        table.columns = [name.partition(":")[0] for name in table.columns]
    return table


def _text(path: Path, encoding: str) -> str:
    """The text of a file, unpacked if it is packed."""
    with unpacked(path) as file:
        raw = file.read()
    try:
        text = raw.decode("utf-8-sig" if encoding.lower().replace("-", "") == "utf8" else encoding)
    except LookupError:
        raise UserError(
            f"{path}: no encoding is called {encoding!r} (try utf-8, latin-1 or cp1252)"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: is not text in {encoding} (byte {error.start:,}); give its encoding (latin-1?)"
        ) from None
    if not text.strip():
        raise UserError(f"{path}: is empty")
    return text


def _first_lines(text: str, count: int) -> list[str]:
    lines = (line for line in io.StringIO(text[: 1 << 20]) if line.strip())
    return [line.rstrip("\r\n") for line, _ in zip(lines, range(count), strict=False)]


def _separator(text: str, path: Path) -> str:
    first = _first_lines(text, 1)[0]
    best = max(SEPARATORS, key=lambda separator: first.count(separator) * len(separator))
    if best not in first:
        listed = ", ".join("tab" if separator == "\t" else separator for separator in SEPARATORS)
        raise UserError(
            f"{path}: its first line {_short(first)} has none of the separators {listed}; name it"
        )
    return best


def _is_atomic(line: str) -> bool:
    """Whether a line is the header of an atomic file: ``user_id:token<tab>rating:float``."""
    return all(re.fullmatch(r"[^:]+:(token|float)(_seq)?", cell) for cell in line.split("\t"))


def _is_header(rows: Sequence[Sequence[str]], known: Sequence[str], path: Path) -> bool:
    """Whether the first line names columns: by a known name, or words where the second line has numbers."""
    first = [_plain(cell) for cell in rows[0]]
    if {cell.lower() for cell in first} & {name.lower() for name in known}:
        return True
    if len(rows) < 2 or any(_is_number(cell) for cell in first):
        return False
    if any(_is_number(_plain(cell)) for cell in rows[1]):
        return True
    raise UserError(
        f"{path}: cannot determine whether its first line {_short(','.join(first))} names the columns; "
        "set 'header: true' or 'header: false'"
    )


def _plain(cell: str) -> str:
    return cell.strip().strip('"')


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parse(text: str, separator: str, named: bool, quoted: bool, path: Path) -> pd.DataFrame:
    import pandas as pd

    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE

    def read(header: int | None, rows: int | None = None) -> pd.DataFrame:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            table: pd.DataFrame = pd.read_csv(
                io.StringIO(text),
                sep=separator,
                header=header,
                nrows=rows,
                dtype=str,
                keep_default_na=False,
                quoting=quoting,
                index_col=False,
            )
        if any(issubclass(one.category, pd.errors.ParserWarning) for one in given):
            lines = io.StringIO(text, newline=None)
            _check_widths(csv.reader(lines, delimiter=separator, quoting=quoting), path)
        return table

    try:
        if named:
            _check_distinct(read(header=None, rows=1).iloc[0], path)  # pandas would rename the second
        table = read(header=0 if named else None)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
        raise UserError(f"{path}: is not a table: {_parser_words(error)}") from None
    if not len(table):
        raise UserError(f"{path}: has a header, but no rows")
    table.columns = [str(name).strip() for name in table.columns] if named else _numbered(table.shape[1])
    return table


def _check_widths(lines: Iterable[Sequence[str]], path: Path) -> None:
    """Refuses rows with more values than the header has columns, which would be left out; blanks at their ends are none."""
    rows = (line for line in lines if any(cell.strip() for cell in line))
    width = len(next(rows, ()))
    for number, row in enumerate(rows, start=1):
        if any(cell.strip() for cell in row[width:]):
            raise UserError(
                f"{path}: row {number:,} has {len(row)} values, the header {width} columns; a value that holds the "
                "separator must be quoted"
            )


def _check_distinct(names: Iterable[str], path: Path) -> None:
    """Refuses a header with a name twice, of which one column would be read and the other not; names may be empty."""
    counts = Counter(name for given in names if (name := str(given).strip()))
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise UserError(f"{path}: its header has the column {_short(repeated[0])} more than once")


def _parser_words(error: Exception) -> str:
    return re.sub(r"^Error tokenizing data\. C error: ", "", _one_line(error))


def _numbered(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table: pd.DataFrame = pq.ParquetFile(path).read().to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: is no whole Parquet file ({_one_line(error)})") from None
    if not len(table):
        raise UserError(f"{path}: has columns, but no rows")
    named = any(name is not None for name in table.index.names)  # pandas stores columns of an index as such
    if named and not set(table.index.names) & set(table.columns):
        table = table.reset_index()
    table.columns = [str(name) for name in table.columns]
    _check_distinct(table.columns, path)
    return table.reset_index(drop=True)


def _read_json_lines(path: Path, fields: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    # as objects: a number with decimals would make all of its column floats, in which large identifiers are rounded
    table = pd.DataFrame(list(json_lines(path, fields)), dtype=object)
    if not len(table):
        raise UserError(f"{path}: is empty")
    return table.where(table.notna(), "")


def json_lines(path: Path, fields: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The objects of a file with one JSON object a line, gzipped or not; only ``fields`` of them if given.

    Raises:
        UserError: where a line is not a JSON object, or the file ends too early.
    """
    with unpacked(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _object(path, number, line, fields)


def _object(path: Path, number: int, line: bytes, fields: Sequence[str]) -> dict[str, Any]:
    try:
        found = json.loads(line)
        return {name: found.get(name) for name in fields} if fields else dict(found)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path}:{number}: is not a JSON object") from None


def identifiers(table: pd.DataFrame, column: str, path: Path) -> list[str]:
    """A column as text; whole numbers without a decimal point.

    Raises:
        UserError: at the first row where it is empty or cannot be an identifier.
    """
    values = table[column]
    missing = np.flatnonzero((values.isna() | (values.astype(str).str.strip() == "")).to_numpy())
    if len(missing):
        row = values.index[missing[0]] + 1
        raise UserError(f"{path}: row {row:,}: column {column} is empty ({len(missing):,} such rows)")
    found = [
        str(int(value) if type(value) is float and value.is_integer() else value).strip()
        for value in values.tolist()
    ]
    for row, name in zip(values.index, found, strict=True):
        if len(name) > LONGEST_IDENTIFIER or not name.isprintable():
            check_identifier(name, f"{path}: row {row + 1:,}: column {column}")
    return found


def numbers(table: pd.DataFrame, column: str, path: Path) -> FloatArray:
    """A column as float64.

    Raises:
        UserError: at the first row where it is not a number.
    """
    import pandas as pd

    found = pd.to_numeric(table[column], errors="coerce").to_numpy(np.float64)
    _refuse(table, column, path, ~np.isfinite(found), "a number")
    return found


def moments(table: pd.DataFrame, column: str, path: Path) -> FloatArray:
    """A column of times as float64: numbers as they are, dates as seconds since 1970.

    Raises:
        UserError: at the first row that is neither.
    """
    import pandas as pd

    as_numbers: FloatArray = pd.to_numeric(table[column], errors="coerce").to_numpy(np.float64)
    if np.isfinite(as_numbers).all() and table[column].dtype.kind != "M":
        return as_numbers
    dates = pd.to_datetime(table[column], errors="coerce", utc=True, format="ISO8601")
    _refuse(table, column, path, dates.isna().to_numpy(), "a number or a date (2024-11-21 13:00)")
    since_1970 = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(since_1970, dtype=np.float64)


def latest_of_each_pair(
    table: pd.DataFrame, user: str, item: str, times: Callable[[pd.DataFrame], FloatArray | None]
) -> pd.DataFrame:
    """The rows without those that a later row of the same user and item replaces: who changed their mind means the latest.

    Of equal times, and without times, the last row of the file. ``times`` is called for rows of repeated pairs only.
    """
    keys = _codes(table[user]) * (len(table) + 1) + _codes(table[item])
    _, pair, counts = np.unique(keys, return_inverse=True, return_counts=True)
    places = np.flatnonzero(counts[pair] > 1)
    if not len(places):
        return table
    when, pair = times(table.iloc[places]), pair[places]
    order = np.lexsort((places, np.zeros(len(places)) if when is None else when, pair))
    replaced = places[order[:-1][pair[order][1:] == pair[order][:-1]]]
    return table.loc[np.isin(np.arange(len(table)), replaced, invert=True)]


def _codes(identifiers: pd.Series[Any]) -> IntArray:
    """(E,) a number for each identifier, the same for those that differ by blanks around them only."""
    import pandas as pd

    codes, distinct = pd.factorize(identifiers, use_na_sentinel=False)
    plain, _ = pd.factorize(np.array([str(value).strip() for value in distinct], dtype=object))
    found: IntArray = plain.astype(np.int64)[codes]
    return found


def check_columns(path: Path, user: str, item: str) -> None:
    """Refuses one column for both.

    Raises:
        UserError: says how the other is named.
    """
    if user == item:
        raise UserError(
            f"{path}: user and item are the same column, {user!r}; name both, with 'user: ...' and 'item: ...'"
        )


def rated_above(table: pd.DataFrame, path: Path, above: float, below: float = np.inf) -> dict[str, Any]:
    """Users, items and times of the latest ratings of each pair that lie above ``above`` and below ``below``, and how many
    rows were ``replaced`` by later ones; of all rows of a table without ratings.

    Columns by their usual names, or in the order user, item, rating, time where they have none.
    """
    user = need_column(table.columns, path, None, (*USERS, "1"), "user")
    item = need_column(table.columns, path, None, (*ITEMS, "2"), "item")
    rating = find_column(table.columns, path, None, (*RATINGS, "3"), "rating")
    time = find_column(table.columns, path, None, (*TIMES, "4"), "time")
    check_columns(path, user, item)
    replaced = 0
    if rating is not None:
        rows = len(table)
        table = latest_of_each_pair(
            table, user, item, lambda some: None if time is None else numbers(some, time, path)
        )
        replaced, ratings = rows - len(table), numbers(table, rating, path)
        table = table[(ratings > above) & (ratings < below)]
    return {
        "replaced": replaced,
        "users": identifiers(table, user, path),
        "items": identifiers(table, item, path),
        "times": None if time is None else numbers(table, time, path),
    }


def _refuse(table: pd.DataFrame, column: str, path: Path, wrong: np.ndarray, kind: str) -> None:
    places = np.flatnonzero(wrong)
    if len(places):
        row, value = table.index[places[0]] + 1, _short(str(table[column].iloc[places[0]]))
        such = f"{len(places):,} such rows"
        raise UserError(f"{path}: row {row:,}: column {column}: {value} is not {kind} ({such})")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _one_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
