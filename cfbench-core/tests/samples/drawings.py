"""Reads a chart back from its SVG: what stands where, and how much room names take."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np

LINE = 11
WIDTHS = {  # of letters of 11 px, as Chromium draws them in DejaVu Sans
    3.0: "'", 3.1: "ijl", 3.2: "IJ", 3.5: " ·.,", 3.7: "|:;/\\", 3.8: "f", 4.0: "-",
    4.3: "rt()[]", 4.4: "!", 5.5: "_", 5.7: "s", 5.8: "z", 6.0: "c",
    6.1: "L", 6.3: "F", 6.4: "k", 6.5: "vxyT", 6.6: "P", 6.7: "aoY", 6.8: "e", 7.0: "bdghnpquES0123456789", 7.2: "K",
    7.5: "BVXZ", 7.6: "R", 7.7: "C", 7.8: "A", 8.1: "U", 8.2: "N", 8.3: "H", 8.5: "DG", 8.7: "OQ", 9.0: "w", 9.2: "#<>",
    9.5: "M", 10.7: "m", 10.9: "W", 11.0: "@…",
}  # fmt: skip
LETTERS = {letter: width for width, letters in WIDTHS.items() for letter in letters}
NAN = math.nan


def read(svg: str) -> ElementTree.Element:
    """The drawing; with every number in it a number."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name not in ("aria-label", "class"):
                assert not re.search(r"\b(nan|inf)", value), (element.tag, name, value)
    return root


def of_class(root: ElementTree.Element, *names: str) -> list[ElementTree.Element]:
    return [e for e in root.iter() if {*names} <= {*e.attrib.get("class", "").split()}]


def place(mark: ElementTree.Element) -> tuple[float, float]:
    """The middle of a mark."""
    if mark.tag == "circle":
        return float(mark.attrib["cx"]), float(mark.attrib["cy"])
    if mark.tag == "rect":
        return (
            float(mark.attrib["x"]) + float(mark.attrib["width"]) / 2,
            float(mark.attrib["y"]) + float(mark.attrib["height"]) / 2,
        )
    x, y = re.match(r"M([-\d.]+),([-\d.]+)", mark.attrib["d"]).groups()  # type: ignore[union-attr]
    return float(x), float(y) + (-5 if "l4.7,-8.2" in mark.attrib["d"] else 5)


def marks(root: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """Marks that tell a number, by what they tell."""
    return {
        title.text or "": place(mark)
        for mark in of_class(root)
        if (title := mark.find("title")) is not None and mark.tag in ("circle", "rect", "path")
    }


def ticks(root: ElementTree.Element, anchor: str) -> tuple[float, float]:
    """Slope and offset of an axis, from its numbers: "middle" is below, "end" on the left."""
    found = [
        (
            float((t.text or "").replace(",", "")),
            float(t.attrib["x"]) if anchor == "middle" else float(t.attrib["y"]) - 4,
        )
        for t in of_class(root, "tick")
        if t.attrib["text-anchor"] == anchor
    ]
    slope, offset = np.polyfit([value for value, _ in found], [pixel for _, pixel in found], 1)
    return float(slope), float(offset)


def boxes(root: ElementTree.Element, *classes: str) -> list[tuple[float, float, float, float]]:
    """What texts cover: left, top, right, bottom."""
    found = []
    for text in of_class(root, *classes):
        if text.tag != "text" or "transform" in text.attrib:
            continue
        wide = sum(LETTERS.get(letter, 7.0) for letter in text.text or "")
        x = float(text.attrib["x"]) - {"start": 0, "middle": 0.5, "end": 1}[text.attrib["text-anchor"]] * wide
        y = float(text.attrib["y"])
        found.append((x, y - LINE + 2, x + wide, y + 2))
    return found


def overlaps(found: list[tuple[float, float, float, float]]) -> list[object]:
    return [
        (a, b)
        for a, b in itertools.combinations(found, 2)
        if min(a[2], b[2]) - max(a[0], b[0]) > 0.5 and min(a[3], b[3]) - max(a[1], b[1]) > 0.5
    ]


LABELS = {"title": "Fidelity", "x_label": "K", "y_label": "POS-P"}
PLANE = {"title": "Costs", "x_label": "s", "y_label": "hit", "x_direction": "lower", "y_direction": "higher"}


def inside(root: ElementTree.Element) -> None:
    """All marks are within the frame."""
    width, height = (float(v) for v in root.attrib["viewBox"].split()[2:])
    for x, y in marks(root).values():
        assert -1 <= x <= width + 1 and -1 <= y <= height + 1
