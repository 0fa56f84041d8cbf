"""Types of numeric columns: the steps that their values come in, and dates as numbers.

A whole number has the step 1, an amount of money the step 0.01, a measurement of any precision no step. The values
of a column with a step are its multiples; each is represented by the floating-point number nearest to the decimal
number, so that equal values are equal numbers. A date is the number of days since 1970-01-01, a time the number of
seconds since then.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import numpy as np

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

Format = Literal["number", "date", "time"]

MOST_DECIMALS = 4
"""A column of numbers with more decimals has no step, unless the schema gives one."""

OFF = 1e-6
"""Share of a step by which a computed number may miss its multiple."""

SMALL = 1e-9
"""Share of a number by which it may miss its multiple where the step is inferred."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decimals_of(step: float) -> int:
    """The number of decimals of the multiples of a step: 2 for 0.25, 0 for 5."""
    exponent = Decimal(repr(float(step))).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def inferred_step(values: FloatArray) -> float | None:
    """1 for whole numbers, 0.01 for numbers with up to two decimals; None for more than ``MOST_DECIMALS``.

    Rounding errors do not count as decimals: 0.30000000000000004 has one. They are small for the number, not only for the
    step: 3e-7 is no whole number.
    """
    for decimals in range(MOST_DECIMALS + 1):
        step = float(f"1e-{decimals}")
        tolerance = np.minimum(OFF * step, SMALL * np.abs(values))
        if not _is_off(values, step, tolerance).any():
            return step
    return None


def nearest_multiple(values: FloatArray, step: float) -> FloatArray:
    """The nearest multiples of ``step``, of an array of any shape; NaN stays NaN."""
    found: FloatArray = np.round(np.rint(values / step) * step, decimals_of(step))
    return found + 0.0  # no negative zero


def off_step(values: FloatArray, step: float) -> BoolArray:
    """Which values are not multiples of ``step``, up to rounding errors."""
    return _is_off(values, step, OFF * step)


def _is_off(values: FloatArray, step: float, tolerance: FloatArray | float) -> BoolArray:
    """Which values miss their multiples by more than a tolerance and the rounding of their last digits."""
    away = np.abs(values - nearest_multiple(values, step))
    found: BoolArray = away > tolerance + 4 * np.spacing(np.abs(values))
    return found


def number_of(text: Any, form: Format) -> float:
    """A cell as a number.

    Raises:
        ValueError: if it is not a number, or not a date (2026-11-23) or time (2026-11-23T12:30:00) in ISO 8601.
    """
    if form == "number":
        return float(text)
    if form == "date":
        return float((date.fromisoformat(str(text).strip()) - EPOCH.date()).days)
    moment = datetime.fromisoformat(str(text).strip())
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - EPOCH).total_seconds()


def text_of_number(number: float, form: Format = "number", step: float | None = None) -> str:
    """A number with the decimals of its column, or as a date or time; one between two steps with all its digits.

    Whole days and seconds are dates and times also between two steps.
    """
    if form != "number" and number == round(number):
        step = 1.0
    if step is not None and not off_step(np.array([number]), step)[0]:
        if form == "date" and decimals_of(step) == 0:
            return (EPOCH.date() + timedelta(days=round(number))).isoformat()
        if form == "time":
            multiple = float(nearest_multiple(np.array([number]), step)[0])
            return (EPOCH + timedelta(seconds=multiple)).replace(tzinfo=None).isoformat()
        return f"{float(nearest_multiple(np.array([number]), step)[0]):.{decimals_of(step)}f}"
    return repr(number)
