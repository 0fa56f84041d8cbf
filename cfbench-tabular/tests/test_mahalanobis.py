import math

import numpy as np
import pytest

from cfbench_tabular.metrics.mahalanobis import Config, Mahalanobis
from cfbench_tabular.testing import example_data

CROSS = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]])
"""Variances 2 and 0.5, no covariance, mean 0."""


def test_by_hand(make_observed):
    """A step of 2 along the wide axis is sqrt(4 / 2); the same along the narrow one sqrt(4 / 0.5)."""
    results = make_observed([[1.0, 1.0]] * 2, [[3.0, 1.0], [1.0, 3.0]], background=CROSS)
    scores = Mahalanobis(Config()).compute(results)
    assert scores["MD"] == pytest.approx([math.sqrt(2), math.sqrt(8)])
    assert scores["MD to data"] == pytest.approx([math.sqrt(9 / 2 + 1 / 0.5), math.sqrt(1 / 2 + 9 / 0.5)])


def test_with_the_covariance_it_is_the_other_way_round(make_observed):
    """CF-tabular's mistake: the step along the axis in which the data vary most is the longer one."""
    results = make_observed([[1.0, 1.0]] * 2, [[3.0, 1.0], [1.0, 3.0]], background=CROSS)
    wrong = Mahalanobis(Config(matrix="covariance")).compute(results)["MD"]
    assert wrong == pytest.approx([math.sqrt(8), math.sqrt(2)])


def test_it_is_that_of_scipy(make_observed):
    from scipy.spatial.distance import mahalanobis

    draw = np.random.default_rng(1)
    rows = draw.normal(size=(60, 4)) @ draw.normal(size=(4, 4))
    factuals, counterfactuals = draw.normal(size=(2, 10, 4))
    scores = Mahalanobis(Config()).compute(make_observed(factuals, counterfactuals, background=rows))
    inverse, mean = np.linalg.inv(np.cov(rows, rowvar=False)), rows.mean(axis=0)
    for place in range(10):
        assert scores["MD"][place] == pytest.approx(
            mahalanobis(counterfactuals[place], factuals[place], inverse)
        )
        assert scores["MD to data"][place] == pytest.approx(
            mahalanobis(counterfactuals[place], mean, inverse)
        )


def test_it_does_not_depend_on_units_of_measurement(make_observed):
    draw = np.random.default_rng(2)
    rows, other = draw.normal(size=(50, 3)), np.array([1.0, 1000.0, 0.01])
    factuals, counterfactuals = draw.normal(size=(2, 5, 3))
    plain = Mahalanobis(Config()).compute(make_observed(factuals, counterfactuals, background=rows))
    scaled = Mahalanobis(Config()).compute(
        make_observed(factuals * other, counterfactuals * other, background=rows * other)
    )
    assert plain["MD"] == pytest.approx(scaled["MD"], rel=1e-6)


def test_one_hot_groups_make_it_singular_and_still_the_distance_in_any_full_coding(make_observed):
    """Leaving out one level of each category gives a regular covariance with the same distances between rows."""
    data = example_data()
    vectors = data.vectors
    selected = [place for place in range(data.encoding.width) if place not in (2, 3)]  # constant; level "red"
    results = make_observed(vectors[:20], vectors[20:40], background=vectors, encoding=data.encoding)
    found = Mahalanobis(Config()).compute(results)["MD"]
    inverse = np.linalg.inv(np.cov(vectors[:, selected], rowvar=False))
    change = (vectors[20:40] - vectors[:20])[:, selected]
    assert found == pytest.approx(np.sqrt(np.einsum("bi,ij,bj->b", change, inverse, change)))


def test_one_column_and_no_counterfactual(make_observed):
    scores = Mahalanobis(Config()).compute(
        make_observed([[0.0], [0.0]], [[3.0], [np.nan]], background=[[0.0], [2.0]])
    )
    assert scores["MD"][0] == pytest.approx(3 / math.sqrt(2))
    assert np.isnan(scores["MD"][1]) and np.isnan(scores["MD to data"][1])
