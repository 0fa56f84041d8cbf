"""Plots as inline SVG. Colours and fonts are the page's (CSS classes), so that light, dark and print need no
second copy.

No meaning rests on colour alone: the best are filled and the others hollow, bounds are dashed and floors
dotted, and everything carries its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from cfbench_core.reports.tables import Entry, Header, Row, Table
from cfbench_core.run_directory import TIME

WIDTH = 340
_LINE = 21
_LETTER = 6.6  # the width of a letter of 11 px, on average and bold


class Scale(NamedTuple):
    """Values between ``low`` and ``high`` onto pixels between ``start`` and ``stop``."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = (
            (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)
        )
        place = math.log10(value) if self.logarithmic else value
        return self.start + (place - low) / (high - low) * (self.stop - self.start)

    def ticks(self, wanted: int = 4) -> list[float]:
        """Round numbers within the scale."""
        if self.logarithmic:
            powers = range(
                math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1
            )
            step = max(1, math.ceil(len(powers) / (wanted + 2)))
            return [10.0**power for power in powers[::step]]
        rough = (self.high - self.low) / wanted
        step = min(
            (m * 10 ** math.floor(math.log10(rough)) for m in (1, 2, 2.5, 5, 10)),
            key=lambda s: abs(s - rough),
        )
        first = math.ceil(self.low / step - 1e-9)
        return [round(n * step, 12) for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


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
    left = 12 + _LETTER * min(max((len(row.name) for row in rows), default=4), 20)
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
    return _svg(WIDTH, height, f"{header.label}: {table.title}. {described}", parts)


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
        return Scale(
            10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high) + 1e-9), start, stop, True
        )
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - margin, high + margin
    if header.column.range is not None:
        least, most = header.column.range
        low, high = max(low, min(least, *ends)), min(high, max(most, *ends))
    return Scale(low, high, start, stop)


def _axis(scale: Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in scale.ticks():
        x = scale(tick)
        yield _line("grid", x, top, x, bottom)
        yield _text("tick", x, bottom + 13, f"{tick:g}", anchor="middle")
    yield _line("axis", scale.start, bottom, scale.stop, bottom)


def _control(
    rows: Sequence[Row], place: int, scale: Scale, y: float, bottom: float, band: bool
) -> Iterator[str]:
    """Bounds or floors: their means as lines across, their intervals as bands, their names above."""
    role = rows[0].role
    for row in rows:
        number = row.entries[place].number
        x = scale(number.mean)
        if band and not math.isnan(number.half_width):
            low, high = scale(number.ci_low), scale(number.ci_high)
            yield _element(
                f"rect band {role}", x=low, y=y + 7, width=max(high - low, 0.5), height=bottom - y - 7
            )
        yield _line(f"control {role}", x, y + 7, x, bottom)
    label = f"{rows[0].name}{f' and {len(rows) - 1} more' if len(rows) > 1 else ''} ({role})"
    long = _LETTER * len(label)
    at, anchor = (x + 4, "start") if x + 4 + long <= WIDTH else (max(x - 4, long), "end")
    tooltip = "; ".join(f"{row.label}: {row.entries[place].text}" for row in rows)
    yield _text(f"name {role}", at, y + 9, label, anchor, tooltip)


def _dot(row: Row, place: int, scale: Scale, y: float) -> Iterator[str]:
    entry = row.entries[place]
    number = entry.number
    strong = " best" if entry.emphasis == "best" else ""
    tooltip = f"{row.label}: {entry.text} {number.coverage if number.n else ''}".rstrip()
    yield _text(f"name{strong}", scale.start - 8, y + 4, _short(row.name), "end", tooltip)
    if not number.n:
        yield _text("outcome", scale.start + 6, y + 4, entry.text)
        return
    if not math.isnan(number.half_width):
        yield _line(f"interval{strong}", scale(number.ci_low), y, scale(number.ci_high), y)
    part = " partial" if row.status == "partial" else ""
    yield _element(f"circle dot{strong}{part}", tooltip, cx=scale(number.mean), cy=y, r=4.5)


def _better(header: Header, left: float, right: float, y: float) -> Iterator[str]:
    if header.column.direction == "higher":
        yield _text("hint", right, y, "better →", "end")
    elif header.column.direction == "lower":
        yield _text("hint", left, y, "← better")


# What it costs


class Point(NamedTuple):
    """An explainer in the plane: seconds and effect."""

    row: Row
    seconds: float
    effect: float


def cost_plot(table: Table) -> str:
    """The first metric that has a direction against the time of one explanation.

    The line joins the competitors that nobody beats on both. Empty when fewer than two explainers have both
    numbers.
    """
    place = next((n for n, header in enumerate(table.headers) if header.compared), None)
    time = next((n for n, header in enumerate(table.headers) if header.column is TIME), None)
    if place is None or time is None:
        return ""
    header, scale = table.headers[place], table.headers[time].scale
    points = [
        Point(row, row.entries[time].number.mean / scale, row.entries[place].number.mean)
        for row in table.rows
        if row.entries[time].number.mean > 0 and row.entries[place].number.n
    ]
    if len(points) < 2:
        return ""
    width, height, left, top = 440, 270, 48, 24
    times = [point.seconds for point in points]
    low, high = 10 ** math.floor(math.log10(min(times))), 10 ** math.ceil(math.log10(max(times)) + 1e-9)
    x = Scale(low, high, left, width - 16, True)
    entries = [point.row.entries[place] for point in points]
    value = _scale(header, entries, height - 40, top + 8)
    y = value if header.column.direction == "higher" else value._replace(start=value.stop, stop=value.start)
    parts = [*_cost_axes(x, y, header, width, height, left, top), *_front(points, header, x, y)]
    taken = [Box(x(point.seconds) - 6, y(point.effect) - 6, 12, 12) for point in points]
    for point in sorted(points, key=lambda point: point.seconds):
        parts += _mark(point, x(point.seconds), y(point.effect), header, (left, width), taken)
    name = f"{header.name} against seconds per explanation: {table.title}. " + "; ".join(
        f"{p.row.label} {p.effect:.3g} in {p.seconds:.2g} s" for p in points
    )
    return _svg(width, height, name, parts)


def _cost_axes(
    x: Scale, y: Scale, header: Header, width: float, height: float, left: float, top: float
) -> Iterator[str]:
    bottom = height - 40
    for tick in x.ticks(5):
        yield _line("grid", x(tick), top, x(tick), bottom)
        yield _text("tick", x(tick), bottom + 17, _duration(tick), "middle")
    for tick in y.ticks(5):
        yield _line("grid", left, y(tick), width - 16, y(tick))
        yield _text("tick", left - 6, y(tick) + 4, f"{tick:g}", "end")
    yield _text("hint", 4, 12, f"{header.name}, better upwards")
    yield _text("hint", width - 16, height - 6, "time of one explanation", "end")
    yield _text("hint", left, height - 6, "← faster")


def _front(points: Sequence[Point], header: Header, x: Scale, y: Scale) -> Iterator[str]:
    """The staircase of the complete competitors that no other complete competitor beats on both."""
    sign = -1 if header.column.direction == "higher" else 1
    front: list[Point] = []
    complete = [point for point in points if not point.row.role and point.row.status != "partial"]
    for point in sorted(complete, key=lambda p: (p.seconds, sign * p.effect)):
        if not front or sign * point.effect < sign * front[-1].effect:
            front.append(point)
    if len(front) > 1:
        path = f"M{x(front[0].seconds):.1f},{y(front[0].effect):.1f}"
        path += "".join(f"H{x(p.seconds):.1f}V{y(p.effect):.1f}" for p in front[1:])
        yield _element("path front", d=path)


def _mark(
    point: Point, x: float, y: float, header: Header, within: tuple[float, float], taken: list[Box]
) -> Iterator[str]:
    row = point.row
    tooltip = f"{row.label}: {header.name} {point.effect:.3g}, {_duration(point.seconds)}"
    if row.role == "bound":
        yield _element("path mark bound", tooltip, d=f"M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z")
    elif row.role == "floor":
        yield _element("rect mark floor", tooltip, x=x - 4.5, y=y - 4.5, width=9, height=9)
    else:
        part = " partial" if row.status == "partial" else ""
        yield _element(f"circle dot best{part}", tooltip, cx=x, cy=y, r=4.5)
    box = _free(x, y, _LETTER * len(row.label), within, taken)
    taken.append(box)
    yield _text(f"name {row.role}", box.x, box.y + 9, row.label)


class Box(NamedTuple):
    """A rectangle that is taken, by a point or a label."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        down = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return max(across, 0.0) * max(down, 0.0)


def _free(x: float, y: float, wide: float, within: tuple[float, float], taken: Sequence[Box]) -> Box:
    """The first place that covers least: right of the point, left of it, above, below, then further off."""
    start, stop = within
    right, left, middle = x + 9, x - 9 - wide, min(max(x - wide / 2, start), stop - wide)
    places = [(right, y - 5), (left, y - 5)]
    for off in (13, 25, 37):
        places += [(across, y - 5 + down) for down in (-off, off) for across in (middle, right, left)]
    boxes = [Box(across, down, wide, 12) for across, down in places if start <= across <= stop - wide]
    boxes = boxes or [Box(middle, y - 18, wide, 12)]
    return min(boxes, key=lambda box: sum(box.overlap(other) for other in taken))


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


# Ranks


def critical_difference_plot(
    names: Sequence[str], average_ranks: Sequence[float], difference: float, bars: Sequence[tuple[int, ...]]
) -> str:
    """Demšar's diagram, upright for small screens: average ranks as dots, 1 on the left.

    Args:
        difference: the critical one, drawn above as a yardstick.
        bars: indices of methods that cannot be told apart, from
            :func:`cfbench_core.statistics.indistinguishable`; each is a bar on the right.
    """
    order = [int(method) for method in np.argsort(average_ranks, kind="stable")]
    width, top = 440, 30
    left = 12 + _LETTER * min(max(len(name) for name in names), 20)
    right = width - 48 - 9 * len(bars)
    scale = Scale(1, max(len(names), 2), left, right)
    heights = {method: top + _LINE * (place + 0.5) for place, method in enumerate(order)}
    bottom = top + _LINE * len(names)
    parts = list(_axis(scale, top, bottom))
    for method, y in heights.items():
        x, rank = scale(average_ranks[method]), f"{average_ranks[method]:.2f}"
        tooltip = f"{names[method]}: average rank {rank}"
        parts.append(_text("name", left - 8, y + 4, _short(names[method]), "end", tooltip))
        parts.append(_element("circle dot best", tooltip, cx=x, cy=y, r=4.5))
        parts.append(_text("tick", x + 8, y + 4, rank))
    for number, bar in enumerate(bars):
        x = right + 43 + 9 * number
        parts.append(_line("same", x, heights[bar[0]] - 4, x, heights[bar[-1]] + 4))
    parts.append(_line("same", left, 20, scale(min(1 + difference, scale.high)), 20))
    parts.append(_text("hint", left, 13, f"critical difference {difference:.2f}"))
    described = "; ".join(f"{names[method]} {average_ranks[method]:.2f}" for method in order)
    return _svg(width, bottom + 20, f"Average ranks: {described}", parts)


# Elements


def _element(kind: str, tooltip: str = "", **attributes: float | str) -> str:
    """``_element("circle dot best", cx=1)``: the element, its classes, and its attributes."""
    name, _, classes = kind.partition(" ")
    written = "".join(
        f' {key}="{value if isinstance(value, str) else f"{value:.1f}"}"' for key, value in attributes.items()
    )
    title = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    return f'<{name} class="{classes}"{written}>{title}</{name}>'


def _line(classes: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return _element(f"line {classes}", x1=x1, y1=y1, x2=x2, y2=y2)


def _text(classes: str, x: float, y: float, text: str, anchor: str = "start", tooltip: str = "") -> str:
    title = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{classes}" {place}>{escape(text)}{title}</text>'


def _short(name: str) -> str:
    return name if len(name) <= 20 else f"{name[:19]}…"


def _svg(width: float, height: float, name: str, parts: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img"'
    return f'{head} aria-label="{escape(name)}">{"".join(parts)}</svg>'
