"""Rows on a decision boundary: equally probable classes, and numbers and probabilities at a limit.

The oracle is the estimator's own ``predict`` or ``predict_proba``, compared with ``>=``, ``<=``, ``>`` and ``==``.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.classifiers.scikit_learn import Config, ScikitLearn
from cfbench_tabular.classifiers.targets import DecisionThreshold, of_classes, of_numbers
from cfbench_tabular.classifiers.tree_ensemble import Config as TreesConfig
from cfbench_tabular.classifiers.tree_ensemble import TreeEnsemble
from cfbench_tabular.explainers.growing_spheres import Config as SpheresConfig
from cfbench_tabular.explainers.growing_spheres import GrowingSpheres
from cfbench_tabular.explainers.nice import NICE
from cfbench_tabular.explainers.nice import Config as NiceConfig
from cfbench_tabular.number_range import NumberRange
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Column, Table
from cfbench_tabular.testing import context_of, factuals_of, fitted
from cfbench_tabular.view import TabularViewer

ROWS = 150
RATINGS = np.arange(1, 10)


def table() -> Table:
    """Whole numbers that predict a rating from 1 to 9 and a grade, both with much noise, and a colour."""
    draw = np.random.default_rng(0)
    first, second, colour = (draw.integers(high, size=ROWS) for high in (9, 5, 2))
    rating = np.clip(first + draw.integers(-2, 3, size=ROWS), 1, 9)
    grade = np.array(list("ABC"), dtype=object)[
        np.clip((rating + draw.integers(-2, 3, size=ROWS)) // 4, 0, 2)
    ]
    columns = (Column("a", step=1), Column("b", step=1), Column("c", "categorical", ("red", "green")))
    values = {
        "a": first.astype(float),
        "b": second.astype(float),
        "c": np.array(("red", "green"), dtype=object)[colour],
    }
    return Table("marks", columns, values, grade, "A", numbers=rating.astype(float))


def prepared(made: Table, threshold: float = 0.5) -> PreparedDataset:
    return PreparedDataset.make(made, 0.2, 0.2, generator("tabular", "split"), threshold)


def graded(target: str, threshold: float = 0.5) -> PreparedDataset:
    return prepared(replace(table(), target_class=target), threshold)


def rated(low: float | None, high: float | None, target_outside: bool = False, factor: float = 1.0) -> Any:
    wanted, made = NumberRange(low, high, "rating"), table()
    numbers = made.numbers * factor
    target = np.where(wanted.contains(numbers), wanted.inside, wanted.outside).astype(object)
    name = wanted.outside if target_outside else wanted.inside
    return prepared(replace(made, target=target, target_class=name, numbers=numbers, number_range=wanted))


def tried(model: Any, data: PreparedDataset) -> np.ndarray:
    """The rows of the table, and their counterfactuals, each of which the estimator itself must put in the other class."""
    factuals, context = factuals_of(model, data), context_of(data)
    found = [data.vectors]
    for explainer in (NICE(NiceConfig()), GrowingSpheres(SpheresConfig())):
        answers = explainer.counterfactuals(model, factuals, context)
        answers = getattr(answers, "counterfactuals", answers)
        given = ~np.isnan(answers).any(axis=1)
        assert given.mean() > 0.8
        assert (predicted_classes(model, answers[given]) != factuals.classes[given]).all()
        found.append(answers[given])
    return np.concatenate(found)


@settings(max_examples=200, deadline=None)
@given(
    low=st.none() | st.integers(-3, 3) | st.floats(-3, 3),
    width=st.none() | st.integers(1, 4) | st.floats(0.1, 4),
    values=st.lists(st.integers(-5, 5) | st.floats(-9, 9), max_size=9),
    kind=st.sampled_from(["f8", "f4", "i8"]),
    scale=st.sampled_from([1e-3, 1.0, 1e6]),
    inside=st.booleans(),
)
def test_the_limits_belong_to_the_range(low, width, values, kind, scale, inside):
    low, high = None if low is None else float(low), None if width is None else (low or 0.0) + float(width)
    limits = [limit for limit in (low, high) if limit is not None]
    near = [float(np.nextafter(limit, side)) for limit in limits for side in (-np.inf, np.inf)]
    numbers = np.array([*values, *limits, *near], dtype=float).astype(kind)
    expected = np.full(len(numbers), True)
    if low is not None:
        expected &= numbers >= low
    if high is not None:
        expected &= numbers <= high
    found = of_numbers(numbers, low, high, scale, inside)
    assert ((found[:, 1] > found[:, 0]) == (expected == inside)).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(len(numbers)))
    finite = np.isfinite(found).all(axis=1)
    assert finite.all() and ((found >= 0) & (found <= 1)).all()


def test_a_number_of_32_bits_at_a_limit_is_in_the_range():
    found = of_numbers(np.array([7.1, 7.0999], dtype=np.float32), 7.1, None, 1.0)
    assert (found[:, 1] > found[:, 0]).tolist() == [True, False]


def test_predictions_that_are_no_numbers_stay_an_error():
    assert np.isnan(of_numbers(np.array([np.nan]), 7.0, None, 1.0)).all()
    assert np.isnan(of_numbers(np.array([np.nan]), 7.0, None, 1.0, inside=False)).all()
    assert np.isnan(of_classes(np.array([[np.nan, np.nan]]), 0)).all()


@pytest.mark.parametrize("target_outside", [False, True])
@pytest.mark.parametrize("limits", [(7, None), (None, 3), (5, 6)])
@pytest.mark.parametrize(
    "factory, options",
    [
        ("sklearn.neighbors:KNeighborsRegressor", {"n_neighbors": 1}),
        ("sklearn.tree:DecisionTreeRegressor", {}),
    ],
)
def test_a_rating_at_a_limit_is_in_the_range(factory, options, limits, target_outside):
    data = rated(*limits, target_outside)
    model: Any = fitted(ScikitLearn(Config(factory=factory, options=options)), data)
    rows = tried(model, data)
    predicted = model.estimator.predict(rows)
    expected = np.full(len(rows), True)
    if limits[0] is not None:
        expected &= predicted >= limits[0]
    if limits[1] is not None:
        expected &= predicted <= limits[1]
    assert np.isin(predicted, limits).sum() > 10
    names = np.array(data.predictions)[predicted_classes(model, rows)]
    inside, outside = data.table.number_range.inside, data.table.number_range.outside
    assert (names == np.where(expected, inside, outside)).all()


def test_a_predicted_share_at_a_threshold_of_the_data_is_in_the_range():
    """Shares of tenths, which binary numbers only approximate."""
    data = rated(0.6, None, factor=0.1)
    options = {"n_neighbors": 1}
    made = ScikitLearn(Config(factory="sklearn.neighbors:KNeighborsRegressor", options=options))
    model: Any = fitted(made, data)
    rows = tried(model, data)
    predicted = model.estimator.predict(rows)
    assert (np.abs(predicted - 0.6) < 1e-9).sum() > 10
    assert (predicted_classes(model, rows) == (predicted >= 0.6)).all()


TIED = [
    ("sklearn.neighbors:KNeighborsClassifier", {"n_neighbors": 2}),
    ("sklearn.tree:DecisionTreeClassifier", {"max_depth": 12, "min_samples_leaf": 2}),
    ("sklearn.ensemble:RandomForestClassifier", {"n_estimators": 2, "random_state": 0}),
]


@pytest.mark.parametrize("target", ["A", "B", "C"])
@pytest.mark.parametrize("factory, options", TIED)
def test_of_equally_probable_classes_the_estimators_own_prediction_decides(factory, options, target):
    data = graded(target)
    model: Any = fitted(ScikitLearn(Config(factory=factory, options=options, classes="all")), data)
    rows = tried(model, data)
    chances = model.estimator.predict_proba(rows)
    ties = (chances == chances.max(axis=1, keepdims=True)).sum(axis=1) > 1
    own = np.array(model.names)[model.estimator.predict(rows)]
    assert (ties & (chances[:, model.target_index] == chances.max(axis=1))).sum() > 5
    assert (model.predicted_names(rows) == own).all()
    assert (predicted_classes(model, rows) == (own == target)).all()
    before = np.delete(chances, model.target_index, axis=1).max(axis=1)
    clear = np.abs(chances[:, model.target_index] - before) > 1e-9
    share = chances[:, model.target_index] / (chances[:, model.target_index] + before)
    assert probabilities(model, rows)[clear, 1] == pytest.approx(share[clear], abs=1e-15)


@pytest.fixture
def pretrained(monkeypatch):
    """A factory of a module of one's own, which returns the estimator."""

    def named(estimator: Any) -> str:
        module = ModuleType("own_estimators")
        module.made = lambda: estimator
        monkeypatch.setitem(sys.modules, "own_estimators", module)
        return "own_estimators:made"

    return named


@pytest.mark.parametrize("classes", ["target", "all"])
@pytest.mark.parametrize("target", ["A", "C"])
@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(2),
        DecisionTreeClassifier(min_samples_leaf=2, random_state=0),
        RandomForestClassifier(2, random_state=0),
    ],
)
def test_a_pretrained_estimator_of_two_classes_decides_its_ties(estimator, target, classes, pretrained):
    data = graded(target)
    two = data.table.target != "B"
    # pairs of opposite rows, so that every estimator has rows at 50:50
    rows, names = data.vectors[two], data.table.target[two].astype(str)
    rows, names = (
        np.concatenate([rows, rows[:60]]),
        np.concatenate([names, np.where(names == "A", "C", "A")[:60]]),
    )
    factory = pretrained(estimator.fit(rows, names))
    model = fitted(ScikitLearn(Config(factory=factory, train=False, classes=classes)), data)
    tested = tried(model, data)
    assert (estimator.predict_proba(tested)[:, 0] == 0.5).sum() > 5
    assert (predicted_classes(model, tested) == (estimator.predict(tested) == target)).all()


@pytest.mark.parametrize("target", ["A", "C"])
def test_boosted_trees_with_log_odds_of_0_predict_their_second_class(target, pretrained):
    data = graded(target)
    rows = np.zeros((40, data.encoding.width))
    estimator = GradientBoostingClassifier(n_estimators=2).fit(rows, np.array(["A", "C"] * 20))
    assert (estimator.decision_function(data.vectors) == 0).all()
    model: Any = fitted(TreeEnsemble(TreesConfig(factory=pretrained(estimator), train=False)), data)
    assert (estimator.predict(data.vectors) == "C").all()
    assert (predicted_classes(model, data.vectors) == int(target == "C")).all()
    assert model.boundary_class == int(target == "C")


def test_an_estimator_of_three_classes_is_asked_for_more_than_half(pretrained):
    """``classes: target``: the target class or the rest, which is as probable at 50%."""
    data = graded("A")
    estimator = KNeighborsClassifier(2).fit(data.vectors, data.table.target.astype(str))
    model = fitted(ScikitLearn(Config(factory=pretrained(estimator), train=False)), data)
    one = estimator.predict_proba(data.vectors)[:, 0]
    assert (one == 0.5).any()
    assert (predicted_classes(model, data.vectors) == (one > 0.5)).all()


@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
def test_a_probability_at_the_decision_threshold_is_not_above_it(threshold):
    data = graded("A", threshold)
    options = {"n_neighbors": 10}
    made = ScikitLearn(
        Config(factory="sklearn.neighbors:KNeighborsClassifier", options=options, classes="all")
    )
    model: Any = fitted(made, data)
    decided: Any = DecisionThreshold(model, threshold)
    own = model.estimator.predict_proba(data.vectors)[:, model.target_index]
    assert (own == threshold).any()
    assert (predicted_classes(decided, data.vectors) == (own > threshold)).all()


@pytest.mark.parametrize("threshold", [0.2, 0.8])
def test_the_viewer_says_the_class_and_the_probability_of_the_model(threshold):
    """With a decision threshold: not the probability that explainers search with."""
    data = graded("A", threshold)
    made = ScikitLearn(Config(factory="sklearn.naive_bayes:GaussianNB", classes="all"))
    model: Any = fitted(made, data)
    decided: Any = DecisionThreshold(model, threshold)
    own = model.estimator.predict_proba(data.vectors)[:, model.target_index]
    between = np.flatnonzero((own > min(threshold, 0.5) + 0.02) & (own < max(threshold, 0.5) - 0.02))
    for row in between[:5]:
        chunk = SimpleNamespace(factuals=SimpleNamespace(vectors=data.vectors[[row]]))
        live: Any = SimpleNamespace(data=data, model=decided, chunk=chunk)
        verdict, grid, *_ = TabularViewer().respond(live, {})
        (_, shown), _ = verdict.items
        assert shown == data.predictions[int(own[row] > threshold)]
        assert grid.rows[0][1].text == f"{own[row]:.4f}"
    assert len(between)


def test_the_most_probable_of_three_classes_is_no_sum_of_trees():
    made = TreeEnsemble(TreesConfig(options={"n_estimators": 3}, classes="all"))
    with pytest.raises(UserError, match="the most probable of 3 classes is not a sum of trees"):
        fitted(made, graded("A"))
    model: Any = fitted(made, graded("A", 0.4))
    decided: Any = DecisionThreshold(model, 0.4)
    trees, offset = decided.ensemble()
    rows = graded("A").vectors
    own = model.estimator.predict_proba(rows)[:, model.target_index]
    clear = np.abs(own - 0.4) > 1e-9
    assert ((trees.total(rows) + offset > 0) == (own > 0.4))[clear].all()
    assert decided.boundary_class == 0
