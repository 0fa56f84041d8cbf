import math

import numpy as np
import pytest

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.robustness import Config, Robustness
from cfbench_tabular.table import Column
from cfbench_tabular.testing import example_data

STRIPED = Encoding(
    (Column("striped", "categorical", ("no", "yes")),), np.zeros(1), np.ones(1), np.zeros(1), np.ones(1)
)


def test_on_the_border_half_the_noise_undoes_it_and_far_from_it_none(make_observed, linear):
    results = make_observed(
        [[-1.0, 0.0]] * 3, [[1e-9, 0.0], [9.0, 0.0], [np.nan] * 2], model=linear([1.0, 0.0])
    )
    share = Robustness(Config(draws=4000)).compute(results)["robustness"]
    assert share[0] == pytest.approx(0.5, abs=0.03) and share[1] == 1.0 and np.isnan(share[2])


def test_for_a_linear_model_it_is_a_normal_probability(make_observed, linear):
    """Noise of s on every column moves w . x by a normal number of standard deviation s |w|."""
    weights, point = np.array([2.0, -1.0, 0.5]), np.array([0.1, 0.05, 0.0])
    results = make_observed([[-1.0, 0.0, 0.0]], [point], model=linear(weights))
    share = Robustness(Config(draws=20000, noise=0.1)).compute(results)["robustness"][0]
    z = (weights @ point) / (0.1 * np.linalg.norm(weights))
    assert share == pytest.approx((1 + math.erf(z / math.sqrt(2))) / 2, abs=0.015)


def test_categories_change_with_the_configured_probability(make_observed, linear):
    """Three colours, and the third makes the class: a third one is undone by each change, a first one by half."""
    data = example_data()
    (colour,) = data.encoding.groups
    weights = np.zeros(data.encoding.width)
    weights[colour.stop - 1] = 1.0
    factual, enemy = data.vectors[:1].copy(), data.vectors[:1].copy()
    factual[0, colour], enemy[0, colour] = np.eye(3)[0], np.eye(3)[2]
    metric = Robustness(Config(draws=20_000, another_level=0.2))
    there = make_observed(factual, enemy, encoding=data.encoding, model=linear(weights, -0.5))
    back = make_observed(enemy, factual, encoding=data.encoding, model=linear(-weights, 0.5))
    assert metric.compute(there)["robustness"][0] == pytest.approx(0.8, abs=0.02)
    assert metric.compute(back)["robustness"][0] == pytest.approx(1 - 0.2 / 2, abs=0.02)


def test_two_levels_change_places_and_always_do_with_probability_1(make_observed, linear):
    striped = make_observed([[0.0]] * 2, [[1.0]] * 2, encoding=STRIPED, model=linear([1.0], -0.5))
    assert Robustness(Config(another_level=1.0)).compute(striped)["robustness"].tolist() == [0.0, 0.0]
    assert Robustness(Config(draws=20_000)).compute(striped)["robustness"][0] == pytest.approx(0.95, abs=0.01)


def test_as_published_categories_stay_and_a_table_of_categories_has_no_value(make_observed, linear):
    data = example_data()
    factual, enemy = data.vectors[:1], data.vectors[1:2]
    only_colour = linear([0, 0, 0, 5.0, -5.0, 5.0, 0], -1.0)
    results = make_observed(factual, enemy, encoding=data.encoding, model=only_colour)
    published = Robustness(Config(noise=100.0, another_level=0.0))
    assert published.compute(results)["robustness"][0] in (0.0, 1.0)
    striped = make_observed([[0.0]], [[1.0]], encoding=STRIPED, model=linear([1.0], -0.5))
    assert np.isnan(published.compute(striped)["robustness"][0])


def test_noisy_copies_are_rows(make_observed):
    """Whatever changes, a model is queried about exactly one level of each category."""
    data = example_data()
    seen = []

    class Watched:
        def predict_proba(self, vectors):
            seen.append(vectors.copy())
            return np.tile([0.0, 1.0], (len(vectors), 1))

    results = make_observed(data.vectors[:3], data.vectors[3:6], encoding=data.encoding, model=Watched())
    Robustness(Config(another_level=0.5)).compute(results)
    rows = np.concatenate(seen)
    np.testing.assert_array_equal(data.encoding.project(rows), rows)
    assert len(np.unique(rows[:, ~data.encoding.numeric], axis=0)) > 3


def test_every_counterfactual_gets_the_same_noise(make_observed, linear):
    model = linear([1.0, 1.0])
    points = np.array([[0.02, 0.01], [0.03, 0.0], [0.0, 0.04]])
    together = Robustness(Config()).compute(make_observed(-points, points, model=model))["robustness"]
    alone = [Robustness(Config()).compute(make_observed(-p, p, model=model))["robustness"][0] for p in points]
    assert together.tolist() == alone
