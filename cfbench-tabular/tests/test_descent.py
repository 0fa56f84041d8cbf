import dataclasses

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.cadex import CADEX, Config
from cfbench_tabular.explainers.descent import (
    Adam,
    Columns,
    flips,
    margin_gradients,
    margins,
    over_flats,
    pulled_back,
    signs,
    steps_undone,
)
from cfbench_tabular.table import Column

MIXED = Encoding(
    (
        Column("age"),
        Column("colour", "categorical", ("red", "green", "blue")),
        Column("striped", "categorical", ("no", "yes")),
        Column("shape", "categorical", ("a", "b", "c", "d")),
    ),
    np.zeros(4),
    np.ones(4),
    np.full(4, -9.0),
    np.full(4, 9.0),
)


def test_the_margin_is_the_log_odds_of_the_other_class(linear):
    model, points = linear([2.0], -1.0), np.array([[0.0], [2.0], [2.0]])
    classes = np.array([0, 1, 0])
    assert margins(model, points, classes) == pytest.approx([-1.0, -3.0, 3.0])
    assert flips(model, points, classes).tolist() == [False, False, True]


def test_a_tie_is_not_clear_enough(linear):
    assert not flips(linear([1.0]), np.array([[0.0], [0.0]]), np.array([0, 1])).any()


def test_its_gradient_agrees_with_finite_differences(network):
    draw = np.random.default_rng(0)
    model, points, classes = network(4, hidden=20), draw.normal(size=(30, 4)), draw.integers(2, size=30)
    found = margin_gradients(model, points, classes)
    for column in range(4):
        move = np.eye(4)[column] * 1e-6
        slope = (margins(model, points + move, classes) - margins(model, points - move, classes)) / 2e-6
        assert (np.abs(found[:, column] - slope) < 1e-4 * (1 + np.abs(slope))).mean() > 0.95


@pytest.mark.parametrize(
    ("given", "reported"),
    [(np.full((1, 2), np.nan), "NaN or infinity"), (np.zeros((2, 1)), r"shape \(2, 1\)")],
)
def test_a_gradient_that_is_none_is_one_clear_line(explain, linear, numbers, given, reported):
    model = linear([1.0, 1.0], -1.0)
    model.log_odds_gradient = lambda vectors: given
    with pytest.raises(UserError, match=f"log_odds_gradient returned {reported} for 1 rows of 2 numbers"):
        explain(CADEX(Config()), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])


def test_adam_makes_first_steps_of_one_size_and_rows_do_not_meet():
    adam = Adam(0.1, 2, 2)
    assert adam.step(np.array([[3.0, -0.01], [0.0, 1e6]])) == pytest.approx(
        np.array([[0.1, -0.1], [0, 0.1]]), abs=1e-6
    )
    alone = Adam(0.1, 1, 2)
    alone.step(np.array([[3.0, -0.01]]))
    next_gradient = np.array([[1.0, 2.0], [5.0, 5.0]])
    assert alone.step(next_gradient[:1]) == pytest.approx(adam.step(next_gradient)[:1])


def test_a_point_is_pulled_back_to_the_boundary():
    starts, ends = np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([[4.0, 0.0], [0.0, 8.0]])
    found = pulled_back(lambda tried: tried.sum(axis=1) > 1.0, starts, ends, 12, lambda points: points)
    assert found == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0]]), abs=0.01)
    assert (found.sum(axis=1) > 1.0).all()
    back = pulled_back(lambda tried: tried[:, 0] >= 0, starts, ends, 12, lambda points: points)
    assert back.tolist() == starts.tolist()


def test_a_point_is_pulled_back_in_steps_and_each_is_tested():
    """On the line from 0 to 4 the boundary is at 1; with whole numbers the first value beyond is 2."""
    starts, ends, tried = np.zeros((1, 2)), np.array([[4.0, 0.0]]), []

    def found(points):
        tried.append(points.copy())
        return points.sum(axis=1) > 1.0

    result = pulled_back(found, starts, ends, 12, np.rint)
    assert result.tolist() == [[2.0, 0.0]]
    assert all((points == np.rint(points)).all() for points in tried)


def test_steps_that_only_rounding_needs_are_undone(numbers):
    """Both columns moved by one; one of them suffices, and the longer step is undone first."""
    encoding = numbers(2)
    columns = (Column("x0", step=2.0), Column("x1", step=1.0))
    encoding = dataclasses.replace(encoding, columns=columns)
    rows = np.array([[2.0, 3.0], [4.0, 1.0]])
    found = steps_undone(
        lambda points: points.sum(axis=1) >= 3.0, np.zeros((2, 2)), rows, encoding.grid, encoding.snapped
    )
    assert found.tolist() == [[0.0, 3.0], [2.0, 1.0]]


def test_flat_places_are_left_as_they_were_entered():
    gradients, last = np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
    assert over_flats(gradients, last).tolist() == [[5.0, 6.0], [0.0, 2.0]]


def test_what_rounding_left_has_no_sign():
    assert signs(np.array([0.1 + 0.2 - 0.3, -1e-3, 2.0])).tolist() == [0.0, -1.0, 1.0]


def test_switches_and_what_they_gain_by_literal_loops():
    draw = np.random.default_rng(1)
    rows, values = MIXED.project(draw.normal(size=(20, MIXED.width))), draw.normal(size=(20, MIXED.width))
    columns = Columns(MIXED)
    gains = columns.switches(rows, values)
    for row, value, gain in zip(rows, values, gains, strict=True):
        assert gain[0] == -np.inf
        assert gain[4] == pytest.approx(value[4] * (1 - 2 * row[4]))
        for group in MIXED.groups:
            held = group.start + int(row[group].argmax())
            for place in range(group.start, group.stop):
                expected = -np.inf if place == held else value[place] - value[held]
                assert gain[place] == pytest.approx(expected)


def test_a_switch_changes_one_category_to_another_level():
    rows = np.array([[1.5, 1, 0, 0, 1, 0, 0, 1, 0]])
    columns = Columns(MIXED)
    assert columns.switched(rows, np.array([3])).tolist() == [[1.5, 0, 0, 1, 1, 0, 0, 1, 0]]
    assert columns.switched(rows, np.array([4])).tolist() == [[1.5, 1, 0, 0, 0, 0, 0, 1, 0]]


def test_centring_is_within_each_category():
    values = np.array([[7.0, 1, 2, 6, 9, 1, 1, 1, 5]])
    assert Columns(MIXED).centred(values).tolist() == [[7.0, -2, -1, 3, 9, -1, -1, -1, 3]]
