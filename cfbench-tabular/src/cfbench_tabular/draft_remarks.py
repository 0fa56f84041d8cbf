"""Remarks on the columns of a CSV file, for the comments of ``cfbench init --csv``: what a reader should check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from cfbench_tabular.column_types import nearest_multiple
from cfbench_tabular.file_format import (
    INFINITE,
    NUMBER_MARKS,
    ZERO,
    digits_apart,
    may_be_missing,
    number_marks_of,
)
from cfbench_tabular.number_forms import LEAST_NUMBERS, NUMBER
from cfbench_tabular.schema_inference import MOST_EXACT, is_number
from cfbench_tabular.sheet import Sheet, in_order, number_or_nan

ZONE = re.compile(r"\d(?:Z|[+-]\d{2}(?::?\d{2})*)$")
"""At the end of a time in ISO 8601."""
LEAST_EVIDENCE = 100
"""A common divisor d of n distinct numbers is remarked on if d to the power of n is at least this."""
MANY_NUMBERS = 0.3
"""Share of the numbers in text from which it may be meant as numbers."""
MULTIPLE = re.compile(r"[+-]?\d[\d.,' ]*?\s?(k|K|M|B|bn|Tsd|Mio|Mrd|mn)\.?")
"""A number in thousands, millions or billions: 251k and 0.25M."""
PLACEHOLDERS = (-99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0)
"""Numbers that people write for a missing value."""


def on_levels(levels: Sequence[str], cells: Sequence[str], marks: Iterable[str], are: str = "a level") -> str:
    """Of a category: levels that differ in case only, and a word in ``cells`` that counts as missing."""
    remarks = []
    by_lower: dict[str, str] = {}
    for level in levels:
        other = by_lower.setdefault(level.lower(), level)
        if other != level:
            remarks.append(
                f"{other!r} and {level!r} differ in case only: correct the file if they mean the same"
            )
            break
    words = Counter(cell for cell in cells if cell in set(marks) and any(map(str.isalpha, cell)))
    if len(words) == 1:
        word, count = words.most_common(1)[0]
        remarks.append(f"{word!r} in {count:,} rows counts as missing; list it if it is {are}")
    elif words:
        remarks.append(f"{_in_rows(words)} count as missing; list one if it is {are}")
    remarks.append(_on_possible_marks(levels, cells))
    return "; ".join(filter(None, remarks))


def _on_possible_marks(levels: Sequence[str], cells: Sequence[str]) -> str:
    """Of a category: levels that may mean a missing value, such as unknown; - is a level next to + or one other."""
    found = {level for level in levels if may_be_missing(level)}
    if "+" in levels or len(levels) == 2:
        found = {level for level in found if any(map(str.isalpha, level))}
    if not found:
        return ""
    counts = Counter(cell for cell in cells if cell in found)
    if len(counts) == 1:
        return f"if {_in_rows(counts)} means a missing value, add it to missing_marks"
    return f"if {_in_rows(counts)} mean missing values, add them to missing_marks"


def _in_rows(counts: Counter[str]) -> str:
    """'NA' in 3 rows and 'NULL' in 1."""
    parts = [f"{cell!r} in {count:,}" for cell, count in counts.most_common()]
    first, *rest = parts
    first += " rows" if counts.most_common(1)[0][1] > 1 else " row"
    return " and ".join(filter(None, [", ".join([first, *rest[:-1]]), *rest[-1:]]))


def on_numbers(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """Of numbers (n,): a placeholder for missing values, which is farther from the others than they are apart."""
    distinct = np.unique(numbers)
    if len(distinct) < 3:
        return ""
    for own, rest in ((distinct[0], distinct[1:]), (distinct[-1], distinct[:-1])):
        count = int((numbers == own).sum())
        far = np.abs(rest - own).min() > rest[-1] - rest[0]
        if own in PLACEHOLDERS and count > 1 and far:
            return f"{own:g} in {count:,} rows: if it means a missing value, add it to missing_marks"
    return ""


def on_infinite(cells: Sequence[str], missing: Collection[str], places: Sequence[str]) -> str:
    """Of a column of numbers: infinities, which count as missing, with the line of the first."""
    counts = Counter(cell for cell in cells if cell in missing and INFINITE.fullmatch(cell))
    if not counts:
        return ""
    first = next(place for cell, place in zip(cells, places, strict=True) if cell in counts)
    return f"{_in_rows(counts)}: infinite, read as missing (first: {first})"


def on_step(numbers: np.ndarray[tuple[int], np.dtype[np.float64]], step: float) -> str:
    """Of numbers (n,), multiples of ``step``: a larger step that all of them have, such as 12 months."""
    multiples = np.unique(np.abs(np.rint(numbers / step)))
    multiples = multiples[multiples > 0]
    if not len(multiples) or multiples[-1] > MOST_EXACT:
        return ""
    divisor = int(np.gcd.reduce(multiples.astype(np.int64)))
    if divisor == 1 or len(multiples) * np.log(divisor) < np.log(LEAST_EVIDENCE):
        return ""
    common = float(nearest_multiple(np.array([divisor * step]), step)[0])
    return f"all are multiples of {common:g}: if no others can exist, set its step to {common:g}"


def on_unit(cells: Iterable[str]) -> str:
    """Of a category: numbers that all have the same text behind them, which is not a known unit."""
    distinct = {cell for cell in cells if not ZERO.fullmatch(cell)}
    parts = {digits_apart(cell) for cell in distinct}
    if len(distinct) < LEAST_NUMBERS or len(parts) > 1:
        return ""
    front, unit = parts.pop()
    if front or not unit or not all(any(map(str.isdigit, cell)) for cell in distinct):
        return ""
    return f"numbers with {unit!r} behind them: to read them as numbers, set {{type: numeric, unit: {unit}}}"


def on_moments(written: Sequence[str], read: Sequence[str], marks: Collection[str]) -> str:
    """Of dates and times: the year 9999, the century of years with two digits, and times without a zone among others that
    have one."""
    pairs = {cell: text for cell, text in zip(written, read, strict=True) if cell not in marks}
    last = max(pairs, key=pairs.__getitem__)
    if pairs[last].startswith("9999"):
        rows = written.count(last)
        return f"{last!r} in {rows:,} rows: if it means a missing value, add it to missing_marks"
    short = [cell for cell, text in pairs.items() if text[:4] not in cell]
    if short:
        latest = max(short, key=pairs.__getitem__)
        return f"{latest!r} is read as {pairs[latest]}"
    zoned = [cell for cell, text in pairs.items() if ZONE.search(text)]
    if zoned and len(zoned) < len(pairs):
        plain = next(cell for cell in pairs if cell not in set(zoned))
        return f"{plain!r} has no time zone, as {zoned[0]!r} has, and is read as UTC"
    return ""


def without_header(sheet: Sheet, marks: Iterable[str]) -> bool:
    """Whether the names of the columns are rather the first row: each could be a cell of its column, and one is a number."""
    if not any(is_number(name) for name in sheet.names):
        return False
    missing = set(marks)
    for name, cells in sheet.columns.items():
        distinct = set(cells) - missing
        numeric = bool(distinct) and all(is_number(cell) for cell in distinct)
        if not (is_number(name) if numeric else name in distinct or name in missing):
            return False
    return True


def share_of_numbers(cells: Sequence[str]) -> str:
    """Of text that is partly numbers: the share, and a text that is none; "" where few are numbers."""
    strange = [cell for cell in cells if not NUMBER.fullmatch(cell)]
    share = 1 - len(strange) / len(cells)
    if not strange:
        return _on_number_marks(in_order(set(cells)))
    if share < MANY_NUMBERS:
        return ""
    return f"; {share:.0%} are numbers, {in_order(set(strange))[0]!r} is not: correct it to use the column"


def on_numbers_among_levels(cells: Sequence[str]) -> str:
    """Of a category: that most cells are numbers, and which are not; "" where few or too few different ones are."""
    numbers = {cell for cell in cells if NUMBER.fullmatch(cell)}
    strange = Counter(cell for cell in cells if cell not in numbers)
    share = 1 - strange.total() / len(cells)
    if not strange or len(numbers) < LEAST_NUMBERS or share < MANY_NUMBERS:
        return ""
    return (
        f"{share:.0%} are numbers, but not {_in_rows(Counter(dict(strange.most_common(3))))}: to read numbers, add "
        "signs of missing values to missing_marks, set censored for limits, or correct the file"
    )


def on_multiples(cells: Iterable[str]) -> str:
    """Of text: numbers with k, M or the like for thousands and millions; "" for other text."""
    distinct = set(cells)
    found = {cell: MULTIPLE.fullmatch(cell) for cell in distinct if not NUMBER.fullmatch(cell)}
    signs = sorted({match[1] for match in found.values() if match})
    if len(distinct) < LEAST_NUMBERS or not all(found.values()) or not signs:
        return ""
    return f"look like numbers with {' and '.join(map(repr, signs))} for multiples: write them in full to read numbers"


def _on_number_marks(cells: Sequence[str]) -> str:
    """Why text of digits and marks is no column of numbers: the end of a sentence."""
    fits = {cell: set(number_marks_of([cell])) for cell in cells}
    odd = next((cell for cell in cells if not fits[cell] or np.isinf(number_or_nan(cell))), None)
    if odd is not None:
        return f"; digits and marks, but {odd!r} is {'too large' if fits[odd] else 'not written as a number'}"
    common = set.intersection(*fits.values())
    if common:
        decimal, thousands = min(common, key=NUMBER_MARKS.index)
        between = f" and {thousands!r} between thousands" if thousands else ""
        return f"; numbers with the decimal mark {decimal!r}{between}, which are not those of the file"
    return f"; numbers, but {_in_two_ways(fits)} have different marks: write all in the same way to use it"


def _in_two_ways(fits: Mapping[str, set[tuple[str, str | None]]]) -> str:
    """Two numbers whose marks exclude each other, or the first and one that do so together with those between them."""
    common = set(NUMBER_MARKS)
    for cell, own in fits.items():
        common &= own
        if not common:
            other = next((one for one, marks in fits.items() if not marks & own), next(iter(fits)))
            return f"{other!r} and {cell!r}"
    return ""
