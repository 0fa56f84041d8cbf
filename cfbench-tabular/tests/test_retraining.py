import numpy as np

from cfbench_tabular.metrics.retraining import Config, Retraining

metric = Retraining(Config())


def test_the_second_model_is_requested(make_observed, linear):
    """It wants x > 2: 3 is still a counterfactual of a factual below 0, and 1 is none."""
    results = make_observed(
        [[-1.0], [-1.0], [-1.0]],
        [[3.0], [1.0], [np.nan]],
        model=linear([1.0]),
        retrained=(linear([1.0], -2.0),),
    )
    assert np.array_equal(metric.compute(results)["retraining"], [1.0, 0.0, np.nan], equal_nan=True)


def test_without_a_second_model_nothing_is_known(make_observed):
    assert np.isnan(metric.compute(make_observed([[0.0]], [[1.0]]))["retraining"]).all()
