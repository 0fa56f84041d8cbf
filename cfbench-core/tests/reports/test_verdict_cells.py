"""Cells of a paper's table have every part that is known."""

from __future__ import annotations

import math

import pytest

from cfbench_core.reports.latex import escape
from cfbench_core.reports.verdict_cells import LEGEND, MARKS, verdict_cell
from cfbench_core.verdicts import CONFIRMED_IN_PART, REFUTED_IN_PART, VERDICTS, Interval


def two(value: float) -> str:
    return f"{value:.2f}"


@pytest.mark.parametrize(
    ("ours", "printed", "verdict", "deviation", "expected"),
    [
        (Interval(0.19, 0.17, 0.21), 0.15, "refuted", 0.23, "0.19 ±0.02 (0.15 ±0.23, +0.04) ✗"),
        (Interval(0.14), 0.15, "confirmed", math.nan, "0.14 (0.15, -0.01) ✓"),
        (Interval(0.14, 0.1, 0.2), math.nan, "not comparable", math.nan, "0.14 ±0.05"),
        (Interval(math.nan), 0.15, "not reproducible", 0.23, "timeout (0.15 ±0.23) ∅"),
        (Interval(math.nan), math.nan, "not comparable", math.nan, "timeout"),
    ],
)
def test_a_cell_has_what_is_known(
    ours: Interval, printed: float, verdict: str, deviation: float, expected: str
) -> None:
    assert verdict_cell(ours, printed, verdict, two, deviation=deviation, state="timeout") == expected


def test_every_verdict_on_a_number_has_a_mark_that_the_legend_explains_and_latex_can_set() -> None:
    assert max(map(len, LEGEND.splitlines())) < 100
    of_numbers = set(VERDICTS) - {CONFIRMED_IN_PART, REFUTED_IN_PART}  # only claims have parts
    assert set(MARKS) == of_numbers and len(set(MARKS.values())) == len(MARKS)
    for word, mark in MARKS.items():
        assert f"{mark} {word}" in LEGEND
        assert escape(mark).isascii()
