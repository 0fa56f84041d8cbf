"""Bars and trees, read back from their SVG."""

from __future__ import annotations

import itertools

import pytest
from drawings import NAN, of_class, read

from cfbench_core.reports.charts import Bar, Node, bar_chart, tree_chart


def test_bars_start_at_zero_and_are_as_long_as_their_values() -> None:
    bars = [Bar("a", 1.0, 0.9, 1.1), Bar("b", 0.5), Bar("none", NAN), Bar("luck", 0.25, role="baseline")]
    root = read(bar_chart(bars, title="Coverage", x_label="share", direction="higher", x_range=(0, 1)))
    a, b, luck = of_class(root, "amount")
    assert a.attrib["x"] == b.attrib["x"] == luck.attrib["x"]
    lengths = [float(bar.attrib["width"]) for bar in (a, b, luck)]
    assert lengths[0] == pytest.approx(2 * lengths[1], abs=0.2)
    assert lengths[1] == pytest.approx(2 * lengths[2], abs=0.2)
    assert "baseline" in luck.attrib["class"] and "luck (baseline)" in [e.text for e in root.iter("text")]
    assert "none none" in root.attrib["aria-label"] and "a 1 (0.9 to 1.1)" in root.attrib["aria-label"]
    assert len(of_class(root, "whisker")) == 1


def test_bars_below_zero_go_the_other_way_and_no_bars_are_no_error() -> None:
    root = read(bar_chart([Bar("a", -2.0), Bar("b", 1.0)], title="t", x_label="x"))
    (down, up), (axis,) = of_class(root, "amount"), of_class(root, "axis")
    zero = float(axis.attrib["x1"])
    assert float(down.attrib["x"]) + float(down.attrib["width"]) == pytest.approx(zero, abs=0.2)
    assert float(up.attrib["x"]) == pytest.approx(zero, abs=0.2)
    read(bar_chart([], title="t", x_label="x"))


def test_boxes_of_a_tree_lie_below_each_other_and_do_not_overlap() -> None:
    leaves = [Node((f"leaf {n}", "1,000 rows"), n / 8) for n in range(8)]
    level = leaves
    while len(level) > 1:
        level = [
            Node(("a rather long question <= 3", "rows"), 0.5, (("yes", left), ("no", right)))
            for left, right in zip(level[::2], level[1::2], strict=True)
        ]
    root = read(tree_chart(level[0], title="Which is best?"))
    boxes = of_class(root, "box")
    assert len(boxes) == 15 and len(of_class(root, "leader")) == 14
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    areas = [tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height")) for box in boxes]
    for x, y, wide, tall in areas:
        assert x >= 0 and y >= 0 and x + wide <= width and y + tall <= height
    for one, other in itertools.combinations(areas, 2):
        apart = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
        assert apart or one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
    assert "leaf 7" in root.attrib["aria-label"]


def test_a_tree_may_be_one_box() -> None:
    root = read(tree_chart(Node(("cadex", "always"), 1.0), title="t"))
    assert len(of_class(root, "box")) == 1
