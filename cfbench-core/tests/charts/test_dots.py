"""Dots with intervals: each value where it belongs, nothing joined."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from cfbench_core.reports.charts import Series, dot_chart
from cfbench_core.reports.charts.dots import GAP, PANEL


def circles(svg: str) -> list[tuple[str, float, float]]:
    root = ElementTree.fromstring(svg)
    return [
        (c[0].text or "", float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.iter("circle") if len(c)
    ]


def test_each_value_is_a_dot_in_its_panel_and_nothing_joins_them() -> None:
    series = [
        Series("a", [0, 1], [0.2, 0.8], [0.1, 0.7], [0.3, 0.9]),
        Series("b", [1], [0.5], role="baseline"),
    ]
    svg = dot_chart(series, ["mf", "ease"], title="t", label="POS-P", direction="lower")
    assert "<path" not in svg and "← better" in svg
    at = {words: (x, y) for words, x, y in circles(svg)}
    a_mf, a_ease, b_ease = "a, mf: 0.2 (0.1 to 0.3)", "a, ease: 0.8 (0.7 to 0.9)", "b (baseline), ease: 0.5"
    assert set(at) == {a_mf, a_ease, b_ease}
    assert at[a_mf][1] == at[a_ease][1] < at[b_ease][1]  # a line for each series
    slope = (at[a_ease][0] - at[b_ease][0]) / 0.3  # pixels for one unit, within a panel
    assert at[a_ease][0] - at[a_mf][0] == pytest.approx(PANEL + GAP + 0.6 * slope, abs=0.3)
    assert svg.count('class="interval') == 2


def test_what_is_missing_or_not_positive_has_no_dot() -> None:
    svg = dot_chart(
        [Series("a", [0, 1, 2], [1.0, 0.0, math.nan])], ["x", "y", "z"], title="t", label="ms", log=True
    )
    assert [words for words, _, _ in circles(svg)] == ["a, x: 1"]
    assert "y: none, z: none" in svg


@pytest.mark.parametrize("names", [[], ["only"]])
def test_few_panels_and_series_are_well_formed(names: list[str]) -> None:
    ElementTree.fromstring(dot_chart([], names, title="t", label="l"))
