"""Columns that follow from others: each repaired value is the nearest one that satisfies the constraint."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_tabular.constraints import Constraint
from cfbench_tabular.dependent_columns import DependentColumns
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import Column

RELATIONS = ("product", "ratio", "sum", "difference", "at_least", "at_most")


def encoding_of(columns: dict[str, float | None], *constraints: Constraint, scale: float = 2.5) -> Encoding:
    """Numeric columns by name with their steps, between -100 and 100."""
    size = len(columns)
    mean, scales = np.linspace(-1.0, 1.0, size), np.full(size, scale)
    return Encoding(
        tuple(Column(name, step=step) for name, step in columns.items()),
        mean,
        scales,
        (-100.0 - mean) / scales,
        (100.0 - mean) / scales,
        constraints,
    )


def encoded(encoding: Encoding, *rows: tuple[float, ...]) -> np.ndarray:
    names = [column.name for column in encoding.columns]
    return encoding.encode(dict(zip(names, np.array(rows, dtype=float).T, strict=True)))


def repaired(encoding: Encoding, vectors: np.ndarray) -> np.ndarray:
    return DependentColumns(encoding, *encoding.bounds).repaired(vectors)[0]


@settings(max_examples=200, deadline=None)
@given(
    relation=st.sampled_from(RELATIONS),
    values=st.tuples(*[st.integers(-9, 9)] * 3),
    step=st.sampled_from([0.5, 1.0]),
    absolute=st.sampled_from([0.0, 0.25, 0.5, 2.0]),
)
def test_the_repaired_value_is_the_nearest_of_all_that_satisfy_the_constraint(
    relation, values, step, absolute
):
    constraint = Constraint(column="c", relation=relation, of=("a", "b"), absolute=absolute)
    encoding = encoding_of({"a": 1.0, "b": 1.0, "c": step}, constraint)
    a, b, c = (Fraction(value) for value in values)
    found = encoding.decode(repaired(encoding, encoded(encoding, values)))
    every = [k * Fraction(step) for k in range(-400, 401)]
    if relation == "ratio" and b == 0:
        good = []
    else:
        expected = {"product": a * b, "sum": a + b, "difference": a - b}.get(relation, a + b)
        expected = a / b if relation == "ratio" else expected
        low = -1000 if relation == "at_most" else expected - Fraction(absolute)
        high = 1000 if relation == "at_least" else expected + Fraction(absolute)
        good = [value for value in every if low <= value <= high]
    inside = [value for value in good if -100 <= value <= 100]
    if inside:
        assert (found["a"][0], found["b"][0]) == values[:2]
        assert abs(Fraction(float(found["c"][0])) - c) == min(abs(value - c) for value in inside)
    assert found["c"][0] % step == 0


def test_rows_that_satisfy_all_constraints_are_the_same_object():
    encoding = encoding_of(
        {"a": 1.0, "b": 1.0, "c": 0.01},
        Constraint(column="c", relation="ratio", of=("a", "b"), absolute=0.005),
    )
    rows = encoded(encoding, (1, 3, 0.33), (2, 3, 0.67))
    assert repaired(encoding, rows) is rows


def test_rows_without_violation_keep_every_bit_whatever_the_other_rows():
    constraint = Constraint(column="c", relation="sum", of=("a", "b"), absolute=1.0)
    encoding = encoding_of(dict.fromkeys("abc"), constraint)
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 50))
    rows = encoded(encoding, *zip(a, b, a + b + np.where(np.arange(50) % 2, 0.5, 3.0), strict=True))
    found, _ = DependentColumns(encoding, *encoding.bounds).repaired(rows)
    assert (found[1::2] == rows[1::2]).all() and (found[::2] != rows[::2]).any(axis=1).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_columns_that_others_depend_on_come_first_in_any_order_of_the_constraints(reverse):
    constraints = [
        Constraint(column="area", relation="product", of=("height", "length")),
        Constraint(column="share", relation="ratio", of=("part", "area"), absolute=0.005),
    ]
    names = dict.fromkeys(["height", "length", "area", "part"], 1.0) | {"share": 0.01}
    encoding = encoding_of(names, *(constraints[::-1] if reverse else constraints))
    found = encoding.decode(repaired(encoding, encoded(encoding, (5, 4, 11, 10, 0.9))))
    assert (found["area"][0], found["share"][0], found["part"][0]) == (20, 0.5, 10)


def test_a_share_of_at_most_one_limits_the_part_to_the_whole():
    constraint = Constraint(column="share", relation="ratio", of=("part", "whole"), absolute=0.0005)
    encoding = encoding_of({"part": 1.0, "whole": 1.0, "share": 0.001}, constraint)
    low, high = (side.copy() for side in encoding.bounds)
    high[2] = encoding.encode_number(2, np.array([1.0]))[0]
    rows, possible = DependentColumns(encoding, low, high).repaired(encoded(encoding, (9, 4, 0.5)))
    found = encoding.decode(rows)
    assert (found["part"][0], found["whole"][0], found["share"][0]) == (4, 4, 1)
    assert possible.all()


@pytest.mark.parametrize(
    ("relation", "of", "values", "first"),
    [
        ("product", ("a", "b"), (30, 5, 0), 20.0),
        ("product", ("a", "a"), (-30, 5, 0), -10.0),
        ("sum", ("a", "b"), (98, 7, 0), 93.0),
        ("difference", ("a", "b"), (98, -7, 0), 93.0),
        ("ratio", ("a", "b"), (99, 0.5, 0), 50.0),
    ],
)
def test_the_first_other_column_follows_where_the_constrained_one_is_at_its_limit(
    relation, of, values, first
):
    encoding = encoding_of(dict.fromkeys("abc"), Constraint(column="c", relation=relation, of=of))
    found = encoding.decode(repaired(encoding, encoded(encoding, values)))
    assert found["c"][0] == pytest.approx(100) and found["a"][0] == pytest.approx(first)
    assert found["b"][0] == pytest.approx(values[1])


def test_a_row_that_cannot_be_repaired_is_recognised():
    constraint = Constraint(column="c", relation="ratio", of=("a", "b"))
    encoding = encoding_of(dict.fromkeys("abc", 1.0), constraint)
    rows = encoded(encoding, (1, 0, 5), (1, 3, 5), (6, 3, 5))
    assert DependentColumns(encoding, *encoding.bounds).repaired(rows)[1].tolist() == [False, False, True]
    low = np.where(np.arange(3) < 2, -np.inf, encoding.encode_number(2, np.array([3.0])))
    low = np.maximum(low, encoding.bounds[0])
    assert not DependentColumns(encoding, low, low).repaired(rows[1:])[1].any()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_gradients_follow_the_constraints_as_finite_differences_do(seed):
    constraints = (
        Constraint(column="area", relation="product", of=("height", "length"), factor=0.5),
        Constraint(column="share", relation="ratio", of=("part", "area")),
        Constraint(column="rest", relation="difference", of=("area", "part")),
        Constraint(column="total", relation="sum", of=("height", "length", "part"), factor=2.0),
    )
    names = ["height", "length", "area", "part", "share", "rest", "total"]
    encoding = encoding_of(dict.fromkeys(names), *constraints)
    dependent = DependentColumns(encoding, *encoding.bounds)
    draw = np.random.default_rng(seed)
    rows = encoded(encoding, tuple(draw.uniform(1, 4, size=7)))
    weights = draw.normal(size=7)

    def score(vectors: np.ndarray) -> float:
        return float((np.sin(dependent.repaired(vectors)[0]) @ weights)[0])

    fixed, _ = dependent.repaired(rows)
    found = dependent.pulled_back(np.cos(fixed) * weights, rows, fixed)[0]
    width = 1e-5
    expected = [
        (score(rows + move) - score(rows - move)) / (2 * width) for move in width * np.eye(7)[:, None]
    ]
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
