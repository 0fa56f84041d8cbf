import ctypes
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.mlp import MLP
from cfbench_tabular.classifiers.mlp import Config as MLPConfig
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import optimum
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.exhaustive import Config as ExhaustiveConfig
from cfbench_tabular.explainers.exhaustive import Exhaustive
from cfbench_tabular.explainers.optimum import Config, Optimum, costs_of
from cfbench_tabular.metrics.madd import MADD
from cfbench_tabular.metrics.madd import Config as MADDConfig
from cfbench_tabular.observations import observed_of
from cfbench_tabular.table import Column
from cfbench_tabular.testing import context_of, example_data, factuals_of, fitted

OBJECTIVES = ["l1", "l0", "madd"]


class Deep:
    """Two hidden layers of ReLU."""

    def __init__(self, d, seed):
        draw = np.random.default_rng(seed)
        sizes = [d, 6, 5, 2]
        self.parts = [
            (draw.normal(size=(one, other)), draw.normal(size=other)) for one, other in pairwise(sizes)
        ]

    def layers(self):
        return self.parts

    def predict_proba(self, vectors):
        for place, (weight, bias) in enumerate(self.parts):
            vectors = vectors @ weight + bias
            vectors = np.maximum(vectors, 0) if place < 2 else vectors
        one = 1 / (1 + np.exp(np.clip(vectors[:, 0] - vectors[:, 1], -500, 500)))
        return np.stack([1 - one, one], axis=1)


def explained(explainer, model, encoding, rows, background):
    found = model.predict_proba(rows)
    factuals = Factuals(rows, (found[:, 1] > found[:, 0]).astype(np.int64), tuple(map(str, range(len(rows)))))
    context = Context(encoding, background, lambda unit: generator("test", unit), retrained=(model,) * 32)
    return Explanation.of(explainer.counterfactuals(model, factuals, context)), factuals, context


def flips(model, factuals, rows):
    found = model.predict_proba(rows)
    return (found[:, 1] > found[:, 0]) != (factuals.classes == 1)


def test_the_cheapest_way_over_a_line(linear, numbers):
    """2 a + b > 2 from (0, 0): a alone by 1."""
    far = np.array([[5.0, 5.0]])
    result, _, _ = explained(Optimum(Config()), linear([2.0, 1.0], -2.0), numbers(2), np.zeros((1, 2)), far)
    assert result.counterfactuals[0] == pytest.approx([1.0, 0.0], abs=1e-5)
    assert result.details["objective"] == pytest.approx(1.0, abs=1e-5)
    assert result.details["bound"] == pytest.approx(1.0, abs=1e-5)
    assert result.details["proven"].tolist() == [1.0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["shallow", "deep"])
def test_a_dense_grid_contains_no_nearer_point(network, numbers, kind, seed):
    model = network(2, hidden=8, seed=seed) if kind == "shallow" else Deep(2, seed)
    axis = np.linspace(-4, 4, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    found = model.predict_proba(grid)
    classes = found[:, 1] > found[:, 0]
    rows = np.random.default_rng(seed).uniform(-1.5, 1.5, size=(6, 2))
    encoding = replace(numbers(2), low=np.full(2, -4.0), high=np.full(2, 4.0))
    result, factuals, _ = explained(Optimum(Config()), model, encoding, rows, rows)
    for place, (row, label) in enumerate(zip(rows, factuals.classes, strict=True)):
        enemies = grid[classes != label]
        if len(enemies) == 0:
            continue
        nearest = np.abs(enemies - row).sum(axis=1).min()
        objective = result.details["objective"][place]
        assert result.details["proven"][place] == 1.0
        assert objective <= nearest + 1e-4
        assert objective >= nearest - 2 * 0.02 - 1e-4
        assert objective == pytest.approx(np.abs(result.counterfactuals[place] - row).sum())
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert flips(model, factuals, result.counterfactuals)[given].all()


@pytest.mark.parametrize("seed", range(4))
def test_for_categories_it_is_what_trying_everything_gives(network, seed):
    columns = tuple(Column(f"c{n}", "categorical", tuple("abcde"[:n])) for n in (3, 2, 4, 5, 2))
    zero = np.zeros(len(columns))
    encoding = Encoding(columns, zero, zero + 1, zero, zero + 1)
    parts = [np.eye(len(c.levels)) if len(c.levels) > 2 else np.array([[0.0], [1.0]]) for c in columns]
    rows = np.array([np.concatenate(choice) for choice in product(*parts)])
    model = network(encoding.width, hidden=10, seed=seed)
    few = rows[::11].copy()
    result, factuals, _ = explained(Optimum(Config(objective="l0")), model, encoding, few, rows[:40])
    least, _, _ = explained(Exhaustive(ExhaustiveConfig()), model, encoding, few, rows[:40])
    assert result.details["proven"].all()
    assert np.array_equal(result.details["objective"], least.details["bound"], equal_nan=True)
    shortest, _, _ = explained(Optimum(Config(objective="l1")), model, encoding, few, rows[:40])
    classes = model.predict_proba(rows).argmax(axis=1)
    for place, (row, label) in enumerate(zip(few, factuals.classes, strict=True)):
        if (classes != label).any():
            nearest = np.abs(rows[classes != label] - row).sum(axis=1).min()
            assert shortest.details["objective"][place] == pytest.approx(nearest, abs=1e-6)


def test_it_counts_changes_as_the_metric_does(network):
    data = example_data()
    model = network(data.encoding.width, seed=2)
    factuals, context = factuals_of(model, data, slice(0, 24)), context_of(data)
    result = Optimum(Config(objective="madd")).counterfactuals(model, factuals, context)
    scores = MADD(MADDConfig()).compute(observed_of(model, factuals, result.counterfactuals, data))["MADD"]
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert given.sum() > 10
    assert scores[given] == pytest.approx(result.details["objective"][given])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_on_a_mixed_table_no_row_is_nearer(network, objective):
    """Compared with 20,000 random rows that flip, and with the training rows."""
    data = example_data()
    encoding, context = data.encoding, context_of(data)
    draw = np.random.default_rng(0)
    for seed in (2, 4):
        model = network(encoding.width, seed=seed)
        factuals = factuals_of(model, data, slice(0, 10))
        result = Optimum(Config(objective=objective)).counterfactuals(model, factuals, context)
        low, high = encoding.bounds
        rows = encoding.project(draw.uniform(low, high, size=(20_000, encoding.width)))
        classes = model.predict_proba(rows).argmax(axis=1)
        encoding.decode(result.counterfactuals)  # raises unless each is a row
        for place, (row, label) in enumerate(zip(factuals.vectors, factuals.classes, strict=True)):
            mixed = encoding.project(np.where(draw.random(rows.shape) < 0.7, row, rows))  # fewer changes
            enemies = np.concatenate(
                [rows[classes != label], mixed[model.predict_proba(mixed).argmax(1) != label]]
            )
            costs = costs_of(objective, context).of(enemies, row)
            assert result.details["objective"][place] <= costs.min() + 1e-4
        assert flips(model, factuals, result.counterfactuals).all()
        assert result.details["proven"].all()


def test_what_may_not_change_stays(linear, numbers):
    encoding = numbers(3)
    columns = (
        replace(encoding.columns[0], immutable=True),
        replace(encoding.columns[1], direction="down"),
        encoding.columns[2],
    )
    encoding = replace(encoding, columns=columns)
    model = linear([3.0, 2.0, 1.0], -2.0)
    result, _, _ = explained(Optimum(Config()), model, encoding, np.zeros((1, 3)), np.full((1, 3), 9.0))
    assert result.counterfactuals[0] == pytest.approx([0.0, 0.0, 2.0], abs=1e-5)


def test_numbers_stay_within_the_observed_range(linear, numbers):
    """The first column ends at 9, so the second has to help."""
    result, _, _ = explained(
        Optimum(Config()), linear([2.0, 1.0], -20.0), numbers(2), np.zeros((1, 2)), np.ones((1, 2))
    )
    assert result.counterfactuals[0] == pytest.approx([9.0, 2.0], abs=1e-5)


def test_that_there_is_none_is_proven(linear, numbers):
    result, _, _ = explained(
        Optimum(Config()), linear([1.0], -20.0), numbers(1), np.zeros((1, 1)), np.zeros((1, 1))
    )
    assert np.isnan(result.counterfactuals).all()
    assert result.details["proven"].tolist() == [1.0]
    assert np.isnan([result.details["bound"][0], result.details["objective"][0]]).all()


def test_when_time_runs_out_there_is_a_counterfactual_and_a_bound(network, numbers):
    draw = np.random.default_rng(1)
    model = network(12, hidden=60, seed=1)
    rows = draw.normal(size=(40, 12))
    hasty, factuals, _ = explained(Optimum(Config(seconds=1e-3)), model, numbers(12), rows[:2], rows)
    longer, _, _ = explained(Optimum(Config(seconds=5)), model, numbers(12), rows[:2], rows)
    assert flips(model, factuals, hasty.counterfactuals).all()
    assert (hasty.details["proven"] == 0).all()
    assert (hasty.details["bound"] <= longer.details["objective"] + 1e-6).all()
    assert (longer.details["objective"] <= hasty.details["objective"] + 1e-9).all()


def others():
    """Every installed explainer that queries this network or its gradients, and is not certified itself."""
    for component in installed().components(suite="tabular", kind="explainer"):
        spec = component.spec
        reads_trees = "trees" in spec.needs["classifier"]["access"]
        if spec.role != "certified" and spec.name != "mace" and not reads_trees:
            yield spec.name, resolve(spec.target)(resolve(spec.config)())


@pytest.mark.parametrize(
    "name",
    [
        "Iris",
        "Wine",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("Ecoli", "PBC", "MagicGT", "CMSC")),
    ],
)
def test_on_cf_tabular_no_method_beats_it(study, name):
    """All numerical sets with at most 25 hidden units of which there are raw data."""
    model, encoding = study.network(name), study.encoding(name)
    background = np.concatenate([study.factuals(name, 0), study.factuals(name, 1)])
    rows = np.concatenate([study.factuals(name, 0)[:3], study.factuals(name, 1)[:3]])
    low, high = encoding.bounds
    theirs = {}
    for label, other in others():
        result, factuals, _ = explained(other, model, encoding, rows, background)
        found = result.stacked()[:, 0]
        good = ((found >= low - 1e-9) & (found <= high + 1e-9)).all(axis=1)  # NaN is not
        good[good] = model.predict_proba(found[good]).argmax(axis=1) != factuals.classes[good]
        theirs[label] = found, np.flatnonzero(good)
    for objective in OBJECTIVES:
        mine, factuals, context = explained(
            Optimum(Config(objective=objective)), model, encoding, rows, background
        )
        assert mine.details["proven"].all()
        assert flips(model, factuals, mine.counterfactuals).all()
        costs = costs_of(objective, context)
        for label, (found, good) in theirs.items():
            for place in good:
                cost = costs.of(found[place : place + 1], rows[place])[0]
                assert mine.details["objective"][place] <= cost * (1 + 1e-4) + 1e-5, (label, objective, place)


def test_a_trained_network_is_explained_and_proven():
    data = example_data()
    model = fitted(MLP(MLPConfig()), data)
    factuals = factuals_of(model, data, slice(0, 12))
    result = Optimum(Config()).counterfactuals(model, factuals, context_of(data))
    assert flips(model, factuals, result.counterfactuals).all()
    assert result.details["proven"].all()


def test_what_the_solver_prints_is_discarded(network, numbers, capfd, monkeypatch):
    """HiGHS writes a line with printf in rare cases, whatever its options are."""
    solve = optimum.milp

    def printing(*arguments, **options):
        ctypes.CDLL(None).printf(b"HighsMipSolverData: tmpSolver.run();\n")
        return solve(*arguments, **options)

    monkeypatch.setattr(optimum, "milp", printing)
    print("before")
    background = np.random.default_rng(0).normal(size=(20, 3))
    explained(Optimum(Config()), network(3), numbers(3), background[:2], background)
    ctypes.CDLL(None).fflush(None)
    print("after")
    assert capfd.readouterr().out == "before\nafter\n"
