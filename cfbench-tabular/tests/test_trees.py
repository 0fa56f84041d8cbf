"""Random forest and gradient boosting: their arrays against scikit-learn's own predictions."""

import time

import numpy as np
import pytest

from cfbench_tabular.classifiers import gradient_boosting, random_forest
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.testing import example_data, fitted

ensemble = pytest.importorskip("sklearn.ensemble")

FOREST = random_forest.RandomForest, random_forest.Config
BOOSTED = gradient_boosting.GradientBoosting, gradient_boosting.Config


def stump(threshold, low, high, first=0):
    """A tree of three nodes: ``low`` where column 0 is at most the threshold, else ``high``."""
    return {
        "feature": [0, 0, 0],
        "threshold": [threshold, -2.0, -2.0],
        "left": [first + 1, first + 1, first + 2],
        "right": [first + 2, first + 1, first + 2],
        "value": [9.0, low, high],
    }


def test_two_trees_by_hand():
    one, two = stump(0.0, 1.0, 2.0), stump(5.0, 10.0, 20.0, first=3)
    trees = Trees(np.array([0, 3]), *(np.array(one[name] + two[name]) for name in one))
    found = trees.total(np.array([[-1.0], [0.0], [1.0], [6.0]]))
    assert found.tolist() == [11.0, 11.0, 12.0, 22.0]


def test_a_tree_that_is_one_leaf():
    trees = Trees(
        np.array([0]), np.array([0]), np.array([0.0]), np.array([0]), np.array([0]), np.array([0.25])
    )
    assert trees.total(np.zeros((3, 2))).tolist() == [0.25] * 3


def scikit_learns(kind, vectors, labels, **options):
    """The estimator that ours trains, with the same stream."""
    state = int(np.random.default_rng(7).integers(2**31))
    return kind(random_state=state, **options).fit(vectors, labels)


@pytest.mark.parametrize("depth", [None, 1, 4])
def test_a_forest_predicts_what_scikit_learns_does(depth):
    data = example_data()
    model = random_forest.RandomForest(random_forest.Config(trees=30, depth=depth))
    model.fit(data, np.random.default_rng(7), lambda done, total: None)
    theirs = scikit_learns(
        ensemble.RandomForestClassifier,
        *data.sample("train"),
        n_estimators=30,
        max_depth=depth,
        max_features=0.3,
    )
    check(model, theirs, data)


@pytest.mark.parametrize("rows", [1.0, 0.6])
def test_boosted_trees_predict_what_scikit_learns_do(rows):
    data = example_data()
    model = gradient_boosting.GradientBoosting(gradient_boosting.Config(trees=40, rows=rows))
    model.fit(data, np.random.default_rng(7), lambda done, total: None)
    theirs = scikit_learns(
        ensemble.GradientBoostingClassifier, *data.sample("train"), n_estimators=40, subsample=rows
    )
    check(model, theirs, data)


def check(model, theirs, data):
    """On rows, between rows, and where 32 and 64 bits fall on different sides of a threshold."""
    draw = np.random.default_rng(0)
    rows = data.vectors
    mixed = rows[draw.integers(len(rows), size=500)]
    thresholds = model.trees.threshold[draw.integers(len(model.trees.threshold), size=(200, rows.shape[1]))]
    for vectors in (rows, mixed + draw.normal(0, 0.3, mixed.shape), thresholds, thresholds + 1e-9):
        assert np.abs(model.predict_proba(vectors) - theirs.predict_proba(vectors)).max() < 1e-12


@pytest.mark.parametrize(("implementation", "config"), [FOREST, BOOSTED])
def test_a_block_of_rows_is_as_good_as_one(implementation, config, monkeypatch):
    data = example_data()
    model = fitted(implementation(config()), data)
    whole = model.predict_proba(data.vectors)
    monkeypatch.setattr("cfbench_tabular.classifiers.trees.AT_ONCE", 700)
    assert np.array_equal(model.predict_proba(data.vectors), whole)
    assert np.array_equal(np.concatenate([model.predict_proba(row[None]) for row in data.vectors]), whole)


@pytest.mark.parametrize(("implementation", "config"), [FOREST, BOOSTED])
def test_tens_of_thousands_of_rows_take_seconds(implementation, config):
    data = example_data()
    model = fitted(implementation(config()), data)
    vectors = np.random.default_rng(0).normal(size=(20_000, data.encoding.width))
    started = time.perf_counter()
    predicted_classes(model, vectors)
    assert time.perf_counter() - started < 5.0
