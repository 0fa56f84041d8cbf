"""What every drawing is made of: scales, elements, marks, and places for labels where they do not cover each other.

Colours and fonts are the page's (``templates/style.css``): an element says what it is by its classes. Who is who
never rests on colour: a :class:`Look` is a shape and a dash pattern too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

NAME = 27
"""So many letters of a name are shown: "exact-contribution (certified)" is whole."""
LINE = 13
"""The height of a line of 11 px."""
LARGEST = 1e300
"""What is beyond is drawn as little as what is missing: a scale could not hold it."""
SMALLEST = 1e-290
"""What is less has no place on a logarithmic axis."""
_NARROW, _THIN, _WIDE = frozenset("ijlI.,:;'|"), frozenset("ftr()[]- /·!"), frozenset("mwMW@%…—↑↓→←#<>=+&^~")
COLOURS, DASHES = 7, 5
SHAPES = ("disc", "square", "triangle", "diamond", "ring", "box", "delta", "lozenge")
_HOLLOW = ("ring", "box", "delta", "lozenge")


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
            return [10.0**power for power in powers[:: max(1, math.ceil(len(powers) / (wanted + 2)))]]
        rough = (self.high - self.low) / wanted
        step = min(
            (m * 10.0 ** math.floor(math.log10(rough)) for m in (1, 2, 2.5, 5, 10)),
            key=lambda s: abs(s - rough),
        )
        first = math.ceil(self.low / step - 1e-9)
        # + 0.0: no minus before zero
        return [
            float(f"{n * step:.12g}") + 0.0 for n in range(first, math.floor(self.high / step + 1e-9) + 1)
        ]


def drawable(value: float) -> bool:
    return abs(value) <= LARGEST  # not NaN either


def span(values: Iterable[float], at_least: tuple[float, float] | None = None) -> tuple[float, float]:
    """Ends of an axis that shows all ``values`` with a margin; no margin beyond ``at_least``, which it shows too."""
    known = [value for value in values if drawable(value)] or [*(at_least or (0.0, 1.0))]
    low, high = min(known), max(known)
    if at_least is not None:
        low, high = min(low, at_least[0]), max(high, at_least[1])
    margin = 0.06 * (high - low)
    if margin <= 1e-9 * max(abs(low), abs(high)):
        margin = max(0.05 * abs(high), 1e-290) if high else 0.5
    below = 0.0 if at_least is not None and low >= at_least[0] else margin
    above = 0.0 if at_least is not None and high <= at_least[1] else margin
    if low == high and not below and not above:
        below = above = margin
    return low - below, high + above


def decades(values: Sequence[float]) -> tuple[float, float]:
    """Whole powers of ten around positive values, at least one decade."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    low = min(max(low, -300), 299)
    return 10.0**low, 10.0 ** min(max(high, low + 1), 300)


# Words


def written(value: float) -> str:
    """A number on an axis: "0.25", "10,000", "1e+09"."""
    return f"{value:,.0f}" if value == round(value) and 1e4 <= abs(value) < 1e7 else f"{value:g}"


def interval_text(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A number in a sentence, with its interval if there is one: "0.31 (0.28 to 0.34)"."""
    if not drawable(value):
        return "none"
    interval = f" ({low:.3g} to {high:.3g})" if drawable(low) and drawable(high) else ""
    return f"{value:.3g}{interval}"


def duration(seconds: float) -> str:
    """A time in milliseconds, the one unit of times in all reports: "0.032 ms", "1,240 ms"."""
    ms = seconds * 1e3
    return f"{ms:,.0f} ms" if ms >= 99.5 else f"{ms:.3g} ms"


def short(name: str, most: int = 20) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def long(words: str, bold: bool = False) -> float:
    """How wide text of 11 px is, in pixels, in a wide font (DejaVu Sans, 10% more at most); in others it is narrower."""
    return (12.5 if bold else 11.3) * sum(map(_width, words))


def _width(letter: str) -> float:
    if letter in _NARROW:
        return 0.32
    if letter in _THIN:
        return 0.4
    if letter in _WIDE or ord(letter) > 0x2E7F:  # from there on letters are square
        return 1.0
    return 0.75 if letter.isupper() else 0.63


def longest(words: Iterable[str], bold: bool = False) -> float:
    return max((long(word, bold) for word in words), default=0.0)


_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd]")


def clean(text: str) -> str:
    """Escaped, without the control characters that XML has no place for."""
    return escape(_NOT_XML.sub("", text))


# Elements


def element(kind: str, tooltip: str = "", **attributes: float | str) -> str:
    """``element("circle dot best", cx=1)``: the element, its classes, and its attributes."""
    name, _, classes = kind.partition(" ")
    given = "".join(
        f' {key.replace("_", "-")}="{value if isinstance(value, str) else f"{value:.1f}"}"'
        for key, value in attributes.items()
    )
    return f'<{name} class="{classes}"{given}>{_title(tooltip)}</{name}>'


def line(classes: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return element(f"line {classes}", x1=x1, y1=y1, x2=x2, y2=y2)


def text(
    classes: str, x: float, y: float, words: str, anchor: str = "start", tooltip: str = "", turned: float = 0
) -> str:
    """``turned``: degrees about its place."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    if turned:
        place += f' transform="rotate({turned:g} {x:.1f} {y:.1f})"'
    return f'<text class="{classes}" {place}>{clean(words)}{_title(tooltip)}</text>'


def _title(tooltip: str) -> str:
    return f"<title>{clean(tooltip)}</title>" if tooltip else ""


def drawing(width: float, height: float, name: str, parts: Iterable[str], title: str = "") -> str:
    """The whole. ``name`` describes what is drawn, with its numbers, to those who do not see it; ``title`` in short."""
    head = f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img"'
    return f'{head} aria-label="{clean(name)}">{_title(title)}{"".join(parts)}</svg>'


# Who is who


class Look(NamedTuple):
    """How one of several is distinguished: 35 pairs of shape and dash pattern, and a colour."""

    colour: str
    shape: str
    dash: str

    @property
    def hollow(self) -> str:
        return " hollow" if self.shape in _HOLLOW else ""


def look(place: int, role: str = "") -> Look:
    """Of the competitor at a place; controls are grey, certified and reference dashed, baselines dotted."""
    if role:
        return Look(role, {"certified": "lozenge", "reference": "delta"}.get(role, "box"), "")
    return Look(f"c{place % COLOURS}", SHAPES[place % len(SHAPES)], f"d{place % DASHES}")


def mark(style: Look, x: float, y: float, tooltip: str = "") -> str:
    kind = f"shape {style.colour}{style.hollow}"
    if style.shape in ("disc", "ring"):
        return element(f"circle {kind}", tooltip, cx=x, cy=y, r=4)
    if style.shape in ("square", "box"):
        return element(f"rect {kind}", tooltip, x=x - 3.6, y=y - 3.6, width=7.2, height=7.2)
    outlines = {
        "triangle": f"M{x:.1f},{y - 4.8:.1f}l4.7,8.2h-9.4z",
        "delta": f"M{x:.1f},{y + 4.8:.1f}l4.7,-8.2h-9.4z",
    }
    return element(
        f"path {kind}", tooltip, d=outlines.get(style.shape, f"M{x:.1f},{y - 5:.1f}l5,5l-5,5l-5,-5z")
    )


# Places for labels


class Box(NamedTuple):
    """A rectangle that is taken, by a point or a label."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        if across <= 0:
            return 0.0
        down = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return across * max(down, 0.0)

    def covered_of(self, others: Iterable[Box]) -> float:
        """How much of others it covers; most of them lie elsewhere."""
        left, top, right, bottom = self.x, self.y, self.x + self.width, self.y + self.height
        return sum(
            self.overlap(other)
            for other in others
            if other[0] < right
            and other[1] < bottom
            and other[0] + other[2] > left
            and other[1] + other[3] > top
        )


def free_place(
    x: float, y: float, wide: float, within: Box, taken: Sequence[Box], lines: Sequence[Box] = ()
) -> tuple[Box, float]:
    """Where a label covers least of what is taken, and how much that is; and then least of ``lines``.

    Right of its point, left, above, below, then further off. Infinitely much where there is no place for it.
    """
    right, left = x + 9, x - 9 - wide
    middle = min(max(x - wide / 2, within.x), within.x + within.width - wide)
    places = [(right, y - 5), (left, y - 5)]
    for off in (13, 25, 37):
        places += [(across, y - 5 + down) for down in (-off, off) for across in (middle, right, left)]
    boxes = [
        Box(across, down, wide, 12)
        for across, down in places
        if within.x <= across <= within.x + within.width - wide
        and within.y <= down <= within.y + within.height - 12
    ]
    if not boxes:
        return Box(middle, y - 18, wide, 12), math.inf
    least: tuple[float, float] = (math.inf, math.inf)
    best = boxes[0]
    taken, lines = _meeting(boxes, taken), _meeting(boxes, lines)
    for box in boxes:
        of_taken = box.covered_of(taken)
        if of_taken > least[0]:
            continue
        covered = of_taken, box.covered_of(lines)
        if covered < least:
            best, least = box, covered
        if least == (0.0, 0.0):
            break
    return best, least[0]


def _meeting(boxes: Sequence[Box], others: Sequence[Box]) -> list[Box]:
    """Those of ``others`` that may overlap one of ``boxes``, which all have the size of the first."""
    low_x, low_y = (min(box[axis] for box in boxes) for axis in (0, 1))
    high_x = max(box.x for box in boxes) + boxes[0].width
    high_y = max(box.y for box in boxes) + boxes[0].height
    return [
        other
        for other in others
        if other.x < high_x
        and other.x + other.width > low_x
        and other.y < high_y
        and other.y + other.height > low_y
    ]


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least ``gap`` apart and within ``low`` and ``high``, as near to those wanted as can be.

    Least squares under an order: pool adjacent violators on the places less what lies between. Where there is no
    room for all, the last ones go beyond ``high``.
    """
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    pools: list[tuple[float, int]] = []
    for number, n in enumerate(order):
        mean, size = wanted[n] - number * gap, 1
        while pools and pools[-1][0] > mean:
            before, more = pools.pop()
            mean, size = (mean * size + before * more) / (size + more), size + more
        pools.append((mean, size))
    level = [mean for mean, size in pools for _ in range(size)]
    most = max(high - (len(wanted) - 1) * gap, low)
    places = [0.0] * len(wanted)
    for number, n in enumerate(order):
        places[n] = min(max(level[number], low), most) + number * gap
    return places
