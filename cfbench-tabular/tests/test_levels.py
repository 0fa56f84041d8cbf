from itertools import product
from math import log2

import numpy as np
import pytest

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.levels import GAP, Space, abdm, binned, mvdm, on_a_line
from cfbench_tabular.table import Column

MIXED = Encoding(
    (
        Column("age"),
        Column("colour", "categorical", ("red", "green", "blue", "grey")),
        Column("striped", "categorical", ("no", "yes")),
        Column("size"),
    ),
    np.zeros(4),
    np.ones(4),
    np.full(4, -9.0),
    np.full(4, 9.0),
)


def rows_of(count, seed=0):
    return MIXED.project(np.random.default_rng(seed).normal(size=(count, MIXED.width)))


def test_levels_are_as_far_apart_as_their_classes():
    """Level 0: always class 1; level 1: in one of two rows; level 2: never."""
    levels, classes = np.array([0, 0, 1, 1, 2]), np.array([1, 1, 0, 1, 0])
    assert mvdm(levels, 3, classes).tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_mvdm_against_literal_loops(seed):
    draw = np.random.default_rng(seed)
    levels, classes = draw.integers(4, size=50), draw.integers(2, size=50)
    found = mvdm(levels, 5, classes)  # level 4 is in no row
    pairs = list(zip(levels.tolist(), classes.tolist(), strict=True))

    def share(level, label):
        with_it = [pair for pair in pairs if pair[0] == level] or pairs
        return sum(pair[1] == label for pair in with_it) / len(with_it)

    for a, b in product(range(5), repeat=2):
        assert found[a, b] == pytest.approx(sum(abs(share(a, y) - share(b, y)) for y in (0, 1)))


@pytest.mark.parametrize("seed", range(5))
def test_abdm_against_literal_loops(seed):
    draw = np.random.default_rng(seed)
    levels, others = draw.integers(4, size=60), [draw.integers(3, size=60), draw.integers(2, size=60)]
    found = abdm(levels, 4, others)

    def probability(level, other, value, values):
        rows = [int(o) for at, o in zip(levels, other, strict=True) if at == level]
        return (rows.count(value) + 1) / (len(rows) + values)

    for a, b in product(range(4), repeat=2):
        expected = 0.0
        for other in others:
            values = int(other.max()) + 1
            for value in range(values):
                p, q = probability(a, other, value, values), probability(b, other, value, values)
                expected += p * log2(p / q) + q * log2(q / p)
        assert found[a, b] == pytest.approx(expected)


def test_places_that_lie_on_a_line_are_found_again():
    places = np.array([0.0, 3.0, 1.0, 7.0])
    found = on_a_line(np.abs(places[:, None] - places[None]))
    pairs = [abs(a - b) for i, a in enumerate(found) for b in found[:i]]
    assert np.mean(pairs) == pytest.approx(1.0)
    assert np.abs(np.corrcoef(found, places)[0, 1]) == pytest.approx(1.0)


def test_equal_levels_are_moved_apart():
    found = on_a_line(np.array([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]]))
    assert np.diff(np.sort(found)).min() >= GAP - 1e-12
    assert np.diff(np.sort(on_a_line(np.zeros((3, 3))))).min() > 0.5


def test_bins_hold_about_equally_many():
    assert np.bincount(binned(np.arange(1000.0))).tolist() == [100] * 10
    assert binned(np.zeros(5)).tolist() == [1] * 5


@pytest.mark.parametrize("metric", ["mvdm", "abdm"])
def test_rows_become_points_and_rows_again(metric):
    rows = rows_of(80)
    space = Space.of_columns(MIXED, rows, (rows[:, 0] > 0).astype(int), metric)
    points = space.points(rows)
    assert points.shape == (80, 4)
    assert (space.rows(points) == rows).all()
    assert space.mixtures(points) == pytest.approx(rows)
    nudged = points + 0.02 * np.array([0, 1, 1, 0])
    assert (space.rows(nudged) == rows).all()


def test_between_two_levels_is_their_mixture():
    rows = rows_of(80)
    space = Space.of_columns(MIXED, rows, (rows[:, 0] > 0).astype(int), "mvdm")
    striped = space.points(rows)[:, 2]
    point = space.points(rows[:1])
    point[0, 2] = 0.75 * striped[rows[:, 5] == 1][0] + 0.25 * striped[rows[:, 5] == 0][0]
    assert space.mixtures(point)[0, 5] == pytest.approx(0.75)
    assert space.rows(point)[0, 5] == 1.0


def test_gradients_are_pulled_to_the_coordinates(network):
    rows, model = rows_of(80), network(MIXED.width, hidden=30, seed=1)
    space = Space.of_columns(MIXED, rows, (rows[:, 0] > 0).astype(int), "mvdm")
    low, high = space.points(rows).min(axis=0), space.points(rows).max(axis=0)
    points = np.random.default_rng(2).uniform(low, high, size=(40, 4))
    found = space.pulled(points, model.log_odds_gradient(space.mixtures(points)))

    def log_odds(at):
        p = model.predict_proba(space.mixtures(at))
        return np.log(p[:, 1] / p[:, 0])

    for column in range(4):
        move = np.eye(4)[column] * 1e-6
        numeric = (log_odds(points + move) - log_odds(points - move)) / 2e-6
        assert (np.abs(found[:, column] - numeric) < 1e-4 * (1 + np.abs(numeric))).mean() > 0.95


def test_limits_are_those_of_the_levels_that_may_be_had():
    rows = rows_of(20)
    space = Space.of_columns(MIXED, rows, (rows[:, 0] > 0).astype(int), "mvdm")
    low, high = MIXED.allowed(rows)
    at = space.points(rows)
    found = space.limits(low, high)
    assert (found[0] <= at).all() and (at <= found[1]).all()
    assert found[0][:, 0].tolist() == [-9.0] * 20
    fixed = space.limits(rows, rows)
    assert fixed[0] == pytest.approx(at) and fixed[1] == pytest.approx(at)


def test_a_space_of_places_changes_nothing():
    rows = np.random.default_rng(0).normal(size=(5, MIXED.width))
    space = Space.of_places(MIXED)
    assert (space.points(rows) == rows).all() and (space.rows(rows) == rows).all()
    assert (space.pulled(rows, 2 * rows) == 2 * rows).all()
