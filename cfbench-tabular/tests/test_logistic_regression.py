import numpy as np
import pytest

from cfbench_tabular.classifiers.logistic_regression import Config, LogisticRegression
from cfbench_tabular.testing import example_data, fitted


def test_probabilities_by_hand(linear):
    found = linear([2.0, -1.0], 0.5).predict_proba(np.array([[1.0, 1.0], [0.0, 0.5]]))
    assert found[:, 1] == pytest.approx([1 / (1 + np.exp(-1.5)), 0.5])
    assert found.sum(axis=1) == pytest.approx(1.0)


def test_a_far_point_has_no_overflow(linear):
    assert linear([1e3]).predict_proba(np.array([[1e3], [-1e3]])).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_the_fit_is_the_minimum_of_the_penalised_loss():
    data = example_data()
    model = fitted(LogisticRegression(Config(C=0.5)), data)
    vectors, labels = data.sample("train")

    def loss(weights, bias):
        signed = (2 * labels - 1) * (vectors @ weights + bias)
        return 0.5 * np.logaddexp(0, -signed).sum() + 0.5 * (weights**2).sum()

    best = loss(model.coefficients, model.intercept)
    draw = np.random.default_rng(0)
    for _ in range(200):
        step = draw.normal(scale=0.02, size=len(model.coefficients))
        assert loss(model.coefficients + step, model.intercept + draw.normal(scale=0.02)) > best - 1e-4
