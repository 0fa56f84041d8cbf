import math

import numpy as np
import pytest

from cfbench_tabular.metrics.robustness import Config, Robustness
from cfbench_tabular.testing import example_problem


def test_on_the_border_half_the_noise_undoes_it_and_far_from_it_none(judge, linear):
    answers = judge([[-1.0, 0.0]] * 3, [[1e-9, 0.0], [9.0, 0.0], [np.nan] * 2], model=linear([1.0, 0.0]))
    share = Robustness(Config(draws=4000)).score(answers)["robustness"]
    assert share[0] == pytest.approx(0.5, abs=0.03) and share[1] == 1.0 and np.isnan(share[2])


def test_for_a_linear_model_it_is_a_normal_probability(judge, linear):
    """Noise of s on every column moves w . x by a normal number of standard deviation s |w|."""
    weights, point = np.array([2.0, -1.0, 0.5]), np.array([0.1, 0.05, 0.0])
    answers = judge([[-1.0, 0.0, 0.0]], [point], model=linear(weights))
    share = Robustness(Config(draws=20000, noise=0.1)).score(answers)["robustness"][0]
    z = (weights @ point) / (0.1 * np.linalg.norm(weights))
    assert share == pytest.approx((1 + math.erf(z / math.sqrt(2))) / 2, abs=0.015)


def test_categories_stay_and_a_table_of_categories_has_no_value(judge, linear):
    from cfbench_tabular.encoding import Encoding
    from cfbench_tabular.table import Column

    problem = example_problem()
    factual, enemy = problem.vectors[:1], problem.vectors[1:2]
    only_colour = linear([0, 0, 0, 5.0, -5.0, 5.0, 0], -1.0)
    answers = judge(factual, enemy, encoding=problem.encoding, model=only_colour)
    assert Robustness(Config(noise=100.0)).score(answers)["robustness"][0] in (0.0, 1.0)
    columns = (Column("striped", "categorical", ("no", "yes")),)
    encoding = Encoding(columns, np.zeros(1), np.ones(1), np.zeros(1), np.ones(1))
    striped = judge([[0.0]], [[1.0]], encoding=encoding, model=linear([1.0], -0.5))
    assert np.isnan(Robustness(Config()).score(striped)["robustness"][0])


def test_every_answer_meets_the_same_noise(judge, linear):
    model = linear([1.0, 1.0])
    points = np.array([[0.02, 0.01], [0.03, 0.0], [0.0, 0.04]])
    together = Robustness(Config()).score(judge(-points, points, model=model))["robustness"]
    alone = [Robustness(Config()).score(judge(-p, p, model=model))["robustness"][0] for p in points]
    assert together.tolist() == alone
