import numpy as np

from cfbench_tabular.metrics.stability import Config, Stability

metric = Stability(Config())


def test_the_same_another_and_none(judge):
    none = [np.nan, np.nan]
    first = [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], none, none]
    again = np.array([[1.0, 2.0], [2.0, 1.0], none, none, [1.0, 2.0]])
    found = metric.score(judge(np.zeros((5, 2)), first, again=again))["stability"]
    # The second pair differs by +1 and -1: the study's sum of differences would call it the same.
    assert np.array_equal(found, [1.0, 0.0, 0.0, np.nan, 0.0], equal_nan=True)


def test_rounding(judge):
    answers = judge([[0.0]], [[1.0]], again=np.array([[1.00001]]))
    assert metric.score(answers)["stability"][0] == 1.0
    assert Stability(Config(decimals=6)).score(answers)["stability"][0] == 0.0


def test_asked_once_nothing_is_known(judge):
    assert np.isnan(metric.score(judge([[0.0]], [[1.0]]))["stability"][0])
