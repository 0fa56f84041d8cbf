"""A tree of questions, from the first on the top to the answers at the bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cfbench_core.reports.charts.svg import LINE, drawing, element, long, longest, short, text

_PAD, _BETWEEN, _FALL, _MOST = 8, 14, 46, 30
_STRONGEST = 0.55  # of a box's colour: what stands in it stays readable


@dataclass(frozen=True)
class Node:
    """A question with its branches, or an answer without any.

    Attributes:
        lines: what stands in its box, the first in bold.
        strength: from 0 to 1, of its colour: how sure it is.
        branches: pairs of what stands at a branch ("yes") and where it leads.
    """

    lines: Sequence[str]
    strength: float = 0.0
    branches: Sequence[tuple[str, Node]] = ()


@dataclass(frozen=True)
class _Placed:
    node: Node
    x: float  # of its middle
    y: float  # of its top
    branches: tuple[tuple[str, _Placed], ...]

    @property
    def wide(self) -> float:
        return _wide(self.node)

    @property
    def tall(self) -> float:
        return _tall(self.node)


def tree_chart(root: Node, *, title: str) -> str:
    """The tree as SVG. ``title``: what is drawn; with the words of the boxes it is what a screen reader reads."""
    tops = _tops(root)
    placed, width = _place(root, 4.0, 0, tops)
    bottom = max(one.y + one.tall for one in _all(placed))
    parts = [part for one in _all(placed) for part in _edges(one)]
    parts += [part for one in _all(placed) for part in _box(one)]
    return drawing(round(width + 4), round(bottom + 6), f"{title}. {_said(root)}", parts, title)


def _wide(node: Node) -> float:
    words = [short(words, _MOST) for words in node.lines]
    return max(long(words[0], bold=True) if words else 0, longest(words[1:])) + 2 * _PAD


def _tall(node: Node) -> float:
    return len(node.lines) * (LINE + 1) + 2 * _PAD - 4


def _tops(root: Node) -> list[float]:
    """Where each level starts: below the tallest box of the level above."""
    tops, level = [4.0], [root]
    while level:
        tops.append(tops[-1] + max(map(_tall, level)) + _FALL)
        level = [below for node in level for _, below in node.branches]
    return tops


def _place(node: Node, left: float, depth: int, tops: Sequence[float]) -> tuple[_Placed, float]:
    """The subtree with its left edge at ``left``, and its right edge."""
    branches: list[tuple[str, _Placed]] = []
    edge = left
    for label, below in node.branches:
        placed, edge = _place(below, edge + (_BETWEEN if branches else 0), depth + 1, tops)
        branches.append((label, placed))
    width = max(edge - left, _wide(node))
    if branches:
        middle = (branches[0][1].x + branches[-1][1].x) / 2
        middle = max(middle, left + _wide(node) / 2)
    else:
        middle = left + width / 2
    right = max(edge, middle + _wide(node) / 2)
    return _Placed(node, middle, tops[depth], tuple(branches)), right


def _all(placed: _Placed) -> Iterator[_Placed]:
    yield placed
    for _, below in placed.branches:
        yield from _all(below)


def _edges(one: _Placed) -> Iterator[str]:
    start = one.y + one.tall
    for label, below in one.branches:
        yield element("path leader", d=f"M{one.x:.1f},{start:.1f}L{below.x:.1f},{below.y:.1f}")
        x, y = (one.x + 2 * below.x) / 3, (start + 2 * below.y) / 3
        anchor = "end" if below.x < one.x else "start"
        yield text("hint", x + (-12 if anchor == "end" else 12), y - 2, label, anchor)


def _box(one: _Placed) -> Iterator[str]:
    sure = _STRONGEST * min(max(one.node.strength, 0.0), 1.0)
    tooltip = "; ".join(one.node.lines)
    left = one.x - one.wide / 2
    yield element("rect box", x=left, y=one.y, width=one.wide, height=one.tall, rx=4)
    yield element(
        "rect cell heat",
        tooltip,
        x=left,
        y=one.y,
        width=one.wide,
        height=one.tall,
        rx=4,
        fill_opacity=f"{sure:.3f}",
    )
    for number, words in enumerate(one.node.lines):
        y = one.y + _PAD + (LINE + 1) * number + 8
        yield text("best" if not number else "value", one.x, y, short(words, _MOST), "middle")


def _said(node: Node) -> str:
    words = ", ".join(node.lines)
    if not node.branches:
        return words
    below = "; ".join(f"{label}: {_said(inner)}" for label, inner in node.branches)
    return f"{words} ({below})"
