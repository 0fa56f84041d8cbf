"""Points in a plane: one good against another, and who is beaten on neither."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cfbench_core.reports.charts.svg import (
    LINE,
    NAME,
    SMALLEST,
    Box,
    Scale,
    decades,
    drawable,
    drawing,
    element,
    free_place,
    interval_text,
    line,
    long,
    longest,
    short,
    span,
    spread,
    text,
    written,
)
from cfbench_core.specs import ROLES

WIDTH = 520
MOST_NAMES = 60
"""Points with a name next to them, because each name is compared with all others for a place. Marks have tooltips."""
MOST_POINTS = 1000
"""Of more points, so many are drawn, and a line says how many are not."""
_TOP, _PLOT = 30, 250


@dataclass(frozen=True)
class Point:
    """A named place.

    Attributes:
        x, y: one that lacks either (NaN) is not drawn.
        x_low, x_high, y_low, y_high: ends of 95% intervals; NaN where there are none.
        role: "certified", "reference" or "baseline" for a control, "partial" for an incomplete competitor; these are
            not on the front.
    """

    name: str
    x: float
    y: float
    x_low: float = math.nan
    x_high: float = math.nan
    y_low: float = math.nan
    y_high: float = math.nan
    role: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} ({self.role})" if self.role in ROLES else self.name


def scatter_chart(
    points: Sequence[Point],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_direction: str,
    y_direction: str,
    log_x: bool = False,
    front: bool = True,
    x_text: Callable[[float], str] = written,
    width: float = WIDTH,
) -> str:
    """The points as SVG, each with its name.

    Args:
        title: what is drawn; with the numbers it is what a screen reader reads.
        x_direction, y_direction: "higher" or "lower" is better; empty: neither.
        log_x: powers of ten along x; what is not positive has no place there, and is listed below.
        front: joins the competitors that no other beats on both (where both have a direction).
        x_text: how a number on the x axis is written.
        width: in pixels.
    """
    shown = [p for p in points if drawable(p.x) and drawable(p.y) and (not log_x or p.x >= SMALLEST)]
    drawable_points = {id(p) for p in shown}
    left_out = [p.name for p in points if id(p) not in drawable_points]
    too_many = max(len(shown) - MOST_POINTS, 0)
    if too_many:
        chosen = {id(p) for p in _most_telling(shown, x_direction, y_direction)}
        others = [p for p in shown if id(p) not in chosen]
        shown = [p for p in shown if id(p) in chosen] + others[: MOST_POINTS - len(chosen)]
    top, bottom = _TOP, _TOP + max(_PLOT, (LINE + 1) * min(len(shown), MOST_NAMES))
    y = Scale(*span([v for p in shown for v in (p.y, p.y_low, p.y_high)]), bottom, top)
    left = 14 + longest(written(tick) for tick in y.ticks(5))
    aside = longest(short(p.label, NAME) for p in shown) + 24
    drawn: list[str] = []
    named = shown if len(shown) <= MOST_NAMES else _most_telling(shown, x_direction, y_direction)
    # Names find room next to their points; where not all do, the others stand in a column on the right.
    for right in (width - 16, max(width - aside, left + 80)):
        x = _x_scale(shown, log_x, left, right)
        drawn, placed = _points(shown, named, x, y, x_label, y_label)
        if placed:
            break
    parts = [*_axes(x, y, x_text)]
    if front and x_direction and y_direction:
        parts += _front(shown, x, y, x_direction, y_direction)
    parts += [*drawn, *_hints(x, bottom, x_label, y_label, x_direction, y_direction)]
    height = bottom + 42
    if left_out:
        words = f"not in the plane, without numbers there: {', '.join(left_out)}"
        parts.append(text("hint", 4, height + 6, short(words, int(width / 5.6)), tooltip=words))
        height += 14
    if too_many:
        parts.append(text("hint", 4, height + 6, f"{too_many:,} more points are in the data"))
        height += 14
    if not shown:
        parts.append(text("outcome", left + 8, top + 20, "nothing to draw: no numbers"))
    told_all = "; ".join(_description(p, x_label, y_label) for p in points[:MOST_POINTS])
    return drawing(width, height, f"{title}. {told_all}", parts, title)


def _x_scale(shown: Sequence[Point], log_x: bool, start: float, stop: float) -> Scale:
    ends = [v for p in shown for v in (p.x, p.x_low, p.x_high)]
    if log_x:
        positive = [v for v in ends if drawable(v) and v >= SMALLEST]
        return Scale(*decades(positive or [1.0]), start, stop, True)
    return Scale(*span(ends), start, stop)


def _axes(x: Scale, y: Scale, x_text: Callable[[float], str]) -> Iterator[str]:
    for tick in x.ticks(5):
        yield line("zero" if tick == 0 and x.low < 0 else "grid", x(tick), y.stop, x(tick), y.start)
        yield text("tick", x(tick), y.start + 17, x_text(tick), "middle")
    for tick in y.ticks(5):
        yield line("zero" if tick == 0 and y.low < 0 else "grid", x.start, y(tick), x.stop, y(tick))
        yield text("tick", x.start - 6, y(tick) + 4, written(tick), "end")


def _hints(
    x: Scale, bottom: float, x_label: str, y_label: str, x_direction: str, y_direction: str
) -> Iterator[str]:
    up = {"higher": "↑ better · ", "lower": "↓ better · "}.get(y_direction, "")
    yield text("hint", 4, 13, f"{up}{short(y_label, 80)}")
    if x_direction == "lower":
        yield text("hint", x.start, bottom + 34, f"← better · {short(x_label, 70)}")
    else:
        further = " · better →" if x_direction == "higher" else ""
        yield text("hint", x.stop, bottom + 34, f"{short(x_label, 70)}{further}", "end")


def _most_telling(points: Sequence[Point], x_direction: str, y_direction: str) -> list[Point]:
    """The front, then controls, then the first of the others: those that are named where there are many."""
    best = _unbeaten(points, x_direction, y_direction) if x_direction and y_direction else []
    controls = [point for point in points if point.role]
    ordered = {id(point): point for point in [*best, *controls, *points]}
    return list(ordered.values())[:MOST_NAMES]


def _front(shown: Sequence[Point], x: Scale, y: Scale, x_direction: str, y_direction: str) -> Iterator[str]:
    """The staircase of the competitors that no other beats on both."""
    front = _unbeaten(shown, x_direction, y_direction)
    if len(front) > 1:
        path = f"M{x(front[0].x):.1f},{y(front[0].y):.1f}"
        path += "".join(f"H{x(p.x):.1f}V{y(p.y):.1f}" for p in front[1:])
        yield element("path front", d=path)


def _unbeaten(shown: Sequence[Point], x_direction: str, y_direction: str) -> list[Point]:
    """The competitors that no other beats on both, along x."""
    across, up = (1 if d == "lower" else -1 for d in (x_direction, y_direction))
    front: list[Point] = []
    for point in sorted((p for p in shown if not p.role), key=lambda p: (across * p.x, up * p.y)):
        if not front or up * point.y < up * front[-1].y:
            front.append(point)
    return front


def _points(
    shown: Sequence[Point], named: Sequence[Point], x: Scale, y: Scale, x_label: str, y_label: str
) -> tuple[list[str], bool]:
    """Whiskers, marks and the names of those that are named; and whether all names found room next to their points."""
    with_name = {id(point) for point in named}
    whiskers: list[str] = []
    marks: list[str] = []
    names: list[str] = []
    taken = [Box(x(p.x) - 6, y(p.y) - 6, 12, 12) for p in shown]
    reach = [box for p in shown for box in _reach(p, x, y)]
    aside: list[Point] = []
    for point in sorted(shown, key=lambda p: (p.x, p.y)):
        whiskers += [line(f"whisker {point.role}".rstrip(), *ends) for ends in _intervals(point, x, y)]
        marks.append(_mark(point, x(point.x), y(point.y), _description(point, x_label, y_label)))
        if id(point) not in with_name:
            continue
        words = short(point.label, NAME)
        within = Box(x.start, 16, x.stop + 10 - x.start, y.start - 16)
        box, covered = free_place(x(point.x), y(point.y), long(words), within, taken, reach)
        if covered:
            aside.append(point)
        else:
            taken.append(box)
            names += _tie(x(point.x), y(point.y), box)
            names.append(text(f"name {point.role}".rstrip(), box.x, box.y + 9, words))
    names += _column(aside, x, y)
    return [*whiskers, *marks, *names], not aside


def _tie(x: float, y: float, box: Box) -> Iterator[str]:
    """A line from a point to its name, where it is not next to it."""
    across, down = min(max(x, box.x), box.x + box.width), min(max(y, box.y), box.y + box.height)
    if max(abs(across - x), abs(down - y)) > 10:
        yield element("path leader", d=f"M{x:.1f},{y:.1f}L{across:.1f},{down:.1f}")


def _column(aside: Sequence[Point], x: Scale, y: Scale) -> Iterator[str]:
    wanted = [y(point.y) for point in aside]
    places = spread(wanted, LINE, y.stop + LINE / 2, y.start - LINE / 2)
    for point, place in zip(aside, places, strict=True):
        yield element(
            "path leader", d=f"M{x(point.x) + 6:.1f},{y(point.y):.1f}L{x.stop + 10:.1f},{place:.1f}"
        )
        yield text(f"name {point.role}".rstrip(), x.stop + 13, place + 4, short(point.label, NAME))


def _reach(point: Point, x: Scale, y: Scale) -> Iterator[Box]:
    """What its whiskers take."""
    for x1, y1, x2, y2 in _intervals(point, x, y):
        yield Box(min(x1, x2) - 1, min(y1, y2) - 1, abs(x2 - x1) + 2, abs(y2 - y1) + 2)


def _intervals(point: Point, x: Scale, y: Scale) -> Iterator[tuple[float, float, float, float]]:
    """Ends of its whiskers, in pixels."""
    if drawable(point.y_low) and drawable(point.y_high):
        yield x(point.x), y(point.y_low), x(point.x), y(point.y_high)
    positive = not x.logarithmic or (point.x_low >= SMALLEST and point.x_high >= SMALLEST)
    if drawable(point.x_low) and drawable(point.x_high) and positive:
        yield x(point.x_low), y(point.y), x(point.x_high), y(point.y)


def _mark(point: Point, x: float, y: float, tooltip: str) -> str:
    if point.role == "certified":
        return element("path mark certified", tooltip, d=f"M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z")
    if point.role == "reference":
        return element("path mark reference", tooltip, d=f"M{x:.1f},{y + 6:.1f}l5.6,-10.2h-11.2z")
    if point.role == "baseline":
        return element("rect mark baseline", tooltip, x=x - 4.5, y=y - 4.5, width=9, height=9)
    return element(f"circle dot best {point.role}".rstrip(), tooltip, cx=x, cy=y, r=4.5)


def _description(point: Point, x_label: str, y_label: str) -> str:
    x, y = (
        interval_text(point.x, point.x_low, point.x_high),
        interval_text(point.y, point.y_low, point.y_high),
    )
    return f"{point.label}: {y_label} {y}, {x_label} {x}"
