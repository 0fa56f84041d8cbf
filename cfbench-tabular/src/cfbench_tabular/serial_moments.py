"""Dates and times that a file holds as numbers: days as spreadsheets count them, seconds as Unix does.

The number 45123 does not show whether it stands for 2023-07-16. A column is read as dates only if its entry says
so (``epoch``); ``cfbench init --csv`` remarks on numbers that may be dates where the name of the column says date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import numpy as np

from cfbench_tabular.column_types import EPOCH, Format
from cfbench_tabular.sheet import number_or_nan

DAY_0 = date(1899, 12, 30)
"""From which spreadsheets count days, from March 1900 on. Before, they differ among themselves."""
DAY_0_NUMBER = (EPOCH.date() - DAY_0).days
"""1970-01-01."""
FIRST_DAY = 61
LAST_DAY = 2_958_465
"""9999-12-31, which also means: no end."""
DAY_SECONDS = 86_400

LIKELY_DAYS = (10_000, 60_000)
"""From 1927 to 2064."""
LIKELY_SECONDS = (3e8, 4e9)
"""From 1979 to 2096."""
MONTH = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])")
"""202401."""
SAYS_DATE = re.compile(
    r"(?i)date|datum|fecha|dob$|born|birth|geb(?:urt|oren)|naiss|nasc|nacim|timestamp|_(?:at|on|ts)$|^(?:day|ts)$"
)
"""Names of columns of dates and times."""


def in_iso(cells: Sequence[str], epoch: str, form: Format) -> tuple[str, ...]:
    """The cells of a column with its numbers as dates or times in ISO 8601; other text and other numbers are unchanged."""
    found = {cell: _moment(number_or_nan(cell), epoch, form) for cell in set(cells)}
    return tuple(found[cell] or cell for cell in cells)


def _moment(number: float, epoch: str, form: Format) -> str:
    """A date or time in ISO 8601; "" if the number is none."""
    if epoch == "unix":
        return _time(number) if abs(number) < LAST_DAY * DAY_SECONDS / 2 else ""
    if not FIRST_DAY <= number < LAST_DAY + 1:
        return ""
    if form == "time":
        return _time((number - DAY_0_NUMBER) * DAY_SECONDS)
    return (DAY_0 + timedelta(days=int(number))).isoformat() if number == int(number) else ""


def _time(seconds: float) -> str:
    """Rounded to whole seconds: days with a few decimals are not exact to more."""
    return (EPOCH + timedelta(seconds=round(seconds))).replace(tzinfo=None).isoformat()


def on_moments_as_numbers(name: str, cells: Sequence[str]) -> str:
    """Of a column of numbers: that these may be dates or times, and how to read them so; "" where they may not."""
    values = np.array([number_or_nan(cell) for cell in set(cells)])
    values = values[values != LAST_DAY]
    if not len(values):
        return ""
    example = max(set(cells), key=lambda cell: (number_or_nan(cell) != LAST_DAY, number_or_nan(cell)))
    low, high = float(values.min()), float(values.max())
    if all(map(MONTH.fullmatch, cells)):
        return f"{example} may be a month: then list the months as levels, or a counterfactual may have {example[:4]}13"
    if not SAYS_DATE.search(_in_words(name)):
        return ""
    whole = bool((values % 1 == 0).all())
    if LIKELY_DAYS[0] <= low and high <= LIKELY_DAYS[1]:
        kind: Format = "date" if whole else "time"
        return _remark(example, "spreadsheet", kind, "as spreadsheets count days")
    if whole and LIKELY_SECONDS[0] <= low and high <= LIKELY_SECONDS[1]:
        return _remark(example, "unix", "time", "in seconds since 1970")
    return ""


def _in_words(name: str) -> str:
    """openedAt as opened_At."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).replace(" ", "_").replace("-", "_")


def _remark(cell: str, epoch: str, form: Format, how: str) -> str:
    moment = _moment(number_or_nan(cell), epoch, form)
    return f"{cell} may be {moment}, {how}: then set {{type: {form}, epoch: {epoch}}}"


def with_moments(
    columns: Mapping[str, Sequence[str]], epochs: Mapping[str, tuple[str, Format]]
) -> dict[str, tuple[str, ...]]:
    """The columns that have an epoch, in ISO 8601."""
    return {
        name: in_iso(columns[name], epoch, form) for name, (epoch, form) in epochs.items() if name in columns
    }
