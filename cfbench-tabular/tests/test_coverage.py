import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.metrics.coverage import Config, Coverage
from cfbench_tabular.stages import judged
from cfbench_tabular.testing import example_problem


def test_the_model_is_asked_and_nobody_else(linear):
    problem = example_problem()
    model = linear([1.0, 0, 0, 0, 0, 0, 0])
    factuals = np.zeros((4, 7))
    factuals[:, 0] = [-1, -1, 1, 1]
    counterfactuals = factuals.copy()
    counterfactuals[:, 0] = [2, -3, -0.5, np.nan]  # flips, does not, flips, no answer
    answers = judged(
        model, Factuals(factuals, np.array([0, 0, 1, 1]), tuple("abcd")), counterfactuals, problem
    )
    assert Coverage(Config()).score(answers)["coverage"].tolist() == [1.0, 0.0, 1.0, 0.0]


def test_it_is_the_formula_on_random_answers(network):
    problem, draw = example_problem(), generator("coverage")
    model = network(7, seed=1)
    factuals, counterfactuals = draw.normal(size=(50, 7)), draw.normal(size=(50, 7))
    classes = model.predict_proba(factuals).argmax(axis=1)
    units = tuple(map(str, range(50)))
    scores = Coverage(Config()).score(
        judged(model, Factuals(factuals, classes, units), counterfactuals, problem)
    )
    for place in range(50):
        other = model.predict_proba(counterfactuals[place : place + 1])[0].argmax()
        assert scores["coverage"][place] == (1.0 if other != classes[place] else 0.0)
