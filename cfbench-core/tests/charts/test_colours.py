"""Colours of series stand out from the page and from each other, for every reader."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import cfbench_core.reports

STYLE = (Path(cfbench_core.reports.__file__).parent / "templates/style.css").read_text()
THEMES = dict(
    zip(
        ("light", "dark", "print"),
        (
            dict(re.findall(r"--([\w-]+): (#\w+)", root))
            for root in re.findall(r":root \{(.*?)\}", STYLE, re.S)
        ),
        strict=True,
    )
)


def linear(colour: str) -> np.ndarray:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    part = np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG 2, equation of relative luminance."""
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_every_colour_of_a_series_stands_out_from_the_page(theme: str) -> None:
    """At least 3:1, as WCAG 1.4.11 asks of graphics; text in it is in ink."""
    colours = THEMES[theme]
    series = [colour for name, colour in colours.items() if re.fullmatch(r"c\d", name)]
    assert len(series) == 7
    assert all(contrast(colour, colours["paper"]) >= 3 for colour in series)


MACHADO = {  # Machado, Oliveira & Fernandes 2009, severity 1.0
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}


@pytest.mark.parametrize("kind", MACHADO)
@pytest.mark.parametrize("theme", THEMES)
def test_no_two_colours_are_one_to_a_colour_blind_reader(theme: str, kind: str) -> None:
    """CIELAB distance of 10 at least: clearly different side by side (2.3 is just noticeable)."""
    series = [colour for name, colour in THEMES[theme].items() if re.fullmatch(r"c\d", name)]
    seen = [lab(np.array(MACHADO[kind]) @ linear(colour)) for colour in series]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 10


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
