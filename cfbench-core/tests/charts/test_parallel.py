"""Parallel axes: a mark for each value, at its place on its axis."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from cfbench_core.reports.charts import Axis, ParallelLine, parallel_axes
from cfbench_core.reports.charts.parallel import PLOT

AXES = [Axis("age", 20, 60), Axis("job", 0, 1, ("clerk", "cook", "smith"))]


def paths(svg: str) -> list[list[float]]:
    """Heights of each line, over the axes."""
    found = re.findall(r'<path class="series [^"]*" d="M([^"]*)"', svg)
    return [[float(point.split(",")[1]) for point in line.split("L")] for line in found]


def test_a_value_stands_at_its_share_of_the_axis_and_lines_meet_where_they_are_equal() -> None:
    svg = parallel_axes(AXES, [ParallelLine("row", [20, 2]), ParallelLine("a", [40, 2])], title="t")
    ElementTree.fromstring(svg)
    other, row = paths(svg)  # the row is drawn last, above the others
    assert row[0] - other[0] == pytest.approx(PLOT / 2, abs=0.2)  # 40 is in the middle of 20 and 60
    assert row[1] == other[1]  # both are smiths
    assert "a: age 40, job smith" in svg and "strong" in svg


def test_values_outside_of_the_axis_end_at_it_and_a_constant_axis_is_drawn() -> None:
    svg = parallel_axes([Axis("x", 1, 1), Axis("y", 0, 1)], [ParallelLine("row", [1, 5])], title="t")
    ((_, y),) = paths(svg)
    assert y == pytest.approx(34.0)


def test_every_line_needs_a_value_for_each_axis() -> None:
    with pytest.raises(ValueError, match="one value for each axis"):
        parallel_axes(AXES, [ParallelLine("row", [1.0])], title="t")
    ElementTree.fromstring(parallel_axes([], [], title="nothing"))
