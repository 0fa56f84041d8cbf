"""The plots of a report's tables and ranks, as inline SVG (see ``charts``).

No meaning rests on colour alone: the best are filled and the others hollow, certified and reference rows are
dashed and baselines dotted, and everything carries its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cfbench_core.plan import TIME
from cfbench_core.reports.charts.scatter import Point, scatter_chart
from cfbench_core.reports.charts.svg import (
    Scale,
    decades,
    drawing,
    duration,
    element,
    line,
    long,
    longest,
    short,
    text,
)
from cfbench_core.reports.table_data import Entry, Header, Row, Table

WIDTH = 340
_LINE = 21


# Dots with intervals


def dot_plot(table: Table, place: int) -> str:
    """One metric of a table: a line for each competitor, its mean and interval; controls as lines across.

    Empty when there is nothing to show.
    """
    header = table.headers[place]
    rows = [row for row in table.lines if not row.role]
    measured = [row for row in table.lines if row.role and row.entries[place].number.n]
    shown = [row.entries[place] for row in [*rows, *measured] if row.entries[place].number.n]
    if not shown:
        return ""
    left = 12 + longest((short(row.name) for row in rows), bold=True)
    right = WIDTH - 14
    scale = _scale(header, shown, left, right)
    controls = _controls(measured, place, scale)
    top = 6 + 13 * len(controls)
    bottom = top + _LINE * max(len(rows), 1) + 4
    parts = list(_axis(scale, top, bottom))
    for number, together in enumerate(controls):
        parts += _control(together, place, scale, 6 + 13 * number, bottom, band=len(measured) <= 2)
    for number, row in enumerate(rows):
        parts += _dot(row, place, scale, top + _LINE * (number + 0.5) + 2)
    parts += _better(header, left, right, bottom + 31)
    described = "; ".join(f"{row.label} {row.entries[place].text}" for row in table.lines)
    height = bottom + (36 if header.arrow else 20)
    parts.sort(key=lambda part: part.startswith("<text"))  # names above the lines
    return drawing(WIDTH, height, f"{header.label}: {table.title}. {described}", parts)


def _controls(rows: Sequence[Row], place: int, scale: Scale) -> list[list[Row]]:
    """Controls of one role whose lines fall together, so that they share a label."""

    def at(row: Row) -> float:
        return scale(row.entries[place].number.mean)

    groups: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.role, at(row))):
        if groups and groups[-1][-1].role == row.role and at(row) - at(groups[-1][-1]) < 4:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _scale(header: Header, shown: Sequence[Entry], start: float, stop: float) -> Scale:
    """Wide enough for all intervals, not beyond the metric's range; times are logarithmic."""
    ends = [v for e in shown for v in (e.number.mean, e.number.ci_low, e.number.ci_high) if not math.isnan(v)]
    low, high = min(ends), max(ends)
    if header.column is TIME and low > 0:
        return Scale(*decades(ends), start, stop, True)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - margin, high + margin
    if header.column.range is not None:
        least, most = header.column.range
        low, high = max(low, min(least, *ends)), min(high, max(most, *ends))
    return Scale(low, high, start, stop)


def _axis(scale: Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in scale.ticks():
        x = scale(tick)
        yield line("grid", x, top, x, bottom)
        yield text("tick", x, bottom + 13, f"{tick:g}", anchor="middle")
    yield line("axis", scale.start, bottom, scale.stop, bottom)


def _control(
    rows: Sequence[Row], place: int, scale: Scale, y: float, bottom: float, band: bool
) -> Iterator[str]:
    """Controls: their means as lines across, their intervals as bands, their names above."""
    role = rows[0].role
    for row in rows:
        number = row.entries[place].number
        x = scale(number.mean)
        if band and not math.isnan(number.half_width):
            low, high = scale(number.ci_low), scale(number.ci_high)
            yield element(
                f"rect band {role}", x=low, y=y + 7, width=max(high - low, 0.5), height=bottom - y - 7
            )
        yield line(f"control {role}", x, y + 7, x, bottom)
    label = f"{rows[0].name}{f' and {len(rows) - 1} more' if len(rows) > 1 else ''} ({role})"
    wide = long(label, bold=True)
    at, anchor = (x + 4, "start") if x + 4 + wide <= WIDTH else (max(x - 4, wide), "end")
    tooltip = "; ".join(f"{row.label}: {row.entries[place].text}" for row in rows)
    yield text(f"name {role}", at, y + 9, label, anchor, tooltip)


def _dot(row: Row, place: int, scale: Scale, y: float) -> Iterator[str]:
    entry = row.entries[place]
    number = entry.number
    strong = " best" if entry.emphasis == "best" else ""
    tooltip = f"{row.label}: {entry.text} {number.coverage if number.n else ''}".rstrip()
    yield text(f"name{strong}", scale.start - 8, y + 4, short(row.name), "end", tooltip)
    if not number.n:
        yield text("outcome", scale.start + 6, y + 4, entry.text)
        return
    if not math.isnan(number.half_width):
        yield line(f"interval{strong}", scale(number.ci_low), y, scale(number.ci_high), y)
    part = " partial" if row.status == "partial" else ""
    yield element(f"circle dot{strong}{part}", tooltip, cx=scale(number.mean), cy=y, r=4.5)


def _better(header: Header, left: float, right: float, y: float) -> Iterator[str]:
    if header.column.direction == "higher":
        yield text("hint", right, y, "better →", "end")
    elif header.column.direction == "lower":
        yield text("hint", left, y, "← better")


# What it costs


def cost_plot(table: Table) -> str:
    """The primary metric against the time of one explanation.

    Empty when fewer than two explainers have both numbers.
    """
    place = table.primary
    time = next((n for n, header in enumerate(table.headers) if header.column is TIME), None)
    if place is None or time is None:
        return ""
    header, scale = table.headers[place], table.headers[time].scale
    points = [
        Point(
            row.name,
            row.entries[time].number.mean / scale,
            row.entries[place].number.mean,
            role="partial" if row.status == "partial" and not row.role else row.role,
        )
        for row in table.rows
        if row.entries[time].number.mean > 0 and row.entries[place].number.n
    ]
    if len(points) < 2:
        return ""
    return scatter_chart(
        points,
        title=f"{header.name} against the time of one explanation: {table.title}",
        x_label="time of one explanation",
        y_label=header.name,
        x_direction="lower",
        y_direction=header.column.direction,
        log_x=True,
        x_text=duration,
        width=440,
    )


# Ranks


def critical_difference_plot(
    names: Sequence[str], average_ranks: Sequence[float], difference: float, bars: Sequence[tuple[int, ...]]
) -> str:
    """Demšar's diagram, upright for small screens: average ranks as dots, 1 on the left.

    Args:
        difference: the critical one, drawn above as a yardstick.
        bars: indices of methods without a significant difference, from
            :func:`cfbench_core.statistics.indistinguishable`; each is a bar on the right.
    """
    order = [int(method) for method in np.argsort(average_ranks, kind="stable")]
    width, top = 440, 30
    left = 12 + longest(map(short, names), bold=True)
    right = width - 48 - 9 * len(bars)
    scale = Scale(1, max(len(names), 2), left, right)
    heights = {method: top + _LINE * (place + 0.5) for place, method in enumerate(order)}
    bottom = top + _LINE * len(names)
    parts = list(_axis(scale, top, bottom))
    for method, y in heights.items():
        x, rank = scale(average_ranks[method]), f"{average_ranks[method]:.2f}"
        tooltip = f"{names[method]}: average rank {rank}"
        parts.append(text("name", left - 8, y + 4, short(names[method]), "end", tooltip))
        parts.append(element("circle dot best", tooltip, cx=x, cy=y, r=4.5))
        parts.append(text("tick", x + 8, y + 4, rank))
    for number, bar in enumerate(bars):
        x = right + 43 + 9 * number
        parts.append(line("same", x, heights[bar[0]] - 4, x, heights[bar[-1]] + 4))
    parts.append(line("same", left, 20, scale(min(1 + difference, scale.high)), 20))
    parts.append(text("hint", left, 13, f"critical difference {difference:.2f}"))
    described = "; ".join(f"{names[method]} {average_ranks[method]:.2f}" for method in order)
    return drawing(width, bottom + 20, f"Average ranks: {described}", parts)
