import numpy as np

from cfbench_tabular.metrics.stability import Config, Stability

metric = Stability(Config())


def test_the_same_another_and_none(make_observed):
    none = [np.nan, np.nan]
    first = [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], none, none]
    again = np.array([[1.0, 2.0], [2.0, 1.0], none, none, [1.0, 2.0]])
    found = metric.compute(make_observed(np.zeros((5, 2)), first, repeated=again))["stability"]
    # The second pair differs by +1 and -1: CF-tabular's sum of differences would call it the same.
    assert np.array_equal(found, [1.0, 0.0, 0.0, np.nan, 0.0], equal_nan=True)


def test_rounding(make_observed):
    results = make_observed([[0.0]], [[1.0]], repeated=np.array([[1.00001]]))
    assert metric.compute(results)["stability"][0] == 1.0
    assert Stability(Config(decimals=6)).compute(results)["stability"][0] == 0.0


def test_without_a_second_model_the_value_is_missing(make_observed):
    assert np.isnan(metric.compute(make_observed([[0.0]], [[1.0]]))["stability"][0])
