import numpy as np
import pytest

from cfbench_tabular.metrics.coverage import Config, Coverage


def coverage(observed):
    return Coverage(Config()).compute(observed)["coverage"].tolist()


def test_a_counterfactual_counts_whether_or_not_it_is_valid(make_observed):
    factuals = np.zeros((4, 2))
    counterfactuals = np.array([[1.0, 0.0], [0.5, 0.5], [np.nan, np.nan], [0.0, 0.0]])
    observed = make_observed(factuals, counterfactuals, valid=np.array([True, False, False, False]))
    assert coverage(observed) == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_it_equals_the_definition_on_random_counterfactuals(make_observed, seed):
    draw = np.random.default_rng(seed)
    factuals = draw.integers(2, size=(200, 3)).astype(float)
    counterfactuals = draw.integers(2, size=(200, 3)).astype(float)
    counterfactuals[draw.random(200) < 0.3] = np.nan
    expected = []
    for factual, counterfactual in zip(factuals.tolist(), counterfactuals.tolist(), strict=True):
        found = all(value == value for value in counterfactual)
        expected.append(1.0 if found and counterfactual != factual else 0.0)
    valid = draw.random(200) < 0.5
    assert coverage(make_observed(factuals, counterfactuals, valid=valid)) == expected
    assert {0.0, 1.0} == set(expected)
