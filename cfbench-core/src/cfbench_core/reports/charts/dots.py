"""Dots with intervals over categories: a line for each series, a panel for each category.

For categories without an order (models, datasets): nothing joins them, and no series is drawn over another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from cfbench_core.reports.charts.line import Series
from cfbench_core.reports.charts.svg import (
    NAME,
    SMALLEST,
    Scale,
    decades,
    drawable,
    drawing,
    element,
    interval_text,
    line,
    longest,
    short,
    span,
    text,
    written,
)

PANEL, GAP = 180.0, 26.0
"""Width of a panel, and between two of them."""
_LINE, _TOP = 19, 44


def dot_chart(
    series: Sequence[Series],
    panels: Sequence[str],
    *,
    title: str,
    label: str,
    direction: str = "",
    log: bool = False,
    number: Callable[[float], str] = written,
) -> str:
    """The dots as SVG. All panels share one axis.

    Args:
        series: ``x`` is the place of the panel, ``y`` the value there.
        panels: names of the categories.
        title: what is drawn; with the numbers it is what a screen reader reads.
        label: what the axis shows. direction: "higher" or "lower" is better; empty: neither.
        log: powers of ten; what is not positive has no place there.
        number: how a number on the axis is written.
    """
    values = [[_values(one, place) for place in range(len(panels))] for one in series]
    if log:
        values = [[tuple(v if v >= SMALLEST else math.nan for v in at) for at in row] for row in values]
    known = [v for row in values for at in row for v in at if drawable(v)]
    low, high = decades(known or [1.0]) if log else span(known)
    left = 14 + longest(short(one.label, NAME) for one in series)
    bottom = _TOP + _LINE * max(len(series), 1)
    parts: list[str] = [text("hint", 4, 13, _hint(label, direction))]
    for row, one in enumerate(series):
        y = _TOP + _LINE * (row + 0.5)
        name = short(one.label, NAME)
        parts.append(
            text(
                f"name {one.role}".rstrip(),
                left - 8,
                y + 4,
                name,
                "end",
                one.label if name != one.label else "",
            )
        )
    for place, panel in enumerate(panels):
        start = left + place * (PANEL + GAP)
        scale = Scale(low, high, start, start + PANEL, log)
        parts += _frame(scale, panel, bottom, number)
        for row, one in enumerate(series):
            parts += _dot(one, values[row][place], panel, scale, number, _TOP + _LINE * (row + 0.5))
    described = "; ".join(
        f"{one.label} "
        + ", ".join(f"{panel}: {_with_interval(at, number)}" for panel, at in zip(panels, row, strict=True))
        for one, row in zip(series, values, strict=True)
    )
    width = left + len(panels) * (PANEL + GAP)
    return drawing(width, bottom + 24, f"{title}. {label}: {described}", parts, title)


def _values(one: Series, place: int) -> tuple[float, ...]:
    """Value, low and high of a series in a panel; NaN where it has none."""
    for n, x in enumerate(one.x):
        if x == place:
            columns = (one.y, one.low, one.high)
            return tuple(math.nan if column is None else float(list(column)[n]) for column in columns)
    return (math.nan, math.nan, math.nan)


def _hint(label: str, direction: str) -> str:
    better = {"higher": "better →", "lower": "← better"}.get(direction, "")
    return " · ".join(filter(None, (short(label, 80), better)))


def _frame(scale: Scale, panel: str, bottom: float, number: Callable[[float], str]) -> Iterator[str]:
    yield text("name", scale.start, _TOP - 8, short(panel, NAME), tooltip=panel)
    for tick in scale.ticks(3):
        yield line("grid", scale(tick), _TOP, scale(tick), bottom)
        yield text("tick", scale(tick), bottom + 14, number(tick), "middle")
    yield line("axis", scale.start, bottom, scale.stop, bottom)


def _with_interval(at: Sequence[float], number: Callable[[float], str]) -> str:
    """In the unit of the axis."""
    value, low, high = at
    if number is written or not drawable(value):
        return interval_text(value, low, high)
    interval = f" ({number(low)} to {number(high)})" if drawable(low) and drawable(high) else ""
    return f"{number(value)}{interval}"


def _dot(
    one: Series, at: Sequence[float], panel: str, scale: Scale, number: Callable[[float], str], y: float
) -> Iterator[str]:
    value, low, high = at
    kind = f" {one.role}".rstrip()
    if drawable(low) and drawable(high):
        yield line(f"interval{kind}", scale(low), y, scale(high), y)
    if drawable(value):
        tooltip = f"{one.label}, {panel}: {_with_interval(at, number)}"
        yield element(f"circle dot{kind}" if kind else "circle dot best", tooltip, cx=scale(value), cy=y, r=4)
