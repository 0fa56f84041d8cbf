import numpy as np
import pytest

from cfbench_tabular.metrics.plausibility import Config, Plausibility, local_outlier_factor


def literal_factor(point, rows, k):
    """Breunig et al. 2000, definitions 3 to 7, for a point that is not among the rows (no ties in distance)."""

    def neighbours(place, others):
        return sorted(others, key=lambda other: np.linalg.norm(place - other))[:k]

    def without(row):
        return [other for other in rows if other is not row]

    def reach(place, row):
        return max(np.linalg.norm(neighbours(row, without(row))[-1] - row), np.linalg.norm(place - row))

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
    listed = list(rows)
    assert found == pytest.approx([literal_factor(point, listed, 5) for point in points])
    theirs = LocalOutlierFactor(n_neighbors=5, novelty=True).fit(rows)
    assert found == pytest.approx(-theirs.score_samples(points), rel=1e-6)


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
