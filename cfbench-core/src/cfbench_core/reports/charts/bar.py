"""Amounts as bars, each with its number: shares that are compared at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cfbench_core.reports.charts.svg import (
    NAME,
    Scale,
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

WIDTH = 440
_LINE, _TOP = 21, 20


@dataclass(frozen=True)
class Bar:
    """One amount.

    Attributes:
        name: stands on its left.
        value: its length; a missing one (NaN) has none.
        low, high: ends of its 95% interval, if it has one.
        role: "certified", "reference" or "baseline" for a control, which has a colour and a pattern of its own; else empty.
        text: printed at its end; by default the value.
    """

    name: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    role: str = ""
    text: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} ({self.role})" if self.role else self.name

    @property
    def printed(self) -> str:
        return self.text or (f"{self.value:.3g}" if drawable(self.value) else "–")


def bar_chart(
    bars: Sequence[Bar],
    *,
    title: str,
    x_label: str,
    direction: str = "",
    x_range: tuple[float, float] | None = None,
    width: float = WIDTH,
) -> str:
    """The bars as SVG, one below the other, from zero.

    Args:
        title: what is drawn; with the numbers it is what a screen reader reads.
        direction: "higher" or "lower" is better; empty: neither.
        x_range: what the axis shows at least: ``(0, 1)`` for a share.
        width: in pixels.
    """
    left = 12 + longest(short(bar.label, NAME) for bar in bars)
    right = width - longest(bar.printed for bar in bars) - 16
    ends = [value for bar in bars for value in (bar.value, bar.low, bar.high) if drawable(value)]
    low, high = span([0.0, *ends], x_range or (0.0, 0.0))
    x = Scale(low, high, left, max(right, left + 80))
    bottom = _TOP + _LINE * max(len(bars), 1)
    parts = [*_axis(x, bottom)]
    for number, bar in enumerate(bars):
        parts += _bar(bar, x, _TOP + _LINE * number)
    arrow = {"higher": "better →", "lower": "← better"}.get(direction, "")
    parts.append(text("hint", 4, 12, x_label))
    parts.append(text("hint", x.stop, 12, arrow, "end"))
    said = "; ".join(f"{bar.label} {interval_text(bar.value, bar.low, bar.high)}" for bar in bars)
    return drawing(width, bottom + 20, f"{title}. {x_label}: {said}", parts, title)


def _axis(x: Scale, bottom: float) -> Iterator[str]:
    for tick in x.ticks():
        yield line("grid", x(tick), _TOP, x(tick), bottom)
        yield text("tick", x(tick), bottom + 13, written(tick), "middle")
    yield line("axis", x(0), _TOP, x(0), bottom)


def _bar(bar: Bar, x: Scale, y: float) -> Iterator[str]:
    middle, name = y + _LINE / 2, short(bar.label, NAME)
    yield text(
        f"name {bar.role}".rstrip(),
        x.start - 8,
        middle + 4,
        name,
        "end",
        bar.label if bar.label != name else "",
    )
    end = x.start
    if drawable(bar.value):
        start, end = sorted((x(0), x(bar.value)))
        tooltip = f"{bar.label}: {interval_text(bar.value, bar.low, bar.high)}"
        kind = f"rect amount {bar.role}".rstrip()
        yield element(kind, tooltip, x=start, y=y + 4, width=max(end - start, 0.5), height=_LINE - 8)
    if drawable(bar.low) and drawable(bar.high):
        yield line("whisker", x(bar.low), middle, x(bar.high), middle)
        end = max(end, x(bar.high))
    yield text("tick", end + 6, middle + 4, bar.printed)
