"""Matrices as heat maps, read back from their SVG."""

from __future__ import annotations

import pytest
from drawings import NAN, of_class, read

from cfbench_core.reports.charts import heat_map


def test_a_heat_map_prints_its_numbers_and_the_best_is_the_strongest() -> None:
    root = read(heat_map(["a", "b"], ["x", "y"], [[1, 2], [3, NAN]], title="Heat", direction="lower"))
    assert [t.text for t in of_class(root, "value")] == ["1", "2", "3", "–"]
    strength = [float(c.attrib["fill-opacity"]) for c in of_class(root, "cell", "heat")]
    assert strength[0] > strength[1] > strength[2]
    assert len(of_class(root, "cell", "none")) == 1
    assert root.attrib["aria-label"] == "Heat. a: x 1, y 2; b: x 3, y none"


def test_values_of_both_signs_are_distinguished_and_equal_sizes_are_equally_strong() -> None:
    root = read(heat_map(["a"], ["x", "y", "z"], [[-0.5, 0.5, 1]], title="Heat"))
    (below,) = of_class(root, "cell", "below")
    above = of_class(root, "cell", "heat")
    assert below.attrib["fill-opacity"] == above[0].attrib["fill-opacity"]


def test_a_heat_map_prints_given_text_and_refuses_another_shape() -> None:
    root = read(heat_map(["a"], ["x", "y"], [[1, 2]], title="Heat", text=[["one", "two"]]))
    assert [t.text for t in of_class(root, "value")] == ["one", "two"]
    with pytest.raises(ValueError, match="1 rows and 2 columns"):
        heat_map(["a"], ["x", "y"], [[1]], title="Heat")


def test_colours_by_powers_of_ten_distinguish_a_millisecond_from_a_microsecond() -> None:
    values = [[1e-6, 1e-3, 1.0], [NAN, 0.0, 1.0]]
    root = read(heat_map(["a", "b"], ["x", "y", "z"], values, title="t", direction="lower", log=True))
    strong, middle, weak, last = (float(c.attrib["fill-opacity"]) for c in of_class(root, "heat"))
    assert strong > middle > weak == last
    assert strong - middle == pytest.approx(middle - weak, abs=0.01)
    assert len(of_class(root, "none")) == 2
