"""Plots as inline SVG. Colours and fonts are the page's (CSS classes), so that light, dark and print need no second copy.

No meaning rests on colour alone: the best are filled and the others hollow, bounds are dashed and floors dotted, and
everything carries its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from cfbench_core.reports.tables import Entry, Header, Row, Table
from cfbench_core.run_directory import TIME

WIDTH = 340
_LINE = 21
_LETTER = 6.1  # the width of a letter of 11 px, on average


class Scale(NamedTuple):
    """Values between ``low`` and ``high`` onto pixels between ``start`` and ``stop``."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)
        place = math.log10(value) if self.logarithmic else value
        return self.start + (place - low) / (high - low) * (self.stop - self.start)

    def ticks(self, wanted: int = 4) -> list[float]:
        """Round numbers within the scale."""
        if self.logarithmic:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            step = max(1, math.ceil(len(powers) / (wanted + 2)))
            return [10.0**power for power in powers[::step]]
        rough = (self.high - self.low) / wanted
        step = min((m * 10 ** math.floor(math.log10(rough)) for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(s - rough))
        first = math.ceil(self.low / step - 1e-9)
        return [round(n * step, 12) for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


# Dots with intervals


def dot_plot(table: Table, place: int) -> str:
    """One metric of a table: a line for each competitor, its mean and interval; controls as lines across.

    Empty when there is nothing to show.
    """
    header = table.headers[place]
    rows = [row for row in table.rows if not row.role]
    controls = [row for row in table.rows if row.role and row.entries[place].number.n]
    shown = [row.entries[place] for row in [*rows, *controls] if row.entries[place].number.n]
    if not shown:
        return ""
    left = 12 + _LETTER * min(max((len(row.name) for row in rows), default=4), 20)
    scale = _scale(header, shown, left, WIDTH - 14)
    top = 6 + 13 * len(controls)
    bottom = top + _LINE * max(len(rows), 1) + 4
    parts = [
        *_axis(scale, top, bottom),
        *(part for n, row in enumerate(controls) for part in _control(row, place, scale, 6 + 13 * n, bottom)),
        *(part for n, row in enumerate(rows) for part in _dot(row, place, scale, top + _LINE * n + _LINE / 2 + 2)),
        *_better(header, left, WIDTH - 14, bottom + 31),
    ]
    name = f"{header.label}: {table.title}. " + "; ".join(f"{row.label} {row.entries[place].text}" for row in table.rows)
    return _svg(WIDTH, bottom + (36 if header.arrow else 20), name, parts)


def _scale(header: Header, shown: Sequence[Entry], start: float, stop: float) -> Scale:
    """Wide enough for all intervals, not beyond the metric's range; times are logarithmic."""
    ends = [v for e in shown for v in (e.number.mean, e.number.ci_low, e.number.ci_high) if not math.isnan(v)]
    low, high = min(ends), max(ends)
    if header.column is TIME and low > 0:
        return Scale(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high) + 1e-9), start, stop, True)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - margin, high + margin
    if header.column.range is not None:
        least, most = header.column.range
        low, high = max(low, min(least, *ends)), min(high, max(most, *ends))
    return Scale(low, high, start, stop)


def _axis(scale: Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in scale.ticks():
        x = scale(tick)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{bottom + 13:.1f}" text-anchor="middle">{tick:g}</text>'
    yield f'<line class="axis" x1="{scale.start:.1f}" x2="{scale.stop:.1f}" y1="{bottom:.1f}" y2="{bottom:.1f}"/>'


def _control(row: Row, place: int, scale: Scale, y: float, bottom: float) -> Iterator[str]:
    """A bound or a floor: its mean as a line across, its interval as a band, its name above."""
    number = row.entries[place].number
    x = scale(number.mean)
    if not math.isnan(number.half_width):
        low, high = scale(number.ci_low), scale(number.ci_high)
        band = f'x="{low:.1f}" width="{max(high - low, 0.5):.1f}" y="{y + 7:.1f}" height="{bottom - y - 7:.1f}"'
        yield f'<rect class="band {row.role}" {band}/>'
    yield f'<line class="control {row.role}" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 7:.1f}" y2="{bottom:.1f}"/>'
    near_end = x > (scale.start + scale.stop) / 2
    anchor, at = ("end", x - 4) if near_end else ("start", x + 4)
    title = f"<title>{escape(row.label)}: {escape(row.entries[place].text)}</title>"
    text = escape(row.label)
    yield f'<text class="name {row.role}" x="{at:.1f}" y="{y + 9:.1f}" text-anchor="{anchor}">{text}{title}</text>'


def _dot(row: Row, place: int, scale: Scale, y: float) -> Iterator[str]:
    entry = row.entries[place]
    short = row.name if len(row.name) <= 20 else row.name[:19] + "…"
    title = f"<title>{escape(row.label)}: {escape(entry.text)} {escape(entry.number.coverage)}</title>"
    strong = " best" if entry.emphasis == "best" else ""
    yield (
        f'<text class="name{strong}" x="{scale.start - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(short)}{title}</text>'
    )
    if not entry.number.n:
        yield f'<text class="outcome" x="{scale.start + 6:.1f}" y="{y + 4:.1f}">{escape(entry.text)}</text>'
        return
    if not math.isnan(entry.number.half_width):
        low, high = scale(entry.number.ci_low), scale(entry.number.ci_high)
        yield f'<line class="interval{strong}" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    part = " partial" if row.status == "partial" else ""
    yield f'<circle class="dot{strong}{part}" cx="{scale(entry.number.mean):.1f}" cy="{y:.1f}" r="4.5">{title}</circle>'


def _better(header: Header, left: float, right: float, y: float) -> Iterator[str]:
    if header.column.direction == "higher":
        yield f'<text class="hint" x="{right:.1f}" y="{y:.1f}" text-anchor="end">better →</text>'
    elif header.column.direction == "lower":
        yield f'<text class="hint" x="{left:.1f}" y="{y:.1f}">← better</text>'


# What it costs


class Point(NamedTuple):
    """An explainer in the plane: seconds and effect."""

    row: Row
    seconds: float
    effect: float


def cost_plot(table: Table) -> str:
    """The first metric that has a direction against the time of one explanation (logarithmic).

    The line joins the competitors that nobody beats on both. Empty when fewer than two explainers have both numbers.
    """
    place = next((n for n, header in enumerate(table.headers) if header.arrow and header.column is not TIME), None)
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
    taken: list[tuple[float, float, float, float]] = [(x(p.seconds) - 6, y(p.effect) - 6, 12, 12) for p in points]
    for point in sorted(points, key=lambda point: point.seconds):
        parts += _mark(point, x(point.seconds), y(point.effect), width, table.headers[place], taken)
    name = f"{header.name} against seconds per explanation: {table.title}. " + "; ".join(
        f"{p.row.label} {p.effect:.3g} in {p.seconds:.2g} s" for p in points
    )
    return _svg(width, height, name, parts)


def _cost_axes(
    x: Scale, y: Scale, header: Header, width: float, height: float, left: float, top: float
) -> Iterator[str]:
    bottom = height - 40
    for tick in x.ticks(5):
        yield f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{x(tick):.1f}" y="{bottom + 14}" text-anchor="middle">{_duration(tick)}</text>'
    for tick in y.ticks(5):
        yield f'<line class="grid" x1="{left}" x2="{width - 16}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        yield f'<text class="tick" x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
    yield f'<text class="hint" x="4" y="12">{escape(header.name)}, better upwards</text>'
    yield f'<text class="hint" x="{width - 16}" y="{height - 6}" text-anchor="end">time of one explanation</text>'
    yield f'<text class="hint" x="{left}" y="{height - 6}">← faster</text>'


def _front(points: Sequence[Point], header: Header, x: Scale, y: Scale) -> Iterator[str]:
    """The staircase of the competitors that no other competitor beats on both."""
    sign = -1 if header.column.direction == "higher" else 1
    front: list[Point] = []
    for point in sorted((p for p in points if not p.row.role), key=lambda p: (p.seconds, sign * p.effect)):
        if not front or sign * point.effect < sign * front[-1].effect:
            front.append(point)
    if len(front) > 1:
        path = f"M{x(front[0].seconds):.1f},{y(front[0].effect):.1f}"
        path += "".join(f"H{x(p.seconds):.1f}V{y(p.effect):.1f}" for p in front[1:])
        yield f'<path class="front" d="{path}"/>'


def _mark(
    point: Point, x: float, y: float, width: float, header: Header, taken: list[tuple[float, float, float, float]]
) -> Iterator[str]:
    row = point.row
    text = f"{row.label}: {header.name} {point.effect:.3g}, {_duration(point.seconds)}"
    title = f"<title>{escape(text)}</title>"
    if row.role == "bound":
        yield f'<path class="mark bound" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z">{title}</path>'
    elif row.role == "floor":
        yield f'<rect class="mark floor" x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9">{title}</rect>'
    else:
        part = " partial" if row.status == "partial" else ""
        yield f'<circle class="dot best{part}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">{title}</circle>'
    at_x, at_y = _free(x, y, row.label, width, taken)
    yield f'<text class="name {row.role}" x="{at_x:.1f}" y="{at_y:.1f}">{escape(row.label)}</text>'


def _free(
    x: float, y: float, label: str, width: float, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float]:
    """Where a label can stand without covering a point or another label: right, left, above, below, further off."""
    wide = _LETTER * len(label)
    right, left, middle = x + 9, x - 9 - wide, min(max(x - wide / 2, 2), width - wide - 2)
    candidates = [(right, y + 4), (left, y + 4)]
    for off in (16, 28, 40):
        candidates += [(middle, y - off + 6), (middle, y + off), (right, y - off + 6), (right, y + off), (left, y + off)]
    candidates = [(cx, cy) for cx, cy in candidates if 0 <= cx <= width - wide] or [(middle, y - 10)]
    overlaps: Callable[[tuple[float, float]], float] = lambda at: sum(  # noqa: E731
        max(0.0, min(at[0] + wide, bx + bw) - max(at[0], bx)) * max(0.0, min(at[1] + 3, by + bh) - max(at[1] - 9, by))
        for bx, by, bw, bh in taken
    )
    best = min(candidates, key=overlaps)
    taken.append((best[0], best[1] - 9, wide, 12))
    return best


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


# Ranks


def critical_difference_plot(names: Sequence[str], average_ranks: Sequence[float], difference: float,
                             bars: Sequence[tuple[int, ...]]) -> str:
    """Demšar's diagram, turned upright for small screens: average ranks as dots, 1 on the left; a bar joins the
    methods that Nemenyi's test cannot tell apart.

    Args:
        bars: indices of methods, as :func:`cfbench_core.statistics.indistinguishable` gives them.
    """
    order = np.argsort(average_ranks, kind="stable")
    place = {int(method): n for n, method in enumerate(order)}
    left = 12 + _LETTER * min(max(len(name) for name in names), 24)
    width, top = 440, 30
    right = width - 48 - 9 * len(bars)
    scale = Scale(1, max(len(names), 2), left, right)
    bottom = top + _LINE * len(names)
    parts = list(_axis(scale, top, bottom))
    for method, name in enumerate(names):
        y = top + _LINE * place[method] + _LINE / 2
        x = scale(average_ranks[method])
        title = f"<title>{escape(name)}: average rank {average_ranks[method]:.2f}</title>"
        parts.append(f'<text class="name" x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(name[:24])}</text>')
        parts.append(f'<circle class="dot best" cx="{x:.1f}" cy="{y:.1f}" r="4.5">{title}</circle>')
        parts.append(f'<text class="tick" x="{x + 8:.1f}" y="{y + 4:.1f}">{average_ranks[method]:.2f}</text>')
    for n, bar in enumerate(bars):
        x = right + 43 + 9 * n
        low, high = (top + _LINE * f(place[m] for m in bar) + _LINE / 2 for f in (min, max))
        parts.append(f'<line class="same" x1="{x}" x2="{x}" y1="{low - 4:.1f}" y2="{high + 4:.1f}"/>')
    end = scale(min(1 + difference, scale.high))
    parts.append(f'<line class="same" x1="{left:.1f}" x2="{end:.1f}" y1="20" y2="20"/>')
    parts.append(f'<text class="hint" x="{left:.1f}" y="13">critical difference {difference:.2f}</text>')
    described = "; ".join(f"{names[int(m)]} {average_ranks[int(m)]:.2f}" for m in order)
    return _svg(width, bottom + 20, f"Average ranks: {described}", parts)


def _svg(width: float, height: float, name: str, parts: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img"'
    return f'{head} aria-label="{escape(name)}">{"".join(parts)}</svg>'
