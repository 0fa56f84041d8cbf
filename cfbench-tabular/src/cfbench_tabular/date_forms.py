"""How people write dates and times: formats, the order of day and month, and years with two digits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

DATE_FORMATS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%d %b %Y"),
    *("%d-%b-%Y", "%d-%b-%y"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
)
TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
TIME_FORMATS = tuple(
    f"{day}{between}{time}"
    for day in ("%Y-%m-%d", *DATE_FORMATS)
    if day != "%Y%m%d"
    for between in (" ", ", ", "T")
    for time in TIMES
    if not (day == "%Y-%m-%d" and between != ", " and "%I" not in time)  # these are ISO 8601
)
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")


def date_format_of(
    columns: Mapping[str, Sequence[str]], marks: Iterable[str], formats: Sequence[str] = DATE_FORMATS
) -> str | None:
    """The format of dates or times that are not ISO 8601; None without such a column, or where all are ambiguous."""
    missing = set(marks)
    for cells in columns.values():
        distinct = set(cells) - missing
        if len(distinct) < 3:
            continue
        fits = formats_of(distinct, formats)
        if len(fits) == 1 and not (fits[0] == "%Y%m%d" and not _years(distinct)):
            return fits[0]
    return None


def formats_of(cells: Iterable[str], formats: Sequence[str] = (*DATE_FORMATS, *TIME_FORMATS)) -> list[str]:
    """The formats of dates and times that fit all of the cells: two where day and month cannot be distinguished."""
    cells = sorted(cells)
    fits = [form for form in formats if iso_dates(cells[:1], form) is not None] if cells else []
    return [form for form in fits if iso_dates(cells, form) is not None]


def _years(cells: Iterable[str]) -> bool:
    """Whether eight digits begin with a year of our time, so that they are rather a date than a number."""
    return all("1900" <= cell[:4] <= "2100" for cell in cells)


def last_year_of(
    columns: Mapping[str, Sequence[str]], marks: Iterable[str], formats: Iterable[str | None], this_year: int
) -> int | None:
    """The last of the hundred years of dates whose years have two digits; None where 69 to 99 are of the last century.

    No date is later than ``this_year`` and the ISO 8601 dates of the file, unless this tears the dates of a column apart:
    contracts end in 24 to 35, people are born in 40 to 99.
    """
    missing, last, wanted = set(marks), this_year, False
    own = [form for form in formats if form is not None and "%y" in form]
    distinct = [set(cells) - missing for cells in columns.values()] if own else []
    for cells in distinct:
        if cells and all(map(ISO_DATE.match, cells)):
            last = max(last, *(int(cell[:4]) for cell in cells if cell < "9999"), this_year)
    for cells, form in itertools.product(distinct, own):
        usual, other = (
            iso_dates(cells, form) if cells else None,
            iso_dates(cells, form, last) if cells else None,
        )
        if not usual or max(usual.values()) <= f"{last}-12-31~":
            continue
        if not other or _span(other) > _span(usual):
            return None
        wanted = True
    return last if wanted else None


def _span(dates: Mapping[str, str]) -> int:
    """The years between the first and the last of some dates in ISO 8601."""
    return int(max(dates.values())[:4]) - int(min(dates.values())[:4])


def iso_dates(cells: Iterable[str], form: str, last_year: int | None = None) -> dict[str, str] | None:
    """The dates or times in ISO 8601 by cell; None if one of the cells is none.

    last_year: of years with two digits.
    """
    found, timed = {}, "%M" in form
    for cell in cells:
        try:
            moment = datetime.strptime(cell, form)
            if last_year is not None and "%y" in form:
                moment = moment.replace(year=last_year - (last_year - moment.year) % 100)
        except ValueError:
            return None
        found[cell] = moment.isoformat() if timed else moment.date().isoformat()
    return found
