"""Values at the steps of their columns, in the encoded space."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_tabular.column_types import (
    decimals_of,
    inferred_step,
    nearest_multiple,
    number_of,
    off_step,
    text_of_number,
)
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import Column, Table

STEPS = (1.0, 0.01, 0.25, 5.0, 0.1)


def encoding_of(*columns: Column, mean: float = 0.0, scale: float = 1.0) -> Encoding:
    """Ranges from -6 to 6, raw."""
    size = len(columns)
    low, high = np.full(size, (-6 - mean) / scale), np.full(size, (6 - mean) / scale)
    return Encoding(columns, np.full(size, mean), np.full(size, scale), low, high)


def test_a_fraction_becomes_the_nearest_whole_number_within_the_range():
    encoding = encoding_of(Column("age", step=1.0), Column("any"), mean=0.5, scale=2.0)
    raw = np.array([[1.4, 1.4], [1.6, 1.6], [-9.0, -9.0]])
    snapped = encoding.snapped((raw - 0.5) / 2.0) * 2.0 + 0.5
    assert snapped.tolist() == [[1.0, 1.4], [2.0, 1.6], [-6.0, -9.0]]


def test_without_steps_nothing_is_computed():
    encoding = encoding_of(Column("any"))
    vectors = np.array([[0.123]])
    assert encoding.snapped(vectors) is vectors


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(STEPS),
    st.floats(-5.9, 5.9),
    st.floats(-9, 9),
    st.booleans(),
    st.sampled_from(["any", "up", "down"]),
    st.floats(-3, 3),
    st.floats(0.1, 4),
)
def test_snapping_is_that_of_brute_force(step, own, wanted, own_on_grid, direction, mean, scale):
    """Of all multiples within the limits and the factual's own value, the nearest."""
    encoding = encoding_of(Column("x", step=step, direction=direction), mean=mean, scale=scale)
    nearest = float(nearest_multiple(np.array([own]), step)[0])
    assume(own_on_grid or abs(own - nearest) > 1e-5 * step)  # nearer values count as multiples
    own = nearest if own_on_grid else own
    decimals = decimals_of(step)
    multiples = [round(k * Fraction(repr(step)), decimals) for k in range(-1000, 1001)]
    low, high = own if direction == "up" else -6, own if direction == "down" else 6
    admissible = [float(m) for m in multiples if low - 1e-9 <= m <= high + 1e-9] + [own]
    factual = np.array([[(own - mean) / scale]])
    vector = np.array([[(wanted - mean) / scale]])
    found = float(encoding.snapped(vector, factual)[0, 0]) * scale + mean
    best = min(abs(value - wanted) for value in admissible)
    assert abs(found - wanted) == pytest.approx(best, abs=1e-9)
    assert min(abs(found - value) for value in admissible) < 1e-9


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000))
def test_what_is_snapped_is_decoded_and_encoded_to_itself(seed):
    """Bit by bit, so that a stored counterfactual is the one that was tested."""
    draw = np.random.default_rng(seed)
    steps = draw.choice(STEPS, size=4)
    raw = {f"x{j}": nearest_multiple(draw.normal(0, 40, size=30), step) for j, step in enumerate(steps)}
    columns = tuple(Column(f"x{j}", step=float(step)) for j, step in enumerate(steps))
    levels = ("low", "middle", "high", "top")
    raw["grade"] = draw.choice(np.array(levels, dtype=object), size=30)
    columns += (Column("grade", "categorical", levels, ordered=True),)
    table = Table("any", columns, raw, np.array(["a", "b"] * 15, dtype=object))
    encoding = Encoding.fit(table, np.arange(20))
    assert encoding.width == 5 and encoding.numeric.all()
    vectors = encoding.snapped(draw.normal(0, 2, size=(50, 5)))
    assert (encoding.encode(encoding.decode(vectors)) == vectors).all()
    assert (encoding.snapped(vectors) == vectors).all()
    rows = encoding.encode(raw)
    assert (encoding.snapped(rows) == rows).all() and not encoding.grid.missed(rows).any()


def test_limits_hold_for_several_counterfactuals_of_some_factuals():
    encoding = encoding_of(Column("x", step=1.0, direction="up"), Column("y", step=1.0, immutable=True))
    factuals = np.array([[0.0, 3.0], [2.0, -1.0], [5.0, 0.0]])
    limits = encoding.limits(factuals)
    points = np.array([[[-1.2, 9.0], [0.6, 9.0]], [[8.0, 9.0], [5.4, 9.0]]])
    found = limits.snapped(points, np.array([0, 2]))
    assert found.tolist() == [[[0.0, 3.0], [1.0, 3.0]], [[6.0, 0.0], [5.0, 0.0]]]
    one_by_one = [
        limits.snapped(points[place, number][None], np.array([factual]))[0].tolist()
        for (place, factual), number in itertools.product(enumerate([0, 2]), range(2))
    ]
    assert one_by_one == found.reshape(4, 2).tolist()


def test_the_range_of_a_column_replaces_the_observed_one_and_is_cut_to_steps():
    values = {"x": np.array([1.0, 2.0, 9.0])}
    table = Table("any", (Column("x", step=1.0, low=0.5, high=20.7),), values, np.array(["a", "b", "a"]))
    encoding = Encoding.fit(table, np.arange(3))
    low, high = encoding.bounds
    assert encoding.decode_number(0, np.array([low[0], high[0]])).tolist() == [1.0, 20.0]
    with pytest.raises(UserError, match="its range contains no multiple of 1"):
        narrow = (Column("x", step=1.0, low=1.2, high=1.8),)
        Encoding.fit(Table("any", narrow, values, np.array(["a", "b", "a"])), np.arange(3))


def test_the_largest_step_that_all_values_share_is_inferred():
    assert inferred_step(np.array([3.0, -1.0, 1e9])) == 1.0
    assert inferred_step(np.array([3.0, 0.25])) == 0.01
    assert inferred_step(np.array([0.1234, 5.0])) == 0.0001
    assert inferred_step(np.array([0.12345])) is None
    assert inferred_step(np.array([1 / 3])) is None


def test_a_multiple_is_the_number_nearest_to_its_decimal_form():
    assert nearest_multiple(np.array([0.30000000000000004, 5.1000001]), 0.1).tolist() == [0.3, 5.1]
    assert not off_step(np.array([0.1 * 3, 1e15 + 0.1]), 0.1).any()
    assert off_step(np.array([0.35]), 0.1).all()


@pytest.mark.parametrize(
    ("text", "form", "number", "step"),
    [
        ("38", "number", 38.0, 1.0),
        ("18629.25", "number", 18629.25, 0.01),
        ("0.1", "number", 0.1, None),
        ("1970-01-02", "date", 1.0, 1.0),
        ("1969-12-31", "date", -1.0, 1.0),
        ("2026-11-23T12:30:00", "time", 1795437000.0, 1.0),
    ],
)
def test_values_as_text_and_back(text, form, number, step):
    assert number_of(text, form) == number
    assert text_of_number(number, form, step) == text


def test_a_value_between_two_steps_has_all_its_digits():
    assert text_of_number(38.09, "number", 1.0) == "38.09"
    assert text_of_number(1.5, "date", 1.0) == "1.5"
