"""Lines over an axis, read back from their SVG: what stands where, and whether names can be read."""

from __future__ import annotations

import re

import numpy as np
import pytest
from drawings import LABELS, NAN, boxes, marks, of_class, overlaps, read, ticks

from cfbench_core.reports.charts import Series, line_chart


def lines(*values: list[float], names: str = "abcdefghijklmn") -> list[Series]:
    return [Series(names[n] * 9, range(len(y)), y) for n, y in enumerate(values)]


def test_points_of_a_line_stand_where_the_axes_say() -> None:
    root = read(line_chart([Series("a", [1, 3, 5], [0.2, 0.9, 0.4])], **LABELS))
    (ax, bx), (ay, by) = ticks(root, "middle"), ticks(root, "end")
    assert ay < 0  # more is further up
    found = marks(root)
    assert found.keys() == {"a at 1: 0.2", "a at 3: 0.9", "a at 5: 0.4"}
    for x, y in ((1, 0.2), (3, 0.9), (5, 0.4)):
        assert found[f"a at {x}: {y}"] == (
            pytest.approx(ax * x + bx, abs=0.3),
            pytest.approx(ay * y + by, abs=0.5),
        )


def test_a_gap_is_left_where_a_value_is_missing() -> None:
    root = read(line_chart([Series("a", range(6), [1, 2, NAN, 3, 4, NAN])], **LABELS))
    drawn = [e.attrib["d"] for e in of_class(root, "series") if "h" not in e.attrib["d"]]
    assert [path.count("L") for path in drawn] == [1, 1]
    assert len(marks(root)) == 4
    assert "0: 1, 1: 2, 2: none, 3: 3, 4: 4, 5: none" in root.attrib["aria-label"]


def test_a_single_value_of_x_is_a_mark_without_a_line() -> None:
    root = read(line_chart([Series("a", [5], [0.5], [0.4], [0.6])], **LABELS))
    assert marks(root).keys() == {"a at 5: 0.5 (0.4 to 0.6)"}
    assert not [e for e in of_class(root, "series") if "h" not in e.attrib["d"]]
    (whisker,) = of_class(root, "whisker")
    assert float(whisker.attrib["x1"]) == marks(root)["a at 5: 0.5 (0.4 to 0.6)"][0]


def test_intervals_are_whiskers_and_bands_where_there_are_many() -> None:
    few = Series("a", range(3), [1, 2, 3], [0, 1, 2], [2, 3, NAN])
    root = read(line_chart([few], **LABELS))
    slope, offset = ticks(root, "end")
    ends = [(float(w.attrib["y1"]), float(w.attrib["y2"])) for w in of_class(root, "whisker")]
    expected = [(slope * low + offset, slope * (low + 2) + offset) for low in (0, 1)]
    assert np.allclose(ends, expected, atol=0.5)  # the third has no upper end
    many = Series("a", range(20), range(20), np.arange(20) - 1, np.arange(20) + 1)
    root = read(line_chart([many], **LABELS))
    assert len(of_class(root, "area")) == 1 and not of_class(root, "whisker")


def test_twelve_lines_that_end_together_are_distinguished_by_shape_and_dash_and_their_names_can_be_read() -> (
    None
):
    values = [[n / 10, 0.5 + n / 1000] for n in range(12)]
    root = read(line_chart(lines(*values), **LABELS))
    names = boxes(root, "name")
    assert len(names) == 12 and not overlaps(names)
    assert all(right <= 520 for _, _, right, _ in names)
    samples = [e for e in of_class(root, "series") if "h" in e.attrib["d"]]
    shapes = [e for e in of_class(root, "shape") if e.find("title") is None]
    looks = set()
    for sample, shape in zip(samples, shapes, strict=True):
        outline = re.sub(r"M[-\d.,]+", "", shape.attrib.get("d", ""))
        dash = sample.attrib["class"].split()[-1]
        looks.add((shape.tag, outline, "hollow" in shape.attrib["class"], dash))
    assert len(looks) == 12  # without any colour


def test_names_stand_in_the_order_of_the_ends_and_near_them() -> None:
    root = read(line_chart(lines([0, 0.1], [0, 0.9], [0, 0.5]), **LABELS))
    slope, offset = ticks(root, "end")
    found = {t.text: float(t.attrib["y"]) - 4 for t in of_class(root, "name")}
    for name, value in (("a", 0.1), ("b", 0.9), ("c", 0.5)):
        assert found[name * 9] == pytest.approx(slope * value + offset, abs=0.6)


def test_controls_are_grey_and_say_what_they_are() -> None:
    given_series = [Series("a", [0, 1], [1, 2]), Series("random", [0, 1], [0, 0], role="baseline")]
    root = read(line_chart(given_series, **LABELS))
    assert len(of_class(root, "baseline", "series")) == 2 and not of_class(root, "c1")
    assert [t.text for t in of_class(root, "name")] == ["a", "random (baseline)"]


def test_the_same_place_gives_the_same_look_in_another_chart() -> None:
    both = read(line_chart(lines([1, 2], [2, 3]), **LABELS))
    alone = read(line_chart([Series("b", [0, 1], [2, 3], place=1)], **LABELS))
    second = [e.attrib["class"] for e in of_class(both, "series", "c1")]
    assert second and [e.attrib["class"] for e in of_class(alone, "series")] == second


def test_categories_have_their_names_and_those_who_share_one_do_not_hide_each_other() -> None:
    both = [Series(name, [0, 1], [0.5, 0.6], [0.4, 0.5], [0.6, 0.7]) for name in ("a", "b")]
    root = read(line_chart(both, **LABELS, x_names=["user-only", "full"]))
    below = [t.text for t in of_class(root, "tick") if t.attrib["text-anchor"] == "middle"]
    assert below == ["user-only", "full"]
    found = marks(root)
    assert abs(found["a at 0: 0.5 (0.4 to 0.6)"][0] - found["b at 0: 0.5 (0.4 to 0.6)"][0]) > 3
    assert "a user-only: 0.5 (0.4 to 0.6), full: 0.6 (0.5 to 0.7)" in root.attrib["aria-label"]


def test_long_names_of_categories_are_turned_not_run_together() -> None:
    names = [f"a scope of the name {n}" for n in range(6)]
    root = read(line_chart([Series("a", range(6), range(6))], **LABELS, x_names=names))
    turned = [t for t in of_class(root, "tick") if "transform" in t.attrib]
    assert len(turned) == 6
    assert [t.find("title").text for t in turned] == names  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("direction", "hint"), [("higher", "↑ better · "), ("lower", "↓ better · "), ("", "")]
)
def test_the_axis_says_which_way_is_better(direction: str, hint: str) -> None:
    root = read(line_chart(lines([1, 2]), **LABELS, direction=direction))
    assert f"{hint}POS-P" in [t.text for t in of_class(root, "hint")]


def test_a_range_is_shown_whole_and_has_no_margin() -> None:
    root = read(line_chart(lines([0.2, 0.3]), **LABELS, y_range=(0, 1)))
    written = [t.text for t in of_class(root, "tick") if t.attrib["text-anchor"] == "end"]
    assert written[0] == "0" and written[-1] == "1"
    beyond = read(line_chart(lines([0.2, 3]), **LABELS, y_range=(0, 1)))
    assert max(float(t.text or "") for t in of_class(beyond, "tick") if t.attrib["text-anchor"] == "end") >= 3


def test_powers_of_ten_along_y_leave_out_what_is_not_positive() -> None:
    root = read(line_chart([Series("a", range(4), [1, 10, 100, 0])], **LABELS, log_y=True))
    ys = [y for _, y in marks(root).values()]
    assert len(ys) == 3 and ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="'a'"):
        line_chart([Series("a", [1, 2], [1])], **LABELS)
