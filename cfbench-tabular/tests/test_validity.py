import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.metrics.validity import Config, Validity
from cfbench_tabular.observations import observed_of
from cfbench_tabular.testing import example_data


def test_the_prediction_of_the_model_decides(linear):
    data = example_data()
    model = linear([1.0, 0, 0, 0, 0, 0, 0])
    factuals = np.zeros((4, 7))
    factuals[:, 0] = [-1, -1, 1, 1]
    counterfactuals = factuals.copy()
    counterfactuals[:, 0] = [2, -3, -0.5, np.nan]  # flips, does not, flips, no counterfactual
    results = observed_of(
        model, Factuals(factuals, np.array([0, 0, 1, 1]), tuple("abcd")), counterfactuals, data
    )
    assert Validity(Config()).compute(results)["validity"].tolist() == [1.0, 0.0, 1.0, 0.0]


def test_it_equals_the_definition_on_random_counterfactuals(network):
    data, draw = example_data(), generator("validity")
    model = network(7, seed=1)
    factuals, counterfactuals = draw.normal(size=(50, 7)), draw.normal(size=(50, 7))
    classes = model.predict_proba(factuals).argmax(axis=1)
    units = tuple(map(str, range(50)))
    scores = Validity(Config()).compute(
        observed_of(model, Factuals(factuals, classes, units), counterfactuals, data)
    )
    for place in range(50):
        other = model.predict_proba(counterfactuals[place : place + 1])[0].argmax()
        assert scores["validity"][place] == (1.0 if other != classes[place] else 0.0)
