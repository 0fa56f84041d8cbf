from itertools import combinations, product

import numpy as np
import pytest

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.synas import Config, SynAS
from cfbench_tabular.table import Column

COLOUR = Column("colour", "categorical", ("red", "green", "blue"))


def encoding_of(*columns, reach=9.0):
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.ones(size), np.full(size, -reach), np.full(size, reach))


def classes_of(model, rows):
    found = model.predict_proba(rows)
    return (found[:, 1] > found[:, 0]).astype(int)


def reported(config, model, encoding, factuals):
    """Observed with their details."""
    vectors = np.asarray(factuals, dtype=float)
    given = Factuals(vectors, classes_of(model, vectors), tuple(map(str, range(len(vectors)))))
    return SynAS(config).counterfactuals(
        model, given, Context(encoding, vectors, lambda unit: np.random.default_rng(0))
    )


def test_one_action_on_the_column_that_does_most(linear, numbers):
    result = reported(Config(), linear([1.0, 4.0], -2.0), numbers(2), [[0.0, 0.0]])
    assert result.counterfactuals[0] == pytest.approx([0.0, 0.5], abs=0.01)
    assert result.details["actions"][0] == 1
    assert result.details["cost"][0] == pytest.approx(0.5 + 0.5, abs=0.01)


def test_where_one_action_is_not_enough_two_or_three_are_taken(linear):
    """The adapter of CF-tabular was limited to one. Each column reaches no further than 1."""
    encoding = encoding_of(*(Column(name) for name in "abcd"), reach=1.0)
    for needed in (1, 2, 3):
        model = linear([1.0] * 4, 0.3 - needed)
        result = reported(Config(), model, encoding, [[0.0] * 4])
        assert result.details["actions"][0] == needed
        assert (result.counterfactuals[0] != 0).sum() == needed
        assert result.counterfactuals[0].sum() == pytest.approx(needed - 0.3, abs=0.02)
        shorter = reported(Config(length=needed), model, encoding, [[0.0] * 4])
        assert shorter.counterfactuals == pytest.approx(result.counterfactuals)
    four = linear([1.0] * 4, -3.5), encoding, [[0.0] * 4]
    assert np.isnan(reported(Config(length=3), *four).counterfactuals).all()
    assert reported(Config(), *four).details["actions"] == 4
    assert np.isnan(reported(Config(), linear([1.0] * 4, -4.5), *four[1:]).counterfactuals).all()
    assert np.isnan(
        reported(Config(length=2), linear([1.0] * 4, -2.5), encoding, [[0.0] * 4]).counterfactuals
    ).all()


def test_costs_decide_between_a_number_and_a_category(explain, linear):
    encoding = encoding_of(Column("age"), COLOUR)
    model = linear([1.0, 0.0, 2.0, 0.0], -1.5)  # age + 1.5, or green
    factual = [[0.0, 1, 0, 0]]
    assert explain(SynAS(Config()), model, encoding, factual, factual)[0].tolist() == [0.0, 0, 1, 0]
    dear = explain(SynAS(Config(category=3.0)), model, encoding, factual, factual)[0]
    assert dear == pytest.approx([1.5, 1, 0, 0], abs=0.02)


def cheapest_categories(model, encoding, factual, length, config):
    """By trying every set of up to ``length`` level changes."""
    label = classes_of(model, factual[None])[0]
    best = np.inf
    for count in range(1, length + 1):
        for columns in combinations(range(len(encoding.columns)), count):
            choices = [range(len(encoding.columns[column].levels)) for column in columns]
            for levels in product(*choices):
                row = factual.copy()
                for column, level in zip(columns, levels, strict=True):
                    block = encoding.blocks[column]
                    row[block] = (
                        level if block.stop - block.start == 1 else np.eye(block.stop - block.start)[level]
                    )
                if classes_of(model, row[None])[0] != label:
                    best = min(best, count * (config.action_cost_offset + config.category))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_on_categories_it_is_as_cheap_as_trying_everything(network, seed):
    columns = (
        COLOUR,
        Column("b", "categorical", ("1", "2", "3", "4")),
        Column("c", "categorical", ("no", "yes")),
        Column("d", "categorical", ("x", "y", "z")),
    )
    encoding = encoding_of(*columns)
    model = network(encoding.width, hidden=8, seed=seed)
    rows = encoding.project(np.random.default_rng(seed).normal(size=(15, encoding.width)))
    result = reported(Config(beam=50), model, encoding, rows)
    for row, cost in zip(rows, result.details["cost"], strict=True):
        expected = cheapest_categories(model, encoding, row, 3, Config())
        assert (np.inf if np.isnan(cost) else cost) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_on_numbers_it_is_about_as_cheap_as_a_grid_of_all_sequences(network, seed):
    encoding = encoding_of(*(Column(name) for name in "abc"), reach=2.0)
    model, draw = network(3, hidden=8, seed=seed), np.random.default_rng(seed)
    axis = np.linspace(-2, 2, 41)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    factuals = axis[draw.integers(41, size=(10, 3))]
    there, own = classes_of(model, grid), classes_of(model, factuals)
    result = reported(Config(), model, encoding, factuals)
    ratios = []
    for row, label, cost in zip(factuals, own, result.details["cost"], strict=True):
        away = np.abs(grid - row)
        costs = away.sum(axis=1) + Config().action_cost_offset * (away > 1e-9).sum(axis=1)
        enemies = costs[there != label]
        if len(enemies) == 0:
            assert np.isnan(cost)
        else:
            ratios.append(cost / enemies.min())
    if ratios:  # the search is not complete: it may miss an enemy that lies behind a worse place
        assert np.isnan(ratios).mean() <= 0.1
        assert np.nanmax(ratios) < 1.25
        assert np.nanmedian(ratios) < 1.05


def test_details_describe_the_counterfactuals(network, numbers):
    draw = np.random.default_rng(0)
    model, factuals = network(5, seed=2), draw.normal(size=(20, 5))
    result = reported(Config(), model, numbers(5), factuals)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert given.any()
    away = np.abs(result.counterfactuals - factuals)[given]
    assert result.details["cost"][given] == pytest.approx(
        away.sum(axis=1) + Config().action_cost_offset * result.details["actions"][given]
    )
    assert ((away > 0).sum(axis=1) <= result.details["actions"][given]).all()


def test_preconditions_immutable_one_way_and_ranges(linear):
    encoding = encoding_of(Column("a"), Column("b", immutable=True), Column("c", direction="down"), COLOUR)
    model = linear([1.0, 5.0, 5.0, 0.0, 0.0, 0.0], -2.0)
    result = reported(Config(), model, encoding, [[0.0, 0.0, 0.0, 1, 0, 0]]).counterfactuals[0]
    assert result == pytest.approx([2.0, 0, 0, 1, 0, 0], abs=0.02)
    fixed = encoding_of(Column("a"), Column("colour", "categorical", COLOUR.levels, immutable=True))
    result = reported(Config(), linear([1.0, 0.0, 9.0, 9.0], -2.0), fixed, [[0.0, 1, 0, 0]]).counterfactuals[
        0
    ]
    assert result == pytest.approx([2.0, 1, 0, 0], abs=0.02)


def test_counterfactuals_are_rows(linear):
    encoding = encoding_of(Column("age"), COLOUR, Column("striped", "categorical", ("no", "yes")), reach=1.0)
    rows = encoding.project(np.clip(np.random.default_rng(1).normal(size=(30, encoding.width)), -1, 1))
    model = linear([0.5, -1.0, 0.0, 2.0, -1.0], 0.2)
    result = reported(Config(), model, encoding, rows)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert given.all()
    encoding.decode(result.counterfactuals)
    assert (classes_of(model, result.counterfactuals) != classes_of(model, rows)).all()


def test_margin_beyond_the_boundary(linear, numbers):
    result = reported(Config(kappa=2.0), linear([1.0], 0.0), numbers(1), [[-1.0]])
    assert result.counterfactuals[0, 0] == pytest.approx(2.0, abs=0.02)


def test_without_a_slope_there_is_no_counterfactual(linear, numbers):
    assert np.isnan(reported(Config(), linear([0.0], 1.0), numbers(1), [[0.0]]).counterfactuals).all()


@pytest.mark.parametrize("name", ["Adult", "BalanceScale", "Iris"])
def test_the_published_networks(study, name):
    model, encoding = study.network(name), study.encoding(name)
    for label in (0, 1):
        factuals = study.factuals(name, label)[:10].astype(float)
        results = reported(Config(), model, encoding, factuals).counterfactuals
        given = ~np.isnan(results).any(axis=1)
        assert given.mean() >= 0.9
        assert (classes_of(model, results[given]) != label).all()
        encoding.decode(results[given])
