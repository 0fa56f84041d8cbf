"""How people write tables: encodings, separators, decimal marks, dates and signs of missing values.

Everything is detected for ``cfbench init --csv`` alone, which writes what it found into the configuration. A run reads the
file by its schema and detects only the separator, so that the same configuration always means the same table.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_tabular.date_forms import iso_dates

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 10_000
"""First bytes of a file that its encoding is detected from."""
LINES = 50
"""First lines of a file that its separator is detected from."""
POSSIBLE_MARKS = (
    "-",
    "--",
    "\u2013",
    "\u2014",
    "\u2212",
    ".",
    "n/a",
    "n.a.",
    "#n/a",
    "null",
    "nil",
    "unknown",
    "missing",
    "not available",
    "k.a.",
    *("#div/0!", "#value!", "#ref!", "#num!", "#name?"),
)
"""Text that means a missing value where the rest of a column are numbers or dates, upper or lower case."""
UNITS = (
    *("%", "‰", "€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR", "PLN", "SEK"),
    *(
        "kg",
        "g",
        "mg",
        "t",
        "lb",
        "lbs",
        "km",
        "m",
        "cm",
        "mm",
        "mi",
        "ft",
        "in",
        "km/h",
        "mph",
        "m²",
        "m2",
        "m³",
        "m3",
        "km2",
        "ft2",
        "l",
        "ml",
    ),
    *(
        "s",
        "ms",
        "min",
        "h",
        "d",
        "days",
        "months",
        "years",
        "°C",
        "°F",
        "K",
        "W",
        "kW",
        "kWh",
        "V",
        "A",
        "Hz",
        "bpm",
    ),
)
"""Units that people write next to numbers; in front of them only those of money."""
MONEY = UNITS[2:16]
MOST_MARKED = 0.9
"""Largest share of a column that these may be; of text that is not among them, the rest to 1."""
MANY = 20
"""Distinct numbers or dates by which a column is recognised as one, whatever text stands between them."""
MOST_MARKS = 2
"""Distinct signs of missing values in one column that are not usual ones."""


def encoding_of(data: bytes) -> str:
    """UTF-8 or UTF-16, with or without a byte order mark; else Windows-1252, which any Latin-1 text is."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for name, zeros in (("utf-16-le", data[1:SAMPLE:2]), ("utf-16-be", data[:SAMPLE:2])):
        if zeros.count(0) > len(zeros) / 2:  # the upper halves of digits, separators and Latin letters
            return name
    for name in ("utf-8", "windows-1252"):
        try:
            data.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def decoded(data: bytes, encoding: str, path: Path) -> str:
    """The text of a file.

    Raises:
        UserError: if it is not text in this encoding; it names one in which it can be read.
    """
    try:
        return data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except LookupError as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except UnicodeError as error:
        place = (
            f" (line {data[: error.start].count(10) + 1})" if isinstance(error, UnicodeDecodeError) else ""
        )
        other = encoding_of(data)
        hint = f"; it can be read as {other}: set encoding to {other}" if other != encoding else ""
        raise UserError(f"{path}: cannot be read: is not {encoding} text{place}{hint}") from None


def separator_of(text: str) -> str:
    """Comma, semicolon, tab or bar: which splits the first lines into equally many cells, and into most of them."""

    def fit(separator: str) -> tuple[float, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        try:
            sizes = [len(row) for _, row in zip(range(LINES), reader, strict=False) if any(row)]
        except csv.Error:
            return 0.0, 0
        size, count = Counter(sizes).most_common(1)[0] if sizes else (0, 0)
        return (count / len(sizes), size) if size > 1 else (0.0, 0)

    return max(SEPARATORS, key=fit)


def without_lines(text: str, count: int) -> str:
    """The text without its first lines."""
    ends = [end.end() for end, _ in zip(re.finditer(r"\r\n|\n|\r", text), range(count), strict=False)]
    if len(ends) < count:
        return ""
    return text[ends[-1] :] if ends else text


def title_lines(text: str, separator: str) -> int:
    """The number of lines before that with the names of the columns: a title, or ``sep=;``, of less than half as many
    cells as most rows have."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        read = [
            (reader.line_num, len(row), sum(map(bool, map(str.strip, row))))
            for _, row in zip(range(LINES), reader, strict=False)
        ]
    except csv.Error:
        return 0
    sizes = Counter(size for _, size, filled in read if filled)
    size = sizes.most_common(1)[0][0] if sizes else 0
    skipped = 0
    for line, own, filled in read:
        if filled and not ((own < size and 2 * filled <= size) or (filled == 1 and size > 2)):
            return skipped
        skipped = line if filled else skipped
    return 0


INFINITE = re.compile(r"[+\-\u2212]?(?:inf(?:inity)?|∞)", re.IGNORECASE)
ZERO = re.compile(r"0(?:[.,]0+)?")
NUMBER_AND_TEXT = re.compile(
    r"(?:[<>]=?|[≤≥])?\s*([^\d.,+\-\s]{0,4})\s*[+-]?\s*([^\d.,+\-\s]{0,4})\s*"
    r"[.,]?\d(?:[\d., ']*\d)?[.,]?\s*(\D*?(?:(?<=[a-z])[23])?)"
)

POINTS_BETWEEN_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")
BELOW_THOUSAND = re.compile(r"[+-]?(?:0|[1-9]\d{0,2})")
LEAST_GROUPED = 5
"""Distinct numbers such as 1.234 that say, next to smaller ones, that the point stands between thousands."""


def number_pattern(decimal: str, thousands: str | None) -> re.Pattern[str]:
    """Numbers with these marks: 1.234,50 and 1234,5 with ',' and '.', but not 0.899, which has no thousands.

    With commas between thousands also 12,34,567 as it is written in India.
    """
    whole = rf"[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+|\d+" if thousands else r"\d+"
    if thousands == ",":
        whole = rf"[1-9]\d?(?:,\d{{2}})+,\d{{3}}|{whole}"
    return re.compile(
        rf"[+-]?(?:(?:{whole})(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)(?:[eE][+-]?\d+)?"
    )


def unit_of(cells: Iterable[str]) -> str:
    """The unit that stands next to every number of a column; "" if there is none, or not next to all."""
    parts: set[tuple[str, str]] = set()
    for cell in cells:
        if ZERO.fullmatch(cell):  # which is 0 in any unit
            continue
        parts.add(digits_apart(cell))
        if len(parts) > 2:  # -€5 and €-5
            return ""
    before, after = {front for front, _ in parts}, {back for _, back in parts}
    if len(before) != 1 or len(after) != 1:
        return ""
    front, back = before.pop(), after.pop()
    if front in MONEY and not back:
        return front
    return back if back in UNITS and not front else ""


def without_unit(cell: str, unit: str) -> str:
    """A number without its unit: -12.50 of "-12.50 €" and "-€12.50"; other text unchanged."""
    front, back = digits_apart(cell)
    if (front, back) not in ((unit, ""), ("", unit)):
        return cell
    return cell.replace(unit, "", 1).replace("- ", "-").strip()


def digits_apart(cell: str) -> tuple[str, str]:
    """What stands in front of the digits of a number, but for its sign and decimal mark, and what behind them."""
    found = NUMBER_AND_TEXT.fullmatch(cell)
    return (found[1] or found[2], found[3].removesuffix("+").rstrip()) if found else (cell, cell)


def plain_columns(
    columns: Mapping[str, Sequence[str]],
    marks: Iterable[str],
    decimal: str,
    thousands: str | None,
    date_format: str | None,
    time_format: str | None = None,
    last_year: int | None = None,
) -> dict[str, tuple[str, ...]]:
    """The columns in which every cell that is not missing is such a number, date or time, as 1234.5, 2026-11-23 and
    2026-11-23T12:30:00."""
    number, missing, found = number_pattern(decimal, thousands), set(marks), {}
    for name, cells in columns.items():
        distinct = set(cells) - missing
        if not distinct:
            continue
        plain: dict[str, str] | None = None
        if (decimal != "." or thousands) and all(number.fullmatch(cell) for cell in distinct):
            plain = {
                cell: (cell.replace(thousands, "") if thousands else cell).replace(decimal, ".")
                for cell in distinct
            }
        if plain is None and date_format is not None:
            plain = iso_dates(distinct, date_format, last_year)
        if plain is None and time_format is not None:
            plain = iso_dates(distinct, time_format, last_year)
        if plain is not None:
            found[name] = tuple(plain.get(cell, cell) for cell in cells)
    return found


def marks_of(columns: Mapping[str, Sequence[str]], marks: Sequence[str]) -> tuple[str, ...]:
    """``marks`` and the text that stands for missing numbers or dates in these columns, such as ``-`` and ``n.d.``.

    Those of ``POSSIBLE_MARKS``, where the rest of a column has digits; any other text without a digit, up to ``MOST_MARKS``
    of it, where the rest has ``MANY`` distinct values and is most of the column; and infinities among numbers.
    """
    known, found = set(marks), list(marks)
    for cells in columns.values():
        counts = Counter(cell for cell in cells if cell not in known)
        infinite = _infinite(counts)
        found += sorted(infinite - set(found))
        counts = Counter({cell: count for cell, count in counts.items() if cell not in infinite})
        strange = {cell for cell in counts if may_be_missing(cell) or not any(map(str.isdigit, cell))}
        rest = len(counts) - len(strange)
        share = sum(counts[cell] for cell in strange) / max(1, sum(counts.values()))
        unusual = sum(not may_be_missing(cell) for cell in strange)
        least, most = (MANY, 1 - MOST_MARKED) if unusual else (3, MOST_MARKED)
        if strange and unusual <= MOST_MARKS and rest >= least and share <= most:
            found += sorted(strange - set(found))
    return tuple(found)


def _infinite(cells: Collection[str]) -> set[str]:
    """The infinities of a column that is numbers otherwise."""
    infinite = {cell for cell in cells if INFINITE.fullmatch(cell)}
    rest = [cell for cell in cells if cell not in infinite and not may_be_missing(cell)] if infinite else []
    return infinite if rest and all(NUMBER_AND_TEXT.fullmatch(cell) for cell in rest) else set()


def may_be_missing(cell: str) -> bool:
    """Whether text may mean a missing value, or may be a level: - and unknown."""
    return cell.lower() in POSSIBLE_MARKS


def marks_within(cells: Iterable[str], marks: Iterable[str], usual: Iterable[str]) -> set[str]:
    """Those of ``marks`` that mean a missing value in a column: not those of other columns that are levels of this one.

    A sign that is not ``usual`` is a level next to +, or next to one level alone: a test is + or -, a box x or -.
    """
    own, found = set(cells), set(marks)
    rest, others = own - found, (own & found) - set(usual)
    is_level = "+" in rest or (len(rest) == 1 and not any(map(str.isdecimal, "".join(rest))))
    return found - others if is_level else found


NUMBER_MARKS = (
    *((".", None), (",", None), (",", "."), (".", ",")),
    *((",", " "), (".", " "), (".", "'"), (",", "'")),
)
"""Decimal and thousands marks that are detected."""


def number_marks_of(cells: Collection[str]) -> list[tuple[str, str | None]]:
    """The decimal and thousands marks with which all of the cells are numbers."""
    return [pair for pair in NUMBER_MARKS if all(number_pattern(*pair).fullmatch(cell) for cell in cells)]


def has_points_between_thousands(cells: Iterable[str]) -> bool:
    """Whether the numbers of a column have a point between thousands from 1.000 on, and the smaller ones have none.

    Fractions with three decimals are written otherwise: with all of them no number is without a point, and without
    trailing zeros no number is 1.500.
    """
    distinct = set(cells)
    grouped = {cell for cell in distinct if POINTS_BETWEEN_THOUSANDS.fullmatch(cell)}
    small = {cell for cell in distinct - grouped if BELOW_THOUSAND.fullmatch(cell)}
    return (
        len(grouped) >= LEAST_GROUPED
        and grouped | small == distinct
        and any(cell.endswith("0") for cell in grouped)
        and any(len(cell.lstrip("+-")) == 3 for cell in small)
    )


def decimal_marks_of(columns: Mapping[str, Sequence[str]], marks: Iterable[str]) -> tuple[str, str | None]:
    """The decimal and thousands marks of the columns of numbers: ('.', None) unless others make more of them readable.

    A comma is a decimal mark only if a number such as 1,5, 0,899, 1.234,5 or 1.234.567 says so, or a column that
    :func:`has_points_between_thousands` and no other has a decimal point: 1,234 alone has a thousands mark.
    """
    missing, votes = set(marks), Counter[tuple[str, str | None]]()
    says_so = points = False
    for cells in columns.values():
        distinct = set(cells) - missing
        if not distinct:
            continue
        fits = number_marks_of(distinct)
        votes.update(fits)
        points |= has_points_between_thousands(distinct)
        commas = any(decimal == "," for decimal, _ in fits)
        says_so |= commas and any(
            re.search(r",(?!\d{3}$)|[. ']\d{3},|^[+-]?0?,|\.\d{3}\.", cell) for cell in distinct
        )
    possible = [pair for pair in NUMBER_MARKS if says_so or points or pair[0] != ","]
    best = max(possible, key=lambda pair: (votes[pair], -NUMBER_MARKS.index(pair)))
    if points and votes[",", "."] == votes[best]:
        return ",", "."
    return best if votes[best] > votes[".", None] else (".", None)
