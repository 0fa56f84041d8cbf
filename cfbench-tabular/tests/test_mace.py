import sys
from itertools import product

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.exhaustive import Config as ExhaustiveConfig
from cfbench_tabular.explainers.exhaustive import Exhaustive
from cfbench_tabular.explainers.mace import MACE, SPEC, Config, costs_of
from cfbench_tabular.explainers.optimum import Config as OptimumConfig
from cfbench_tabular.explainers.optimum import Optimum
from cfbench_tabular.table import Column
from cfbench_tabular.testing import context_of, example_data, factuals_of

z3 = pytest.importorskip("z3", reason="needs cfbench-tabular[mace]")


def explained(explainer, model, encoding, rows, background):
    found = model.predict_proba(rows)
    factuals = Factuals(rows, (found[:, 1] > found[:, 0]).astype(np.int64), tuple(map(str, range(len(rows)))))
    context = Context(encoding, background, lambda unit: generator("test", unit))
    return explainer.counterfactuals(model, factuals, context), factuals, context


def flips(model, factuals, rows):
    found = model.predict_proba(rows)
    return (found[:, 1] > found[:, 0]) != (factuals.classes == 1)


def categories(*levels):
    columns = tuple(
        Column(f"c{place}", "categorical", tuple("abcdefgh"[:n])) for place, n in enumerate(levels)
    )
    zero = np.zeros(len(levels))
    return Encoding(columns, zero, zero + 1, zero, zero + 1)


def space(encoding):
    parts = [
        np.eye(len(c.levels)) if len(c.levels) > 2 else np.array([[0.0], [1.0]]) for c in encoding.columns
    ]
    return np.array([np.concatenate(choice) for choice in product(*parts)])


def test_one_number_moves_just_over_the_line(linear, numbers):
    """From 0 to 4.5, a quarter of the range -9 to 9; of two columns the distance is the mean."""
    far = np.array([[9.0, 9.0]])
    result, _, _ = explained(MACE(Config()), linear([1.0, 0.0], -4.5), numbers(2), np.zeros((1, 2)), far)
    assert result.counterfactuals[0] == pytest.approx([4.5, 0.0], abs=1e-3 * 36)
    assert result.details["objective"] == pytest.approx(0.125, abs=1e-3)
    assert result.details["bound"] <= 0.125
    assert result.details["proven"].tolist() == [1.0]


@pytest.mark.parametrize("norm", ["l1", "l0"])
@pytest.mark.parametrize("seed", range(3))
def test_on_categories_it_changes_as_few_as_trying_everything(network, seed, norm):
    encoding = categories(3, 2, 4, 3)
    rows = space(encoding)
    model = network(encoding.width, hidden=8, seed=seed)
    few = rows[::9].copy()
    result, factuals, _ = explained(MACE(Config(norm=norm)), model, encoding, few, rows[:30])
    least, _, _ = explained(Exhaustive(ExhaustiveConfig()), model, encoding, few, rows[:30])
    assert result.details["proven"].all()
    assert result.details["objective"] * 4 == pytest.approx(least.details["bound"], nan_ok=True)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    encoding.decode(result.counterfactuals[given])  # raises unless each is a row
    assert flips(model, factuals, result.counterfactuals)[given].all()


@pytest.mark.parametrize("name", ["BalanceScale", "TicTacToe", "HayesRoth", "Nursery"])
def test_on_cf_tabular_it_changes_as_few_as_trying_everything(study, name):
    rows = np.concatenate([study.factuals(name, 0)[:6], study.factuals(name, 1)[:6]])
    background = np.concatenate([study.factuals(name, 0), study.factuals(name, 1)])
    model, encoding = study.network(name), study.encoding(name)
    result, factuals, _ = explained(MACE(Config()), model, encoding, rows, background)
    least, _, _ = explained(Exhaustive(ExhaustiveConfig()), model, encoding, rows, background)
    assert result.details["proven"].all()
    assert result.details["objective"] * len(encoding.columns) == pytest.approx(least.details["bound"])
    assert flips(model, factuals, result.counterfactuals).all()


@pytest.mark.parametrize("seed", range(4))
def test_on_numbers_it_is_the_optimum_to_epsilon(network, numbers, seed):
    """All ranges are 18, so the distance is a multiple of the l1 of the integer programme."""
    model = network(3, hidden=5, seed=seed)
    rows = np.random.default_rng(seed).normal(size=(3, 3))
    mace, factuals, _ = explained(MACE(Config()), model, numbers(3), rows, rows * 4)
    best, _, _ = explained(Optimum(OptimumConfig()), model, numbers(3), rows, rows * 4)
    nearest = best.details["objective"] / (18 * 3)
    assert mace.details["proven"].all()
    assert (mace.details["objective"] <= nearest + 1e-3 + 1e-6).all()
    assert (mace.details["bound"] <= nearest + 1e-6).all()
    assert (mace.details["objective"] >= nearest - 1e-6).all()
    assert flips(model, factuals, mace.counterfactuals).all()


@pytest.mark.parametrize("name", ["CarEvaluation", "Chess", "HayesRoth", "Nursery"])
def test_as_published_it_changes_as_few_as_trying_everything(study, name):
    """Other rows and data sets than above, with the tolerance of its authors' code."""
    rows = np.concatenate([study.factuals(name, label)[10:14] for label in (0, 1)])
    background = np.concatenate([study.factuals(name, label) for label in (0, 1)])
    model, encoding = study.network(name), study.encoding(name)
    published = MACE(Config(**presets_of(SPEC)["as-published"].options))
    result, factuals, _ = explained(published, model, encoding, rows, background)
    least, _, _ = explained(Exhaustive(ExhaustiveConfig()), model, encoding, rows, background)
    assert result.details["proven"].all()
    assert result.details["objective"] * len(encoding.columns) == pytest.approx(least.details["bound"])
    assert flips(model, factuals, result.counterfactuals).all()


@pytest.mark.parametrize("seed", range(10, 14))
def test_as_published_it_is_the_optimum_on_numbers_to_its_tolerance(network, numbers, seed):
    model = network(4, hidden=4, seed=seed)
    rows = np.random.default_rng(seed).normal(size=(3, 4))
    published = MACE(Config(**presets_of(SPEC)["as-published"].options))
    mace, factuals, _ = explained(published, model, numbers(4), rows, rows * 4)
    best, _, _ = explained(Optimum(OptimumConfig()), model, numbers(4), rows, rows * 4)
    assert mace.details["proven"].all() and best.details["proven"].all()
    nearest = best.details["objective"] / (18 * 4)
    assert np.abs(mace.details["objective"] - nearest).max() <= 2e-5
    assert flips(model, factuals, mace.counterfactuals).all()


@pytest.mark.parametrize("norm", ["l0", "linf"])
def test_the_other_norms_against_a_grid(network, numbers, norm):
    axis = np.linspace(-9, 9, 181)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    model = network(2, hidden=8, seed=4)
    classes = model.predict_proba(grid).argmax(axis=1)
    rows = np.random.default_rng(0).normal(scale=3, size=(4, 2))
    result, factuals, context = explained(MACE(Config(norm=norm)), model, numbers(2), rows, grid[::97])
    for place, (row, label) in enumerate(zip(rows, factuals.classes, strict=True)):
        near = grid[classes != label]
        lines = np.concatenate([np.tile(row, (181, 1)), np.tile(row, (181, 1))])  # where one column changes
        lines[:181, 0], lines[181:, 1] = axis, axis
        near = np.concatenate([near, lines[model.predict_proba(lines).argmax(axis=1) != label]])
        nearest = costs_of(norm, context.encoding).of(near, row).min()
        assert result.details["proven"][place] == 1.0
        assert result.details["bound"][place] <= nearest + 1e-9
        assert result.details["objective"][place] <= nearest + 1e-3
        if norm == "linf":
            assert result.details["objective"][place] >= nearest - 0.1 / 18 - 1e-9
    assert flips(model, factuals, result.counterfactuals).all()


def test_the_factual_that_is_given_is_explained_not_the_last_training_row(linear, numbers):
    background = np.array([[9.0], [-8.0]])
    result, _, _ = explained(
        MACE(Config()), linear([1.0], 0.0), numbers(1), np.array([[-1.0], [2.0]]), background
    )
    assert result.details["objective"] == pytest.approx([1 / 18, 2 / 18], abs=1e-3)


def test_the_decision_is_the_comparison_of_both_outputs():
    """Both outputs are negative everywhere, so a ReLU would put them to 0 and see no difference."""

    class Negative:
        def layers(self):
            return [(np.array([[0.0, 1.0]]), np.array([-30.0, -32.0]))]

        def predict_proba(self, vectors):
            one = 1 / (1 + np.exp(-(vectors[:, 0] - 2.0)))
            return np.stack([1 - one, one], axis=1)

    encoding = Encoding((Column("x"),), np.zeros(1), np.ones(1), np.full(1, -9.0), np.full(1, 9.0))
    result, factuals, _ = explained(
        MACE(Config()), Negative(), encoding, np.array([[0.0], [5.0]]), np.array([[9.0], [-9.0]])
    )
    assert result.counterfactuals[:, 0] == pytest.approx([2.0, 2.0], abs=0.02)
    assert flips(Negative(), factuals, result.counterfactuals).all()


def test_that_there_is_none_is_proven(linear, numbers):
    result, _, _ = explained(
        MACE(Config()), linear([1.0], -20.0), numbers(1), np.zeros((1, 1)), np.zeros((1, 1))
    )
    assert np.isnan(result.counterfactuals).all()
    assert result.details["proven"].tolist() == [1.0]


def test_when_time_runs_out_the_best_so_far_and_a_bound(network, numbers):
    model = network(8, hidden=30, seed=1)
    rows = np.random.default_rng(1).normal(size=(40, 8))
    result, factuals, _ = explained(MACE(Config(seconds=0.3)), model, numbers(8), rows[:2], rows)
    best, _, _ = explained(Optimum(OptimumConfig()), model, numbers(8), rows[:2], rows)
    assert flips(model, factuals, result.counterfactuals).all()
    assert result.details["proven"].tolist() == [0.0, 0.0]
    assert (result.details["bound"] <= best.details["objective"] / (18 * 8) + 1e-6).all()
    assert (result.details["objective"] > result.details["bound"] + 1e-3).all()


def test_mixed_rows_stay_rows(network):
    data = example_data()
    model = network(data.encoding.width, hidden=4, seed=4)
    factuals, context = factuals_of(model, data, slice(0, 4)), context_of(data)
    result = MACE(Config()).counterfactuals(model, factuals, context)
    data.encoding.decode(result.counterfactuals)  # raises unless each is a row
    assert flips(model, factuals, result.counterfactuals).all()
    assert result.details["proven"].all()
    low, high = data.encoding.bounds
    assert ((result.counterfactuals >= low - 1e-9) & (result.counterfactuals <= high + 1e-9)).all()


def test_without_the_solver_it_says_what_to_install(linear, numbers, monkeypatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(UserError, match=r"pip install 'cfbench-tabular\[mace\]'"):
        explained(MACE(Config()), linear([1.0], -1.0), numbers(1), np.zeros((1, 1)), np.ones((1, 1)))
