"""Lines over a common x: how several change along the list, with the scope, with the quality of a model."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cfbench_core.reports.charts.svg import (
    LINE,
    NAME,
    SMALLEST,
    Look,
    Scale,
    decades,
    drawable,
    drawing,
    element,
    interval_text,
    line,
    long,
    longest,
    look,
    mark,
    short,
    span,
    spread,
    text,
    written,
)

WIDTH = 520
_TOP, _PLOT = 30, 210
_SAMPLE = 26  # a piece of line with a mark, before a name
_DODGE = 7.0  # pixels between those who share a category
_FEW, _BANDS, _MANY = 8, 3, 150
"""Intervals are bands at more than so many values of x, for at most so many series or where whiskers would be a hatching."""


@dataclass(frozen=True)
class Series:
    """One line.

    Attributes:
        name: stands at its end.
        x, y: equally long; where either is missing (NaN) the line has a gap.
        low, high: ends of 95% intervals, as long as x; missing ones are not drawn.
        role: "certified", "reference" or "baseline" for a control, which is grey; else empty.
        place: which look it has (0, 1, ...), so that it is the same in several charts; by default its own place
            among the competitors of the chart.
    """

    name: str
    x: Iterable[float]
    y: Iterable[float]
    low: Iterable[float] | None = None
    high: Iterable[float] | None = None
    role: str = ""
    place: int | None = None

    @property
    def label(self) -> str:
        return f"{self.name} ({self.role})" if self.role else self.name


@dataclass(frozen=True)
class _Drawn:
    """A series as numbers, and how it looks."""

    name: str
    role: str
    look: Look
    points: tuple[tuple[float, float, float, float], ...]
    shift: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.name} ({self.role})" if self.role else self.name

    @property
    def known(self) -> list[tuple[float, float, float, float]]:
        return [point for point in self.points if drawable(point[0]) and drawable(point[1])]

    @property
    def pieces(self) -> list[list[tuple[float, float, float, float]]]:
        """Without the gaps."""
        found: list[list[tuple[float, float, float, float]]] = [[]]
        for point in self.points:
            if drawable(point[0]) and drawable(point[1]):
                found[-1].append(point)
            elif found[-1]:
                found.append([])
        return [piece for piece in found if piece]


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    direction: str = "",
    x_names: Sequence[str] | None = None,
    y_range: tuple[float, float] | None = None,
    log_y: bool = False,
    y_text: Callable[[float], str] = written,
    width: float = WIDTH,
) -> str:
    """The lines as SVG, each with its name at its end.

    Args:
        title: what is drawn; with the numbers it is what a screen reader reads.
        direction: "higher" or "lower" is better along y; empty: neither.
        x_names: ordered categories that stand at x = 0, 1, 2, ...; without them x is a number. See ``dot_chart`` for
            categories without an order.
        y_range: what the y axis shows at least, and beyond which it gets no margin: ``(0, 1)`` for a share.
        log_y: powers of ten along y; what is not positive has no place there.
        y_text: how a number on the y axis is written.
        width: in pixels.

    Raises:
        ValueError: if the columns of a series differ in length.
    """
    drawn = _drawn(series, positive=log_y)
    ends = sum(1 for one in drawn if one.known)
    names = longest(short(one.label, NAME) for one in drawn) + _SAMPLE + 20
    values = [value for one in drawn for point in one.known for value in point[1:]]
    if log_y:
        low, high = decades([value for value in values if drawable(value)] or [1.0])
    else:
        low, high = span(values, y_range)
    top, bottom = _TOP, _TOP + max(_PLOT, (LINE + 1) * ends)
    y = Scale(low, high, bottom - 2, top + 2, log_y)
    left = 14 + longest(y_text(tick) for tick in y.ticks(5))
    room = _room(drawn, x_names)
    x = _x_scale(drawn, x_names, room, left, max(width - names, left + 80))
    if room:
        drawn = _side_by_side(drawn, room * (x.stop - x.start) / (x.high - x.low))
    axis, below = _x_axis(x, drawn, x_names, top, bottom)
    parts = [*_y_axis(y, x, y_text), *axis, *_intervals(drawn, x, y, banded=not room)]
    for one in sorted(drawn, key=lambda one: not one.role):
        parts += _path(one, x, y)
    parts += _ends(drawn, x, y, top, bottom)
    better = {"higher": "↑ better · ", "lower": "↓ better · "}.get(direction, "")
    parts.append(text("hint", 4, 13, f"{better}{short(y_label, 80)}"))
    parts.append(text("hint", x.stop, below, short(x_label, 80), "end"))
    if not ends:
        parts.append(text("outcome", x.start + 8, top + 20, "nothing to draw: no numbers"))
    told_all = "; ".join(_description(one, x_names) for one in drawn)
    return drawing(width, below + 8, f"{title}. {y_label} by {x_label}. {told_all}", parts, title)


def _drawn(series: Sequence[Series], positive: bool) -> list[_Drawn]:
    """Competitors have looks of their own. ``positive``: only positive numbers have a place."""
    found: list[_Drawn] = []
    competitors = 0
    for one in series:
        x, y = [float(v) for v in one.x], [float(v) for v in one.y]
        low, high = ([math.nan] * len(x) if v is None else [float(w) for w in v] for v in (one.low, one.high))
        if not len(x) == len(y) == len(low) == len(high):
            raise ValueError(f"series {one.name!r}: x, y, low and high differ in length")
        if positive:
            y, low, high = ([v if v >= SMALLEST else math.nan for v in column] for column in (y, low, high))
        style = look(competitors if one.place is None else one.place, one.role)
        competitors += not one.role
        found.append(_Drawn(one.name, one.role, style, tuple(zip(x, y, low, high, strict=True))))
    return found


def _xs(drawn: Sequence[_Drawn]) -> list[float]:
    return sorted({point[0] for one in drawn for point in one.known})


def _room(drawn: Sequence[_Drawn], x_names: Sequence[str] | None) -> float:
    """What of x belongs to one value, where those who share it stand side by side; 0 where they need not.

    Series that share categories, or few values of x, would hide each other's intervals.
    """
    xs = _xs(drawn)
    if x_names is not None:
        return 1.0
    if len(xs) == 1:
        return math.inf
    with_ends = sum(any(drawable(point[2]) for point in one.known) for one in drawn)
    banded = len(xs) > _FEW and (with_ends <= _BANDS or with_ends * len(xs) > _MANY)
    return 0.0 if banded or not with_ends else min(b - a for a, b in itertools.pairwise(xs))


def _x_scale(
    drawn: Sequence[_Drawn], x_names: Sequence[str] | None, room: float, start: float, stop: float
) -> Scale:
    if x_names is not None:
        return Scale(-0.5, max(len(x_names), 1) - 0.5, start, stop)
    xs = _xs(drawn)
    low, high = span(xs)
    if len(xs) > 1:
        low, high = min(low, xs[0] - room / 2), max(high, xs[-1] + room / 2)
    return Scale(low, high, start, stop)


def _side_by_side(drawn: Sequence[_Drawn], room: float) -> list[_Drawn]:
    """``room``: in pixels, for all of them."""
    step = min(_DODGE, 0.6 * room / max(len(drawn), 1))
    middle = (len(drawn) - 1) / 2
    return [dataclasses.replace(one, shift=step * (place - middle)) for place, one in enumerate(drawn)]


# Axes


def _y_axis(y: Scale, x: Scale, y_text: Callable[[float], str]) -> Iterator[str]:
    for tick in y.ticks(5):
        yield line("zero" if tick == 0 and y.low < 0 else "grid", x.start, y(tick), x.stop, y(tick))
        yield text("tick", x.start - 6, y(tick) + 4, y_text(tick), "end")


def _x_axis(
    x: Scale, drawn: Sequence[_Drawn], x_names: Sequence[str] | None, top: float, bottom: float
) -> tuple[list[str], float]:
    """The axis, and where the text below it goes. Names are turned if they are too long."""
    if x_names is not None:
        marks = [(float(place), name) for place, name in enumerate(x_names)]
    else:
        marks = _number_ticks(x, _xs(drawn))
    parts = [line("axis", x.start, bottom, x.stop, bottom)]
    room = (x.stop - x.start) / max(len(marks), 1)
    widest = longest(name for _, name in marks)
    turned = x_names is not None and widest + 6 > room
    for value, name in marks:
        at = x(value)
        if turned:
            parts.append(text("tick", at + 4, bottom + 14, short(name, 22), "end", name, -35))
        else:
            parts.append(line("grid", at, top, at, bottom))
            parts.append(text("tick", at, bottom + 16, name, "middle"))
    down = 0.57 * longest(short(name, 22) for _, name in marks) + 8 if turned else 16
    return parts, bottom + down + 17


def _number_ticks(x: Scale, xs: Sequence[float]) -> list[tuple[float, str]]:
    """The values themselves where they are few, without those whose numbers would touch the next; else round ones."""
    if not 0 < len(xs) <= 12:
        return [(tick, written(tick)) for tick in x.ticks(6)]
    chosen: list[tuple[float, str]] = []
    for value in reversed(xs):
        name = written(value)
        room = x(chosen[-1][0]) - x(value) if chosen else math.inf
        if room > 0.5 * long(name + (chosen[-1][1] if chosen else "")) + 5:
            chosen.append((value, name))
    return chosen[::-1]


# Lines


def _path(one: _Drawn, x: Scale, y: Scale) -> Iterator[str]:
    for piece in one.pieces:
        if len(piece) > 1:
            steps = "L".join(f"{x(point[0]) + one.shift:.1f},{y(point[1]):.1f}" for point in piece)
            yield element(f"path series {one.look.colour} {one.look.dash}".rstrip(), d=f"M{steps}")
    for point in one.known:
        tooltip = f"{one.label} at {point[0]:g}: {interval_text(*point[1:])}"
        yield mark(one.look, x(point[0]) + one.shift, y(point[1]), tooltip)


def _intervals(drawn: Sequence[_Drawn], x: Scale, y: Scale, banded: bool) -> Iterator[str]:
    """Whiskers, or bands."""
    for one in drawn:
        for piece in one.pieces:
            known = [point for point in piece if drawable(point[2]) and drawable(point[3])]
            if banded and len(known) > 1:
                upper = [f"{x(point[0]):.1f},{y(point[3]):.1f}" for point in known]
                lower = [f"{x(point[0]):.1f},{y(point[2]):.1f}" for point in reversed(known)]
                yield element(f"path area {one.look.colour}", d=f"M{'L'.join([*upper, *lower])}z")
            elif not banded:
                for point in known:
                    at = x(point[0]) + one.shift
                    yield line(f"whisker {one.look.colour}", at, y(point[2]), at, y(point[3]))


def _ends(drawn: Sequence[_Drawn], x: Scale, y: Scale, top: float, bottom: float) -> Iterator[str]:
    """Names right of the plot, as near to the ends of their lines as they go, tied to them."""
    shown = [one for one in drawn if one.known]
    ends = [y(one.known[-1][1]) for one in shown]
    at = x.stop + 14
    for one, end, place in zip(
        shown, ends, spread(ends, LINE, top + LINE / 2, bottom - LINE / 2), strict=True
    ):
        start = x(one.known[-1][0]) + one.shift + 6
        yield element(
            f"path leader {one.look.colour}",
            d=f"M{start:.1f},{end:.1f}L{x.stop + 2:.1f},{end:.1f}L{at - 2:.1f},{place:.1f}",
        )
        yield element(
            f"path series {one.look.colour} {one.look.dash}".rstrip(),
            d=f"M{at:.1f},{place:.1f}h{_SAMPLE - 4}",
        )
        yield mark(one.look, at + (_SAMPLE - 4) / 2, place)
        words = short(one.label, NAME)
        yield text("name", at + _SAMPLE, place + 4, words, tooltip="" if words == one.label else one.label)


def _description(one: _Drawn, x_names: Sequence[str] | None) -> str:
    numbers = []
    for x, *rest in one.points:
        named = x_names is not None and drawable(x) and x == round(x) and 0 <= x < len(x_names)
        where = x_names[int(x)] if x_names is not None and named else f"{x:g}"
        numbers.append(f"{where}: {interval_text(*rest)}")
    return f"{one.label} {', '.join(numbers) or 'none'}"
