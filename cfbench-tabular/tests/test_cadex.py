import dataclasses

import numpy as np
import pytest

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Explanation
from cfbench_tabular.explainers.cadex import CADEX, Config
from cfbench_tabular.table import Column
from cfbench_tabular.testing import context_of, example_data, factuals_of, fitted


def encoding_of(*columns):
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.ones(size), np.full(size, -9.0), np.full(size, 9.0))


COLOUR = Column("colour", "categorical", ("red", "green", "blue"))
STRIPED = Column("striped", "categorical", ("no", "yes"))


def test_every_number_moves_equally_until_the_class_changes(explain, linear, numbers):
    """Adam's steps along a constant gradient are all of one size: c = x + t sign(w), with t at the boundary."""
    results = explain(CADEX(Config()), linear([1.0, -3.0], -2.0), numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    assert results[0] == pytest.approx([0.5, -0.5], abs=2e-3)


@pytest.mark.parametrize("seed", range(10))
def test_on_a_linear_model_the_known_boundary_is_found(explain, linear, numbers, seed):
    draw = np.random.default_rng(seed)
    weights, bias, factuals = draw.normal(size=5), draw.normal(), draw.normal(size=(8, 5))
    results = explain(CADEX(Config(halvings=20)), linear(weights, bias), numbers(5), factuals, factuals)
    logits = factuals @ weights + bias
    step = np.abs(logits) / np.abs(weights).sum()
    expected = factuals - (np.sign(logits) * step)[:, None] * np.sign(weights)
    assert results == pytest.approx(expected, abs=1e-5)
    nearest = np.abs(logits) / np.linalg.norm(weights)
    distances = np.linalg.norm(results - factuals, axis=1)
    assert (distances >= nearest).all()
    assert (distances <= nearest * np.sqrt(5)).all()


def test_as_published_the_last_step_is_stored(explain, linear, numbers):
    config = Config(learning_rate=0.4, halvings=0)
    results = explain(CADEX(config), linear([1.0], -1.0), numbers(1), [[0.0]], [[0.0]])
    assert results[0] == pytest.approx([1.2], abs=1e-6)


def test_only_the_columns_with_the_largest_gradients_change(explain, linear, numbers):
    model, factual = linear([1.0, -3.0, 2.0], -2.0), [[0.0, 0.0, 0.0]]
    one = explain(CADEX(Config(features=1)), model, numbers(3), factual, factual)
    assert one[0] == pytest.approx([0.0, -2 / 3, 0.0], abs=0.01)
    second = explain(CADEX(Config(features=1, skip=1)), model, numbers(3), factual, factual)
    assert second[0] == pytest.approx([0.0, 0.0, 1.0], abs=0.01)


def test_numbers_of_a_mixed_table_stay_numbers(explain, linear):
    """The adapter of CF-tabular took every column of such a table for a category: each number became 1.0."""
    encoding = encoding_of(Column("age"), COLOUR, STRIPED)
    model = linear([1.0, 0.0, 0.1, 0.2, 0.1], -3.0)
    results = explain(CADEX(Config()), model, encoding, [[-2.0, 1, 0, 0, 0]], [[0.0, 1, 0, 0, 0]])
    assert 1.5 < results[0, 0] < 9 and results[0, 0] != 1.0
    encoding.decode(results)  # raises unless each category is one level


def test_the_level_that_gains_most_wins(explain, linear):
    encoding = encoding_of(Column("age"), COLOUR)
    model = linear([0.01, 0.0, 1.0, 2.0], -0.5)
    results = explain(CADEX(Config()), model, encoding, [[0.0, 1, 0, 0]], [[0.0, 1, 0, 0]])
    assert results.tolist() == [[0.0, 0, 0, 1]]  # and the number, which was not needed, is pulled back


def test_a_two_valued_column_turns(explain, linear):
    encoding = encoding_of(STRIPED, Column("dotted", "categorical", ("no", "yes")))
    results = explain(CADEX(Config()), linear([1.0, -2.0], 0.5), encoding, [[0, 1]], [[0, 1]])
    assert results.tolist() == [[0, 0]]


def test_one_category_is_switched_at_a_time(explain, linear):
    """Each of three would do; all three reach the threshold in the same step."""
    encoding = encoding_of(*(dataclasses.replace(STRIPED, name=name) for name in "abc"))
    results = explain(CADEX(Config()), linear([1.0, 3.0, 2.0], -0.5), encoding, [[0, 0, 0]], [[0, 0, 0]])
    assert results.tolist() == [[0, 1, 0]]


def test_immutable_and_one_way_columns_are_left_alone(explain, linear):
    free, fixed = Column("a"), Column("b", immutable=True)
    model = linear([1.0, 5.0], -1.0)
    results = explain(CADEX(Config()), model, encoding_of(free, fixed), [[0.0, 0.0]], [[0.0, 0.0]])
    assert results[0, 1] == 0.0 and results[0, 0] == pytest.approx(1.0, abs=0.01)
    falling = Column("b", direction="down")
    results = explain(CADEX(Config()), model, encoding_of(free, falling), [[0.0, 0.0]], [[0.0, 0.0]])
    assert results[0, 1] == 0.0
    results = explain(
        CADEX(Config(features=1)), model, encoding_of(free, falling), [[0.0, 0.0]], [[0.0, 0.0]]
    )
    assert results[0, 1] == 0.0 and results[0, 0] == pytest.approx(1.0, abs=0.01)
    colour = dataclasses.replace(COLOUR, immutable=True)
    results = explain(
        CADEX(Config()),
        linear([1.0, 0, 9.0, 9.0], -1.0),
        encoding_of(free, colour),
        [[0.0, 1, 0, 0]],
        [[0.0] * 4],
    )
    assert results[0] == pytest.approx([1.0, 1, 0, 0], abs=0.01)


def test_counterfactuals_stay_in_the_observed_range_or_there_is_none(explain, linear, numbers):
    model = linear([1.0, 1.0], -17.0)
    assert explain(CADEX(Config()), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]]).max() <= 9.0
    assert np.isnan(explain(CADEX(Config()), linear([1.0], -9.5), numbers(1), [[0.0]], [[0.0]])).all()


def test_a_model_without_a_slope_gives_no_counterfactual(explain, linear, numbers):
    assert np.isnan(
        explain(CADEX(Config()), linear([0.0, 0.0], 1.0), numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    ).all()


def test_ignoring_categories_gives_vectors_that_are_no_rows(explain, linear):
    encoding = encoding_of(COLOUR)
    model = linear([0.0, 1.0, 0.0], -0.4)
    results = explain(CADEX(Config(one_hot="ignore")), model, encoding, [[1, 0, 0]], [[1, 0, 0]])
    with pytest.raises(ValueError, match="not exactly one level"):
        encoding.decode(results)


def test_steps_are_reported():
    data = example_data()
    from cfbench_tabular.classifiers.mlp import MLP
    from cfbench_tabular.classifiers.mlp import Config as MLPConfig

    model = fitted(MLP(MLPConfig()), data)
    result = CADEX(Config()).counterfactuals(model, factuals_of(model, data), context_of(data))
    assert isinstance(result, Explanation)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert given.mean() > 0.95
    assert (result.details["steps"][given] >= 1).all()
    data.encoding.decode(result.counterfactuals[given])


@pytest.mark.parametrize("name", ["Adult", "TicTacToe", "Iris"])
def test_the_published_networks_are_turned_by_rows(study, explain, name):
    """CF-tabular found CADEX's counterfactuals for 90% of its factuals; none of those of mixed sets was real."""
    model, encoding = study.network(name), study.encoding(name)
    for label in (0, 1):
        factuals = study.factuals(name, label)[:20].astype(float)
        results = explain(CADEX(Config()), model, encoding, factuals, factuals)
        assert ((model.predict_proba(results)[:, 1] > 0.5) == (label == 0)).all()
        encoding.decode(results)
        low, high = encoding.bounds
        assert (results >= low - 1e-9).all() and (results <= high + 1e-9).all()
