"""A matrix as cells, each with its number."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from cfbench_core.reports.charts.svg import (
    LINE,
    NAME,
    SMALLEST,
    drawable,
    drawing,
    element,
    interval_text,
    long,
    longest,
    short,
    text,
)

_TALL, _LEAST, _MOST, _WIDE = 26, 48, 86, 500
_STRONGEST = 0.55  # of a cell's colour: what stands in it stays readable


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Iterable[Iterable[float]],
    *,
    title: str,
    direction: str = "",
    text: Sequence[Sequence[str]] | None = None,
    hint: str | None = None,
    log: bool = False,
) -> str:
    """The matrix as SVG, its numbers printed in the cells.

    Args:
        values: len(rows) times len(columns); a missing one (NaN) is an empty cell. Where they have both signs, a
            second colour stands for those below zero, and strength for the size.
        title: what is drawn; with the numbers it is what a screen reader reads.
        direction: "higher" or "lower" is better, and stronger in colour; empty: stronger is higher.
        text: printed instead of the values.
        hint: stands below, on what the colours mean; by default what follows from the above.
        log: strength of colour by powers of ten, as for times; what is not positive has none.

    Raises:
        ValueError: if ``values`` or ``text`` have another shape.
    """
    matrix = [[float(value) for value in row] for row in values]
    printed = [[*row] for row in text] if text is not None else [[_short(v) for v in row] for row in matrix]
    for shaped in (matrix, printed):
        if len(shaped) != len(rows) or any(len(row) != len(columns) for row in shaped):
            raise ValueError(
                f"a heat map of {len(rows)} rows and {len(columns)} columns needs as many values"
            )
    names = [short(name, NAME) for name in rows]
    heads = [short(name, 18) for name in columns]
    wide = _width(heads, printed)
    turned = longest(heads) > wide - 8
    left = 12 + longest(names)
    rise = 0.7 * longest(heads) + 10 if turned else 0
    top = 14 + (rise or 8)
    strength = [[_power(value) for value in row] for row in matrix] if log else matrix
    scale = _Scale(strength, direction, powers=log)
    signed = _signed(matrix)
    parts = [*_heads(heads, columns, left, top, wide, turned)]
    for number, (name, full) in enumerate(zip(names, rows, strict=True)):
        y = top + _TALL * number
        parts.append(_text("name", left - 8, y + _TALL / 2 + 4, name, "end", full if full != name else ""))
        shades = [scale.shade(value) for value in strength[number]]
        parts += _cells(name, heads, matrix[number], shades, printed[number], signed, left, y, wide)
    bottom = top + _TALL * len(rows)
    hint = _hint(matrix, direction, log) if hint is None else hint
    width = left + wide * len(columns) + (rise if turned else 0) + 8
    width = max(width, min(_WIDE, long(hint) + 8))
    said = textwrap.wrap(hint, max(int(len(hint) * (width - 8) / max(long(hint), 1)), 10))
    parts += [_text("hint", 4, bottom + 16 + LINE * number, line) for number, line in enumerate(said)]
    told_all = "; ".join(
        f"{name}: {', '.join(f'{head} {interval_text(v)}' for head, v in zip(columns, row, strict=True))}"
        for name, row in zip(rows, matrix, strict=True)
    )
    return drawing(round(width), bottom + 8 + LINE * len(said) + 4, f"{title}. {told_all}", parts, title)


_text = text  # the argument of that name is the contract's


def _width(heads: Sequence[str], printed: Sequence[Sequence[str]]) -> float:
    """Of a cell: what its text needs, and its head if that is not too long."""
    head = longest(heads) + 10
    return max(_LEAST, longest(word for row in printed for word in row) + 10, head if head <= _MOST else 0)


def _heads(
    heads: Sequence[str], full: Sequence[str], left: float, top: float, wide: float, turned: bool
) -> Iterator[str]:
    for number, (head, whole) in enumerate(zip(heads, full, strict=True)):
        x = left + wide * (number + 0.5)
        tooltip = whole if whole != head else ""
        if turned:
            yield _text("tick", x - 2, top - 6, head, "start", tooltip, -40)
        else:
            yield _text("tick", x, top - 7, head, "middle", tooltip)


def _cells(
    name: str,
    heads: Sequence[str],
    values: Sequence[float],
    shades: Sequence[float],
    printed: Sequence[str],
    signed: bool,
    left: float,
    y: float,
    wide: float,
) -> Iterator[str]:
    """The cells of a row; ``signed``: values below zero have a colour of their own."""
    for place, (value, shade, words) in enumerate(zip(values, shades, printed, strict=True)):
        x = left + wide * place
        if math.isnan(shade):
            yield element("rect cell none", x=x + 1, y=y + 1, width=wide - 2, height=_TALL - 2)
        else:
            sign = "below" if value < 0 and signed else "heat"
            tooltip = f"{name}, {heads[place]}: {interval_text(value)}"
            yield element(
                f"rect cell {sign}",
                tooltip,
                x=x + 1,
                y=y + 1,
                width=wide - 2,
                height=_TALL - 2,
                fill_opacity=f"{shade:.3f}",
            )
        yield _text("value", x + wide / 2, y + _TALL / 2 + 4, words, "middle")


def _hint(matrix: Sequence[Sequence[float]], direction: str, log: bool) -> str:
    if _signed(matrix) and not log:
        better = f"; {direction} is better" if direction else ""
        return f"strength of colour: size; dashed: below 0{better}"
    by = ", by powers of ten" if log else ""
    return f"stronger colour: {direction or 'higher'}{', better' if direction else ''}{by}"


def _signed(matrix: Sequence[Sequence[float]]) -> bool:
    known = [value for row in matrix for value in row if drawable(value)]
    return bool(known) and min(known) < 0 < max(known)


def _power(value: float) -> float:
    return math.log10(value) if drawable(value) and value >= SMALLEST else math.nan


class _Scale:
    """Strength of colour over the values of a matrix. ``powers``: they are powers, whose signs mean nothing."""

    def __init__(self, matrix: Sequence[Sequence[float]], direction: str, powers: bool) -> None:
        known = [value for row in matrix for value in row if drawable(value)]
        self._low, self._high = min(known, default=math.nan), max(known, default=math.nan)
        self._signed = _signed(matrix) and not powers
        self._turned = direction == "lower"

    def shade(self, value: float) -> float:
        """Between nothing and the strongest; NaN where there is no value."""
        if not drawable(value):
            return math.nan
        if self._signed:
            return _STRONGEST * abs(value) / max(-self._low, self._high)
        share = (value - self._low) / (self._high - self._low) if self._high > self._low else 0.5
        return _STRONGEST * (0.08 + 0.92 * (1 - share if self._turned else share))


def _short(value: float) -> str:
    return f"{value:.3g}" if drawable(value) else "–"
