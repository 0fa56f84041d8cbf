"""Points of a plane, read back from their SVG."""

from __future__ import annotations

import re

import numpy as np
import pytest
from drawings import PLANE, boxes, marks, of_class, overlaps, read, ticks

from cfbench_core.reports.charts import Point, scatter_chart


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
    points += [Point("certified", x, y, role="certified") for x in (0, 10) for y in (0, 10)]
    points += [Point("half", x, y, role="partial") for x in (0, 10) for y in (0, 10)]
    directions = {"x_direction": x_direction, "y_direction": y_direction}
    root = read(scatter_chart(points, **{**PLANE, **directions}))
    (front,) = of_class(root, "front")
    found = marks(root)
    ends = {
        name: next(p for reported, p in found.items() if reported.startswith(f"{name}:")) for name in corner
    }
    x1, y1, x2, y2 = (float(v) for v in re.findall(r"[\d.]+", front.attrib["d"]))
    assert np.allclose(sorted([(x1, y1), (x2, y2)]), sorted(ends.values()), atol=0.2)


def test_there_is_no_front_without_two_directions() -> None:
    points = [Point("a", 0, 0), Point("b", 1, 1)]
    assert of_class(read(scatter_chart(points, **PLANE)), "front")
    assert not of_class(read(scatter_chart(points, **{**PLANE, "x_direction": ""})), "front")
    assert not of_class(read(scatter_chart(points, **PLANE, front=False)), "front")


def test_decades_are_equally_wide_and_values_that_are_not_positive_are_listed_below() -> None:
    points = [
        *(Point(str(n), 10.0**n, n) for n in range(-3, 3)),
        Point("nothing", 0, 1),
        Point("less", -1, 1),
    ]
    root = read(scatter_chart(points, **PLANE, log_x=True))
    xs = [x for reported, (x, _) in sorted(marks(root).items(), key=lambda item: item[1])]
    assert np.ptp(np.diff(xs)) < 0.3
    assert "not in the plane, without numbers there: nothing, less" in [
        t.text for t in of_class(root, "hint")
    ]


def test_names_of_points_do_not_cover_each_other_or_a_mark() -> None:
    rng = np.random.default_rng(0)
    crowd = [
        Point(f"explainer-{n}", *rng.normal(5, 0.1, 2), role="baseline" if n == 3 else "") for n in range(14)
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
