import numpy as np
import pytest

from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.facts import facts
from cfbench_tabular.testing import Constant, example_problem, factuals_of


def test_they_are_the_literal_definitions(network):
    problem, model = example_problem(), network(7, seed=3)
    factuals = factuals_of(model, problem, slice(20, 40))
    found = facts(model, problem, factuals, np.arange(20, 40))
    training = problem.sample("train")[0]
    for place, row in enumerate(range(20, 40)):
        odds = model.predict_proba(problem.vectors[row : row + 1])[0]
        label = int(odds[1] > odds[0])
        assert found["factual score"][place] == pytest.approx(odds[label]) and odds[label] >= 0.5
        assert found["misclassified"][place] == float(label != problem.labels[row])
        assert found["factual share"][place] == pytest.approx(sum(problem.labels == label) / 120)
        other = [
            r for r in training if (lambda p: int(p[1] > p[0]))(model.predict_proba(r[None])[0]) != label
        ]
        nearest = min(np.linalg.norm(r - problem.vectors[row]) for r in other)
        assert found["enemy distance"][place] == pytest.approx(nearest)


def test_without_enemies_their_distance_is_missing():
    problem = example_problem()
    factuals = factuals_of(Constant(), problem, slice(0, 3))
    assert np.isnan(facts(Constant(), problem, factuals, np.arange(3))["enemy distance"]).all()


def test_of_no_factuals_nothing():
    problem = example_problem()
    none = Factuals(np.empty((0, 7)), np.empty(0, dtype=np.int64), ())
    assert all(len(v) == 0 for v in facts(Constant(), problem, none, np.empty(0, dtype=np.int64)).values())
