from dataclasses import replace

import numpy as np
import pytest

from cfbench_tabular.classifiers.mlp import MLP
from cfbench_tabular.classifiers.mlp import Config as MLPConfig
from cfbench_tabular.explainers.random import Config, Random
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of, fitted


def test_the_only_value_that_there_is(explain, linear, numbers):
    results = explain(Random(Config()), linear([1.0], -1.0), numbers(1), [[0.0]], [[2.0], [2.0]])
    assert results.tolist() == [[2.0]]


def test_it_stops_at_the_first_row_of_the_other_class(explain, linear, numbers):
    """Any one column will do, so exactly one has changed; which one is chance."""
    factuals = np.zeros((60, 3))
    results = explain(
        Random(Config()), linear([1.0, 1.0, 1.0], -0.5), numbers(3), factuals, [[1.0, 1.0, 1.0]]
    )
    assert (results.sum(axis=1) == 1).all()
    assert (results.sum(axis=0) > 8).all()


def test_values_are_those_of_the_margins(explain, linear, numbers):
    """A threshold that one training row in four reaches: the column is drawn again until it does."""
    background = [[0.0], [1.0], [2.0], [3.0]]
    results = explain(Random(Config(tries=1)), linear([1.0], -2.5), numbers(1), [[0.5]] * 400, background)
    given = ~np.isnan(results[:, 0])
    assert given.mean() == pytest.approx(0.25, abs=0.06)
    assert (results[given] == 3.0).all()
    again = explain(Random(Config(tries=50)), linear([1.0], -2.5), numbers(1), [[0.5]] * 100, background)
    assert (again == 3.0).all()


def test_each_counterfactual_is_a_row_of_the_other_class_made_of_training_values():
    data = example_data()
    model = fitted(MLP(MLPConfig()), data)
    factuals, context = factuals_of(model, data), context_of(data)
    results = Random(Config()).counterfactuals(model, factuals, context)
    data.encoding.decode(results)  # raises unless each is a row
    assert (model.predict_proba(results).argmax(axis=1) != factuals.classes).all()
    for factual, result in zip(factuals.vectors, results, strict=True):
        for place in np.flatnonzero(result != factual):
            assert result[place] in context.background[:, place]


def test_what_may_not_change_stays():
    data = example_data()
    model = fitted(MLP(MLPConfig()), data)
    columns = tuple(
        replace(
            column, immutable=column.name == "colour", direction="up" if column.name == "length" else "any"
        )
        for column in data.encoding.columns
    )
    encoding = replace(data.encoding, columns=columns)
    factuals, context = factuals_of(model, data), replace(context_of(data), encoding=encoding)
    results = Random(Config()).counterfactuals(model, factuals, context)
    given = ~np.isnan(results).any(axis=1)
    low, high = encoding.allowed(factuals.vectors)
    assert given.sum() > 60
    assert ((results >= low) & (results <= high))[given].all()


def test_without_an_enemy_it_ends_without_a_counterfactual():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    assert np.isnan(Random(Config()).counterfactuals(Constant(), factuals, context_of(data))).all()
