import numpy as np
import pytest

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.ml_explain import Config, MLExplain
from cfbench_tabular.table import Column


def encoding_of(*columns):
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.ones(size), np.full(size, -9.0), np.full(size, 9.0))


COLOUR = Column("colour", "categorical", ("red", "green", "blue"))


def classes_of(model, rows):
    found = model.predict_proba(rows)
    return (found[:, 1] > found[:, 0]).astype(int)


def test_it_goes_straight_to_the_boundary(explain, linear, numbers):
    results = explain(
        MLExplain(Config(l1=0.0)), linear([3.0, 4.0], -10.0), numbers(2), [[0.0, 0.0]], [[0.0, 0.0]]
    )
    assert results[0] == pytest.approx([1.2, 1.6], abs=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_on_a_linear_model_it_is_the_nearest_point_there_is(explain, linear, numbers, seed):
    """x - z w / |w|^2, to within 1%."""
    draw = np.random.default_rng(seed)
    weights, bias, factuals = draw.normal(size=6), draw.normal(), draw.normal(size=(10, 6))
    results = explain(MLExplain(Config(l1=0.0)), linear(weights, bias), numbers(6), factuals, factuals)
    nearest = np.abs(factuals @ weights + bias) / np.linalg.norm(weights)
    distances = np.linalg.norm(results - factuals, axis=1)
    assert (distances >= nearest).all()
    assert (distances <= 1.01 * nearest + 1e-3).all()


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_it_is_about_as_near_as_the_best_point_of_a_dense_grid(explain, network, numbers, seed):
    model = network(2, hidden=8, seed=seed)
    axis = np.linspace(-4, 4, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    there = classes_of(model, grid)
    factuals = np.random.default_rng(seed).uniform(-1.5, 1.5, size=(12, 2))
    results = explain(MLExplain(Config(l1=0.0)), model, numbers(2), factuals, factuals)
    ratios = []
    for factual, label, result in zip(factuals, classes_of(model, factuals), results, strict=True):
        assert classes_of(model, result[None])[0] != label
        nearest = np.linalg.norm(grid[there != label] - factual, axis=1).min()
        assert np.linalg.norm(result - factual) >= nearest - 0.03
        ratios.append(np.linalg.norm(result - factual) / nearest)
    assert np.median(ratios) < 1.1


def test_the_probability_of_the_other_class_rises_whichever_that_is(explain, linear, numbers):
    """The adapter of CF-tabular went the wrong way: it minimised the class that was wanted."""
    model = linear([1.0], 0.0)
    results = explain(MLExplain(Config()), model, numbers(1), [[-2.0], [2.0]], [[0.0]])
    assert 0 < results[0, 0] < 0.05
    assert -0.05 < results[1, 0] < 0


def test_a_network_that_is_sure_is_turned_too(explain, linear, numbers):
    """P(class 1) is 1 - 1e-300 here: the derivative of the probability itself is 0."""
    results = explain(MLExplain(Config()), linear([500.0], 0.0), numbers(1), [[2.0]], [[0.0]])
    assert -0.05 < results[0, 0] < 0


def test_absolute_distance_prefers_the_column_that_does_most(explain, linear, numbers):
    model = linear([1.0, 2.0], -2.0)
    squared = explain(MLExplain(Config(l1=0.0)), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])[0]
    absolute = explain(MLExplain(Config(l1=5.0, l2=0.1)), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])[0]
    assert squared == pytest.approx([0.4, 0.8], abs=0.02)
    assert absolute[0] < 0.2
    assert np.abs(absolute).sum() < np.abs(squared).sum()


def test_counterfactuals_are_rows_unless_categories_are_ignored(explain, linear):
    encoding = encoding_of(Column("age"), COLOUR, Column("striped", "categorical", ("no", "yes")))
    model = linear([0.1, 0.0, 1.0, 2.0, -1.0], 0.0)
    factuals = [[-1.0, 1, 0, 0, 1], [-3.0, 1, 0, 0, 0], [1.0, 0, 0, 1, 1]]
    encoding.decode(explain(MLExplain(Config()), model, encoding, factuals, factuals))
    ignored = explain(MLExplain(Config(one_hot="ignore")), model, encoding, factuals, factuals)
    assert not np.isnan(ignored).any()
    with pytest.raises(ValueError, match="not exactly one level"):
        encoding.decode(ignored)


def test_ranges_are_respected_unless_the_published_method_is_requested(explain, linear):
    encoding = encoding_of(Column("a"), Column("b", immutable=True), Column("c", direction="down"))
    model = linear([1.0, 5.0, 5.0], -2.0)
    published = MLExplain(Config(ranges=False))
    free = explain(published, model, encoding, [[0.0, 0.0, 0.0]], [[0.0] * 3])[0]
    selected = explain(MLExplain(Config()), model, encoding, [[0.0, 0.0, 0.0]], [[0.0] * 3])[0]
    assert free[1] > 0 and free[2] > 0
    assert selected[1] == 0 and selected[2] <= 0 and selected[0] == pytest.approx(2.0, abs=0.05)
    far = linear([1.0], -20.0)
    assert explain(published, far, encoding_of(Column("a")), [[0.0]], [[0.0]])[0, 0] > 20
    assert np.isnan(
        explain(MLExplain(Config(ranges=True)), far, encoding_of(Column("a")), [[0.0]], [[0.0]])
    ).all()


def test_without_a_slope_there_is_no_counterfactual(explain, linear, numbers):
    assert np.isnan(explain(MLExplain(Config()), linear([0.0], 1.0), numbers(1), [[0.0]], [[0.0]])).all()


@pytest.mark.parametrize("name", ["Adult", "TicTacToe", "Iris", "BCW"])
def test_every_factual_of_cf_tabular_has_a_counterfactual(study, explain, name):
    model, encoding = study.network(name), study.encoding(name)
    for label in (0, 1):
        factuals = study.factuals(name, label)[:20].astype(float)
        results = explain(MLExplain(Config()), model, encoding, factuals, factuals)
        assert (classes_of(model, results) != label).all()
        encoding.decode(results)
