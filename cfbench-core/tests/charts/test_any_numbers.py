"""Whatever numbers and names come, it is a drawing, and inside its frame."""

from __future__ import annotations

from drawings import PLANE, boxes, inside, overlaps, read
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.reports.charts import Point, Series, heat_map, line_chart, scatter_chart

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
        st.builds(
            Point,
            words,
            *[numbers] * 6,
            role=st.sampled_from(["", "certified", "reference", "baseline", "partial"]),
        ),
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
