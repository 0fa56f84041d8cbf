"""Charts are read back from their SVG: what stands where, and whether names can be read."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cfbench_core.reports
from cfbench_core.reports.charts import (
    Bar,
    Node,
    Point,
    Series,
    bar_chart,
    heat_map,
    line_chart,
    scatter_chart,
    tree_chart,
)

LINE = 11
WIDTHS = {  # of letters of 11 px, as Chromium draws them in DejaVu Sans
    3.1: "ijl", 3.2: "IJ", 3.5: " ·.,", 3.7: "|", 3.8: "f", 4.0: "-", 4.3: "rt()", 5.5: "_", 5.7: "s", 5.8: "z", 6.0: "c",
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


def lines(*values: list[float], names: str = "abcdefghijklmn") -> list[Series]:
    return [Series(names[n] * 9, range(len(y)), y) for n, y in enumerate(values)]


LABELS = {"title": "Fidelity", "x_label": "K", "y_label": "POS-P"}
PLANE = {"title": "Costs", "x_label": "s", "y_label": "hit", "x_direction": "lower", "y_direction": "higher"}


# Lines


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


def test_twelve_lines_that_end_together_are_told_apart_by_shape_and_dash_and_their_names_can_be_read() -> (
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
    given_series = [Series("a", [0, 1], [1, 2]), Series("random", [0, 1], [0, 0], role="floor")]
    root = read(line_chart(given_series, **LABELS))
    assert len(of_class(root, "floor", "series")) == 2 and not of_class(root, "c1")
    assert [t.text for t in of_class(root, "name")] == ["a", "random (floor)"]


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


# Points


def test_points_of_a_plane_stand_where_the_axes_say() -> None:
    points = [Point("a", 1, 5), Point("b", 2, 7), Point("c", 4, 6)]
    root = read(scatter_chart(points, **PLANE))
    (ax, bx), (ay, by) = ticks(root, "middle"), ticks(root, "end")
    for point in points:
        x, y = marks(root)[f"{point.name}: hit {point.y}, s {point.x}"]
        assert (x, y) == (
            pytest.approx(ax * point.x + bx, abs=0.3),
            pytest.approx(ay * point.y + by, abs=0.5),
        )


@pytest.mark.parametrize(
    ("x_direction", "y_direction", "corner"),
    [
        ("lower", "higher", "ac"),
        ("higher", "higher", "cb"),
        ("lower", "lower", "ad"),
        ("higher", "lower", "db"),
    ],
)
def test_the_front_joins_those_whom_nobody_beats_on_both(
    x_direction: str, y_direction: str, corner: str
) -> None:
    """A square on its tip: a left, b right, c above, d below; a control and an incomplete one beat them all."""
    points = [Point("a", 0, 5), Point("b", 10, 5), Point("c", 5, 10), Point("d", 5, 0)]
    points += [Point("bound", x, y, role="bound") for x in (0, 10) for y in (0, 10)]
    points += [Point("half", x, y, role="partial") for x in (0, 10) for y in (0, 10)]
    directions = {"x_direction": x_direction, "y_direction": y_direction}
    root = read(scatter_chart(points, **{**PLANE, **directions}))
    (front,) = of_class(root, "front")
    found = marks(root)
    ends = {name: next(p for told, p in found.items() if told.startswith(f"{name}:")) for name in corner}
    x1, y1, x2, y2 = (float(v) for v in re.findall(r"[\d.]+", front.attrib["d"]))
    assert np.allclose(sorted([(x1, y1), (x2, y2)]), sorted(ends.values()), atol=0.2)


def test_there_is_no_front_without_two_directions() -> None:
    points = [Point("a", 0, 0), Point("b", 1, 1)]
    assert of_class(read(scatter_chart(points, **PLANE)), "front")
    assert not of_class(read(scatter_chart(points, **{**PLANE, "x_direction": ""})), "front")
    assert not of_class(read(scatter_chart(points, **PLANE, front=False)), "front")


def test_decades_are_equally_wide_and_what_is_not_positive_is_told_below() -> None:
    points = [
        *(Point(str(n), 10.0**n, n) for n in range(-3, 3)),
        Point("nothing", 0, 1),
        Point("less", -1, 1),
    ]
    root = read(scatter_chart(points, **PLANE, log_x=True))
    xs = [x for told, (x, _) in sorted(marks(root).items(), key=lambda item: item[1])]
    assert np.ptp(np.diff(xs)) < 0.3
    assert "not in the plane, without numbers there: nothing, less" in [
        t.text for t in of_class(root, "hint")
    ]


def test_names_of_points_do_not_cover_each_other_or_a_mark() -> None:
    rng = np.random.default_rng(0)
    crowd = [
        Point(f"explainer-{n}", *rng.normal(5, 0.1, 2), role="floor" if n == 3 else "") for n in range(14)
    ]
    same = [Point(f"the-same-{n}", 1.0, 1.0) for n in range(6)]
    for points in (crowd, same, [*crowd, *same]):
        root = read(scatter_chart(points, **PLANE))
        names = boxes(root, "name")
        assert len(names) == len(points)
        dots = {(x - 3, y - 3, x + 3, y + 3) for x, y in marks(root).values()}
        assert not overlaps(names)
        assert not [pair for name in names for dot in dots for pair in overlaps([name, dot])]
        assert all(left >= 0 and right <= 520 for left, _, right, _ in names)


def test_intervals_of_a_point_reach_as_far_as_they_say() -> None:
    root = read(scatter_chart([Point("a", 5, 5, 4, 6, 3, 8), Point("b", 1, 1)], **PLANE))
    upright, across = of_class(root, "whisker")
    slope, offset = ticks(root, "end")
    assert float(upright.attrib["y2"]) == pytest.approx(slope * 8 + offset, abs=0.5)
    slope, offset = ticks(root, "middle")
    assert float(across.attrib["x1"]) == pytest.approx(slope * 4 + offset, abs=0.3)


# Matrices


def test_a_heat_map_prints_its_numbers_and_the_best_is_the_strongest() -> None:
    root = read(heat_map(["a", "b"], ["x", "y"], [[1, 2], [3, NAN]], title="Heat", direction="lower"))
    assert [t.text for t in of_class(root, "value")] == ["1", "2", "3", "–"]
    strength = [float(c.attrib["fill-opacity"]) for c in of_class(root, "cell", "heat")]
    assert strength[0] > strength[1] > strength[2]
    assert len(of_class(root, "cell", "none")) == 1
    assert root.attrib["aria-label"] == "Heat. a: x 1, y 2; b: x 3, y none"


def test_values_of_both_signs_are_told_apart_and_equal_sizes_are_equally_strong() -> None:
    root = read(heat_map(["a"], ["x", "y", "z"], [[-0.5, 0.5, 1]], title="Heat"))
    (below,) = of_class(root, "cell", "below")
    above = of_class(root, "cell", "heat")
    assert below.attrib["fill-opacity"] == above[0].attrib["fill-opacity"]


def test_a_heat_map_prints_other_text_if_asked_and_refuses_another_shape() -> None:
    root = read(heat_map(["a"], ["x", "y"], [[1, 2]], title="Heat", text=[["one", "two"]]))
    assert [t.text for t in of_class(root, "value")] == ["one", "two"]
    with pytest.raises(ValueError, match="1 rows and 2 columns"):
        heat_map(["a"], ["x", "y"], [[1]], title="Heat")


# Whatever comes


numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)
words = st.text(max_size=30)


@settings(max_examples=150, deadline=None)
@given(
    columns=st.lists(
        st.tuples(words, st.lists(st.tuples(numbers, numbers, numbers, numbers), max_size=5)), max_size=4
    ),
    log=st.booleans(),
    title=words,
)
def test_lines_of_any_numbers_and_names_are_a_drawing(
    columns: list[tuple[str, list[tuple[float, ...]]]], log: bool, title: str
) -> None:
    series = [Series(name, *([row[c] for row in rows] for c in range(4))) for name, rows in columns]  # type: ignore[arg-type]
    root = read(line_chart(series, title=title, x_label=title, y_label=title, log_y=log))
    inside(root)
    read(line_chart(series, title=title, x_label="x", y_label="y", x_names=["a", title], y_range=(0, 1)))


@settings(max_examples=150, deadline=None)
@given(
    points=st.lists(
        st.builds(Point, words, *[numbers] * 6, role=st.sampled_from(["", "bound", "floor", "partial"])),
        max_size=6,
    ),
    log=st.booleans(),
)
def test_points_of_any_numbers_and_names_are_a_drawing(points: list[Point], log: bool) -> None:
    root = read(scatter_chart(points, **PLANE, log_x=log))
    inside(root)
    assert not overlaps([box for box in boxes(root, "name") if box[2] - box[0] > 1])


@settings(max_examples=100, deadline=None)
@given(
    values=st.integers(0, 4).flatmap(
        lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), max_size=4)
    ),
    direction=st.sampled_from(["", "higher", "lower"]),
    name=words,
)
def test_a_matrix_of_any_numbers_is_a_drawing(values: list[list[float]], direction: str, name: str) -> None:
    columns = [name] * (len(values[0]) if values else 0)
    read(heat_map([name] * len(values), columns, values, title=name, direction=direction))


def inside(root: ElementTree.Element) -> None:
    """All marks are within the frame."""
    width, height = (float(v) for v in root.attrib["viewBox"].split()[2:])
    for x, y in marks(root).values():
        assert -1 <= x <= width + 1 and -1 <= y <= height + 1


# Colours

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


# Bars


def test_bars_start_at_zero_and_are_as_long_as_their_values() -> None:
    bars = [Bar("a", 1.0, 0.9, 1.1), Bar("b", 0.5), Bar("none", NAN), Bar("luck", 0.25, role="floor")]
    root = read(bar_chart(bars, title="Coverage", x_label="share", direction="higher", x_range=(0, 1)))
    a, b, luck = of_class(root, "amount")
    assert a.attrib["x"] == b.attrib["x"] == luck.attrib["x"]
    lengths = [float(bar.attrib["width"]) for bar in (a, b, luck)]
    assert lengths[0] == pytest.approx(2 * lengths[1], abs=0.2)
    assert lengths[1] == pytest.approx(2 * lengths[2], abs=0.2)
    assert "floor" in luck.attrib["class"] and "luck (floor)" in [e.text for e in root.iter("text")]
    assert "none none" in root.attrib["aria-label"] and "a 1 (0.9 to 1.1)" in root.attrib["aria-label"]
    assert len(of_class(root, "whisker")) == 1


def test_bars_below_zero_go_the_other_way_and_no_bars_are_no_error() -> None:
    root = read(bar_chart([Bar("a", -2.0), Bar("b", 1.0)], title="t", x_label="x"))
    (down, up), (axis,) = of_class(root, "amount"), of_class(root, "axis")
    zero = float(axis.attrib["x1"])
    assert float(down.attrib["x"]) + float(down.attrib["width"]) == pytest.approx(zero, abs=0.2)
    assert float(up.attrib["x"]) == pytest.approx(zero, abs=0.2)
    read(bar_chart([], title="t", x_label="x"))


# Trees


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


# Powers of ten


def test_colours_by_powers_of_ten_tell_a_millisecond_from_a_microsecond() -> None:
    values = [[1e-6, 1e-3, 1.0], [NAN, 0.0, 1.0]]
    root = read(heat_map(["a", "b"], ["x", "y", "z"], values, title="t", direction="lower", log=True))
    strong, middle, weak, last = (float(c.attrib["fill-opacity"]) for c in of_class(root, "heat"))
    assert strong > middle > weak == last
    assert strong - middle == pytest.approx(middle - weak, abs=0.01)
    assert len(of_class(root, "none")) == 2
