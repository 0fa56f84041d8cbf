"""Parallel axes: one vertical axis for each column of a table, one line for each row.

Source: Inselberg 1985, The plane with parallel coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cfbench_core.reports.charts.svg import (
    LINE,
    NAME,
    Scale,
    drawing,
    element,
    line,
    longest,
    look,
    mark,
    short,
    spread,
    text,
    written,
)

GAP, PLOT = 96.0, 190.0
"""Between two axes, and the height of one."""
_TOP, _LABEL = 34.0, 13


@dataclass(frozen=True)
class Axis:
    """One column: a number between ``low`` and ``high``, or the place of one of ``levels``."""

    name: str
    low: float
    high: float
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParallelLine:
    """One row: its value on each axis. The first line of a chart is drawn strong, it is what the others differ from."""

    name: str
    values: Sequence[float]


def parallel_axes(axes: Sequence[Axis], lines: Sequence[ParallelLine], *, title: str) -> str:
    """The lines as SVG. Where a line equals the first one on an axis, they meet.

    Raises:
        ValueError: if a line does not have a value for each axis.
    """
    if any(len(one.values) != len(axes) for one in lines):
        raise ValueError("every line needs one value for each axis")
    left, bottom = 46.0, _TOP + PLOT
    scales = [_scale(axis, bottom) for axis in axes]
    places = [left + GAP * n for n in range(len(axes))]
    parts: list[str] = []
    for axis, scale, x in zip(axes, scales, places, strict=True):
        parts += _axis(axis, scale, x, bottom)
    for number, one in reversed(list(enumerate(lines))):
        parts += _line(number, one, axes, scales, places)
    right = places[-1] if places else left
    parts += _names(lines, scales, right)
    width = right + 40 + longest(short(one.name, NAME) for one in lines)
    described = "; ".join(
        f"{one.name}: "
        + ", ".join(f"{axis.name} {_said(axis, v)}" for axis, v in zip(axes, one.values, strict=True))
        for one in lines
    )
    return drawing(width, bottom + 22, f"{title}. {described}", parts, title)


def _scale(axis: Axis, bottom: float) -> Scale:
    low, high = (0.0, float(max(len(axis.levels) - 1, 1))) if axis.levels else (axis.low, axis.high)
    return Scale(low, high if high > low else low + 1.0, bottom, _TOP)


def _said(axis: Axis, value: float) -> str:
    place = round(value)
    return axis.levels[place] if axis.levels and 0 <= place < len(axis.levels) else f"{value:.5g}"


def _axis(axis: Axis, scale: Scale, x: float, bottom: float) -> Iterator[str]:
    yield line("axis", x, _TOP, x, bottom)
    yield text("name", x, _TOP - 18, short(axis.name, _LABEL), "middle", axis.name)
    ends = [(float(n), level) for n, level in enumerate(axis.levels)] if axis.levels else []
    if not 0 < len(ends) <= 6:
        ends = [(scale.low, _said(axis, scale.low)), (scale.high, _said(axis, scale.high))]
    for value, words in ends:
        y = scale(value)
        yield line("grid", x - 4, y, x + 4, y)
        shown = words if axis.levels else written(float(f"{value:.4g}"))
        yield text("tick", x - 6, y + 4, short(shown, 9), "end", words)


def _line(
    number: int, one: ParallelLine, axes: Sequence[Axis], scales: Sequence[Scale], places: Sequence[float]
) -> Iterator[str]:
    style = look(number)
    points = [
        (x, scale(min(max(v, scale.low), scale.high)))
        for x, scale, v in zip(places, scales, one.values, strict=True)
    ]
    if len(points) > 1:
        steps = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        strong = "" if number else " strong"
        yield element(f"path series {style.colour} {style.dash}{strong}", d=f"M{steps}")
    for (x, y), axis, value in zip(points, axes, one.values, strict=True):
        yield mark(style, x, y, f"{one.name}, {axis.name}: {_said(axis, value)}")


def _names(lines: Sequence[ParallelLine], scales: Sequence[Scale], right: float) -> Iterator[str]:
    if not scales:
        return
    last = scales[-1]
    ends = [last(min(max(one.values[-1], last.low), last.high)) for one in lines]
    heights = spread(ends, LINE, _TOP + LINE / 2, last.start + 16)
    for number, (one, end, y) in enumerate(zip(lines, ends, heights, strict=True)):
        style = look(number)
        yield element(f"path leader {style.colour}", d=f"M{right + 6:.1f},{end:.1f}L{right + 16:.1f},{y:.1f}")
        yield mark(style, right + 22, y)
        name = short(one.name, NAME)
        yield text(
            "name best" if not number else "name",
            right + 32,
            y + 4,
            name,
            tooltip=one.name if name != one.name else "",
        )
