"""Cells of a paper's table: ours with its interval, the printed number with its deviation, the difference, the verdict.

``0.1889 ±0.0210 (0.1471 ±0.2260, +0.0418) ✗``: ours and half of its 95% interval; in parentheses the printed number, its
printed "±", and ours minus the printed number; then a mark. A part that is not known is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from cfbench_core.verdicts import CONFIRMED, NOT_COMPARABLE, NOT_REPRODUCIBLE, REFUTED, UNDECIDED, Interval

MARKS: Mapping[str, str] = {
    CONFIRMED: "✓",
    REFUTED: "✗",
    UNDECIDED: "?",
    NOT_COMPARABLE: "–",
    NOT_REPRODUCIBLE: "∅",
}
LEGEND = (
    "Cells: ours ±half of its 95% interval (printed ±printed deviation, difference) and the verdict:\n"
    + ", ".join(f"{mark} {word}" for word, mark in MARKS.items())
    + "."
)
"""What the parts of a cell mean, and its marks."""


def verdict_cell(
    ours: Interval,
    printed: float,
    verdict: str,
    number: Callable[[float], str],
    *,
    deviation: float = math.nan,
    state: str = "",
) -> str:
    """The text of one cell.

    Args:
        ours: our number with its interval.
        printed: the number of the paper; NaN if it prints none.
        verdict: a word of ``verdicts.VERDICTS``; one that numbers do not have has no mark.
        number: how a number is written.
        deviation: the printed "+-"; NaN where there is none.
        state: what stands for our number where there is none, such as "timeout".
    """
    mark = MARKS.get(verdict, "")
    known = not math.isnan(ours.value)
    shown = _with_spread(number, ours.value, (ours.high - ours.low) / 2) if known else state or "-"
    if math.isnan(printed):
        return shown
    inside = _with_spread(number, printed, deviation)
    if known:
        difference = ours.value - printed
        inside += f", {'-' if difference < 0 else '+'}{number(abs(difference))}"
    return " ".join(filter(None, (shown, f"({inside})", mark)))


def _with_spread(number: Callable[[float], str], value: float, spread: float) -> str:
    return number(value) + ("" if math.isnan(spread) else f" ±{number(spread)}")
