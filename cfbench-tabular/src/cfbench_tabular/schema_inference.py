"""Inference of column types, for columns that the schema does not name and for ``cfbench init --csv``.

The rules are simple, so that users can follow them: dates and times in ISO 8601 are dates and times, other text is
categorical; numbers are numeric, but a column with two distinct numbers is categorical; levels that all belong to a
common scale (low, medium, high) are ordinal in what ``init --csv`` drafts; constant columns, row identifiers and text
that differs in nearly every row are dropped, because they carry no information about classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from cfbench_tabular.column_types import Format, number_of
from cfbench_tabular.date_forms import formats_of
from cfbench_tabular.sheet import number_or_nan

Kind = Literal["numeric", "date", "time", "categorical"]
SCALES = (
    ("very low", "low", "medium", "high", "very high"),
    ("low", "middle", "high"),
    ("low", "moderate", "high"),
    ("very small", "small", "medium", "large", "very large"),
    ("xs", "s", "m", "l", "xl", "xxl"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("very bad", "bad", "average", "good", "very good"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("none", "mild", "moderate", "severe"),
)
"""Common scales, ascending."""
DAY = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}(?!\d|[/.-]\d)")
MONTH = r"[^\W\d]{3,10}\.?"
NAMED_MONTH = re.compile(
    rf"(?:\d{{1,2}}\S{{0,2}}[ -]?{MONTH}|{MONTH} \d{{1,2}}[^\W\d]{{0,2}}),?[ -]?(?:\d{{4}}|\d{{2}})(?!\d)"
)
"""A day with the name of its month: 24. Jun 2023, 4-Okt-23 and June 24th, 2023."""
TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(:\d{2})?( ?[ap]m)?", re.IGNORECASE)
MOST_EXACT = 2**53
"""Above it, neighbouring whole numbers are the same floating-point number."""
MOST_LEVELS = 50
"""A text column with more levels is dropped if most of its values occur in one row only."""
MANY_ROWS = 50
"""From so many rows on, consecutive numbers are a row number, whatever the name of the column."""
MOST_DRAFTED_LEVELS = 200
"""A text column with more levels is dropped in any case: each level is a position of the encoded row."""


def kind_of(cells: Sequence[str]) -> Kind:
    """The type of a column without missing values. An infinity among numbers is an error, not a level."""
    distinct = set(cells)
    numbers = [is_number(cell) for cell in distinct]
    if not all(numbers) and any(numbers):
        numbers = [
            cell.strip().lower().lstrip("+-") in ("inf", "infinity") or is_number(cell) for cell in distinct
        ]
    if all(numbers):
        return "numeric" if len(distinct) > 2 else "categorical"
    if len(distinct) > 2 and not any(numbers):
        for kind in ("date", "time"):
            if all(_is_moment(cell, kind) for cell in distinct):
                return kind
    return "categorical"


def in_scale(levels: Sequence[str]) -> list[str] | None:
    """The levels in ascending order if three or more and all of them belong to one common scale."""
    known = {level.strip().lower().replace("_", " ").replace("-", " "): level for level in levels}
    if len(levels) < 3 or len(known) < len(levels):
        return None
    for scale in SCALES:
        if set(known) <= set(scale):
            return [known[level] for level in scale if level in known]
    return None


def _is_moment(cell: str, kind: Format) -> bool:
    try:
        number_of(cell, kind)
    except ValueError:
        return False
    return True


def reason_to_drop(name: str, cells: Sequence[str]) -> str:
    """Why a column carries no information about classes; empty if it may."""
    distinct = set(cells)
    if len(distinct) == 1:
        return f"always {cells[0]!r}"
    all_differ = len(distinct) == len(cells)
    if all_differ and re.fullmatch(
        r"(?i)|(.*[_ -])?(id|uuid|guid|no|nr|number|key|index|row)|unnamed.*", name.strip()
    ):
        return "distinct in every row: probably a row identifier"
    if all_differ and len(cells) >= MANY_ROWS and _counts(cells):
        return f"{cells[0]}, {cells[1]}, ... in the order of the rows: a row number"
    if all(map(str.isdecimal, distinct)) and any(int(cell) > MOST_EXACT for cell in distinct):
        return f"numbers of so many digits that they are not exact, such as {cells[0]}: probably identifiers"
    if (
        kind_of(cells) == "categorical"
        and not all(is_number(cell) for cell in distinct)
        and len(distinct) > min(max(MOST_LEVELS, len(cells) // 2), MOST_DRAFTED_LEVELS)
    ):
        return f"text with {len(distinct):,} distinct values in {len(cells):,} rows{on_dates(distinct)}"
    return ""


def on_dates(cells: Iterable[str]) -> str:
    """What text is that could be dates, but is not read as dates: the end of a sentence; "" for other text."""
    cells = sorted(set(cells))
    if all(TIME_OF_DAY.fullmatch(cell) for cell in cells):
        return "; times of day, which are no type of a column: write hours or minutes as numbers to use it"
    named = all(NAMED_MONTH.match(cell) for cell in cells)
    if not named and not all(DAY.match(cell) for cell in cells):
        return ""
    fits = formats_of(cells)
    if not fits and named:
        return "; look like dates with names of months, which are read as in 24 Jun 2023 only: write 2023-06-24 instead"
    if not fits:
        first = formats_of(cells[:1])
        other = next((cell for cell in cells if not set(first) & set(formats_of([cell], first))), None)
        if first and other is not None and formats_of([other]):
            return f"; dates in two forms, {cells[0]!r} and {other!r}: write all in the same way to use it"
        return _on_wrong_dates(cells) or "; if these are dates, set date_format"
    key = "time_format" if "%M" in fits[0] else "date_format"
    names = " or ".join(f"'{form}'" for form in fits[:3])
    if len(fits) == 1:
        return f"; dates such as {names}, which is not the {key} of the file: write all in the same way to use it"
    return f"; dates whose day and month cannot be told apart: set {key} to {names} to use it"


def _on_wrong_dates(cells: Sequence[str]) -> str:
    """Of dates among which one is none, such as 0000-00-00 and 31/12/2025 24:00; else ""."""
    good = next(
        (cell for cell in cells[:MOST_LEVELS] if _is_moment(cell, "time") or formats_of([cell])), None
    )
    if good is None:
        return ""
    forms = formats_of([good])
    odd = next((cell for cell in cells if not (formats_of([cell], forms) or _is_moment(cell, "time"))), None)
    return f"; dates such as {good!r}, but {odd!r} is none: correct it to use the column" if odd else ""


def _counts(cells: Sequence[str]) -> bool:
    """Whether the cells are consecutive whole numbers."""
    if not cells[0].isdecimal():
        return False
    first = int(cells[0])
    return all(cell.isdecimal() and int(cell) == place for place, cell in enumerate(cells, first))


def is_number(cell: str) -> bool:
    return bool(np.isfinite(number_or_nan(cell)))
