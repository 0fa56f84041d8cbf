import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.plausibility import Config, Plausibility, local_outlier_factor
from cfbench_tabular.table import Column
from cfbench_tabular.testing import Constant


def literal_factor(point, rows, k):
    """Breunig et al. 2000, definitions 3 to 7, of a tuple among distinct tuples; exact for whole numbers."""

    def square(one, other):
        return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))

    def to_the_kth(place, others):
        return sorted(square(place, other) for other in others)[k - 1]

    def neighbours(place, others):
        limit = to_the_kth(place, others)
        return [other for other in others if square(place, other) <= limit]

    def without(row):
        return [other for other in rows if other != row]

    def reach(place, row):
        return math.sqrt(max(to_the_kth(row, without(row)), square(place, row)))

    def density(place, others):
        near = neighbours(place, others)
        return 1 / np.mean([reach(place, row) for row in near])

    own = density(point, rows)
    return np.mean([density(row, without(row)) / own for row in neighbours(point, rows)])


def test_the_middle_of_a_grid_is_no_outlier_and_a_far_point_is_one():
    grid = np.array([[x, y] for x in range(5) for y in range(5)], dtype=float)
    inside, outside = local_outlier_factor(np.array([[2.1, 2.2], [12.0, 2.0]]), grid, 4)
    assert inside == pytest.approx(1.0, abs=0.1) and outside > 4


def test_the_literal_definition_and_that_of_scikit_learn():
    from sklearn.neighbors import LocalOutlierFactor

    draw = np.random.default_rng(0)
    rows, points = draw.normal(size=(30, 3)), draw.normal(size=(6, 3)) * 2
    found = local_outlier_factor(points, rows, 5)
    listed = [tuple(row) for row in rows.tolist()]
    literal = [literal_factor(tuple(point), listed, 5) for point in points.tolist()]
    assert found == pytest.approx(literal, rel=1e-9)
    theirs = LocalOutlierFactor(n_neighbors=5, novelty=True).fit(rows)
    assert found == pytest.approx(-theirs.score_samples(points), rel=1e-9)


def test_all_rows_as_near_as_the_kth_are_neighbours():
    """The rows at 1 and 3 are equally far from 2 (k = 1); lrd is 1 at 1 and 2, and 1 / 0.5 at 3."""
    rows = np.array([[0.0], [1.0], [3.0], [3.5]])
    assert local_outlier_factor(np.array([[2.0]]), rows, 1) == pytest.approx([(1 / 1 + 1 / 0.5) / 2])


columns = st.integers(1, 5)
few_levels = st.integers(0, 2)


def tables(least, most):
    """Rows of whole numbers, one of which is a query: many of them are equally far from others."""
    sizes = st.tuples(st.integers(least, most), columns)
    return sizes.flatmap(lambda size: arrays(np.int64, size, elements=few_levels))


@given(tables(4, 14), st.integers(1, 4), st.floats(0.01, 100), st.floats(-1e4, 1e4))
def test_ties_count_as_breunig_defines_in_any_encoding(table, k, scale, shift):
    point, rows = table[0], np.unique(table[1:], axis=0)
    listed = [tuple(row) for row in rows.tolist()]
    found = local_outlier_factor((point[None] - shift) / scale, (rows - shift) / scale, k)
    if len(rows) < 2:
        assert np.isnan(found).all()
    else:
        literal = literal_factor(tuple(point.tolist()), listed, min(k, len(rows) - 1))
        assert found == pytest.approx([literal], rel=1e-7)


def plain(rows, points):
    """Of a table whose numbers are encoded as themselves; all points are valid."""
    size = rows.shape[1]
    names = tuple(Column(f"x{place}") for place in range(size))
    encoding = Encoding(names, np.zeros(size), np.ones(size), rows.min(axis=0), rows.max(axis=0))
    valid, classes = np.ones(len(points), dtype=bool), np.zeros(len(points), dtype=np.int64)
    return Observed(points, points, classes, valid, encoding, rows, Constant())


@given(st.integers(20, 60), st.integers(1, 20), st.integers(0, 10**6), st.permutations(range(5)))
def test_the_order_of_columns_and_rows_does_not_matter(count, k, seed, across):
    """The squares of a distance are then added in another order, which changes its last bits."""
    draw = np.random.default_rng(seed)
    table = draw.integers(3, size=(count, 5)) / np.array([0.1, 0.3, 0.7, 0.3, 0.7])
    points, rows, down = table[:3], table[3:], draw.permutation(count - 3)
    metric = Plausibility(Config(neighbours=k))
    found = metric.compute(plain(rows, points))
    moved = metric.compute(plain(rows[down][:, across], points[:, across]))
    assert moved["LOF"] == pytest.approx(found["LOF"], rel=1e-9, nan_ok=True)
    assert moved["class distance"] == pytest.approx(found["class distance"], rel=1e-9, nan_ok=True)


def test_equal_rows_do_not_make_a_density_infinite(make_observed):
    rows = np.repeat(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), 50, axis=0)
    scores = Plausibility(Config()).compute(make_observed([[0.0, 0.0]], [[1.0, 1.0]], background=rows))
    assert np.isfinite(scores["LOF"]).all()


def test_class_distance_by_hand(make_observed, linear):
    """Class 1 has x > 0: rows 1, 2 and 5. The nearest two to 4 are 5 and 2."""
    rows = [[-1.0], [-4.0], [1.0], [2.0], [5.0]]
    results = make_observed([[-1.0], [-1.0]], [[4.0], [np.nan]], background=rows, model=linear([1.0]))
    scores = Plausibility(Config(nearest=2)).compute(results)
    assert scores["class distance"][0] == pytest.approx(1.5)
    assert np.isnan(scores["class distance"][1]) and np.isnan(scores["LOF"][1])
    few = Plausibility(Config(nearest=50)).compute(results)
    assert few["class distance"][0] == pytest.approx((3 + 2 + 1) / 3)


def test_without_a_row_of_the_class_there_is_no_distance(make_observed, linear):
    results = make_observed([[-1.0]], [[4.0]], background=[[-1.0], [-2.0]], model=linear([1.0]))
    assert np.isnan(Plausibility(Config()).compute(results)["class distance"][0])


def test_of_a_large_table_always_the_same_rows_count(make_observed):
    draw = np.random.default_rng(3)
    rows, points = draw.normal(size=(500, 2)), draw.normal(size=(3, 2))
    metric = Plausibility(Config(rows=100))
    together = metric.compute(make_observed(np.zeros((3, 2)), points, background=rows))
    for place in range(3):
        alone = metric.compute(make_observed(np.zeros((1, 2)), points[place], background=rows))
        assert alone["LOF"][0] == together["LOF"][place]
        assert alone["class distance"][0] == together["class distance"][place]
