"""Trees that are read from estimators of other libraries decide as the estimators do."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.tree_ensemble import Config, TreeEnsemble, read_trees
from cfbench_tabular.testing import example_data


def made(kind, seed):
    if kind == "xgboost":
        xgboost = pytest.importorskip("xgboost", reason="the library is not installed (pip install xgboost)")
        return xgboost.XGBClassifier(n_estimators=20, max_depth=4, random_state=seed)
    sizes = {"n_estimators": 20, "max_depth": 5}
    return {
        "tree": DecisionTreeClassifier(max_depth=6, random_state=seed),
        "forest": RandomForestClassifier(**sizes, random_state=seed),
        "extra": ExtraTreesClassifier(**sizes, random_state=seed),
        "boosted": GradientBoostingClassifier(**sizes, random_state=seed),
    }[kind]


def sample(seed, classes=2):
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(400, 5)).round(1)
    score = rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.3 * draw.normal(size=400)
    return rows, np.digitize(score, [0.0] if classes == 2 else [-0.5, 0.5])


@pytest.mark.parametrize("kind", ["tree", "forest", "extra", "boosted", "xgboost"])
@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_the_sum_of_the_trees_is_positive_where_the_class_is_predicted(kind, target, seed):
    rows, labels = sample(seed)
    estimator = made(kind, seed).fit(rows, labels)
    trees, offset = read_trees(estimator, target, rows[:1])
    tried = np.concatenate([rows, np.random.default_rng(seed).normal(size=(3000, 5)).round(1)])
    chance = estimator.predict_proba(tried)[:, target]
    sums = trees.total(tried) + offset
    clear = np.abs(chance - 0.5) > 1e-6
    assert clear.mean() > 0.9
    assert np.array_equal((sums > 0)[clear], (chance > 0.5)[clear])
    if kind in ("boosted", "xgboost"):
        assert sums == pytest.approx(np.log(chance / (1 - chance)), abs=1e-4)
    else:
        count = len(getattr(estimator, "estimators_", [0]))
        assert sums / count + 0.5 == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize("target", range(3))
def test_a_forest_of_three_classes_is_asked_for_one_of_them(target):
    rows, labels = sample(0, classes=3)
    estimator = made("forest", 0).fit(rows, labels)
    trees, offset = read_trees(estimator, target, rows[:1])
    chance = estimator.predict_proba(rows)[:, target]
    assert trees.total(rows) + offset == pytest.approx(20 * (chance - 0.5), abs=1e-9)


def test_what_cannot_be_read_is_refused():
    rows, labels = sample(0)
    with pytest.raises(UserError, match="LogisticRegression is no tree ensemble that can be read"):
        read_trees(LogisticRegression().fit(rows, labels), 1, rows[:1])
    rows, labels = sample(0, classes=3)
    with pytest.raises(
        UserError, match="GradientBoostingClassifier has 3 classes; boosted trees must have 2"
    ):
        read_trees(made("boosted", 0).fit(rows, labels), 1, rows[:1])
    with pytest.raises(UserError, match="columns: must be encoded"):
        Config(columns="raw")


@pytest.mark.parametrize("factory", ["RandomForestClassifier", "GradientBoostingClassifier"])
def test_the_classifier_has_the_trees_of_its_estimator(factory):
    pytest.importorskip("ortools", reason="tree-optimum needs cfbench-tabular[trees]")
    from cfbench_tabular.explainers.tree_optimum import Config as OptimumConfig
    from cfbench_tabular.explainers.tree_optimum import TreeOptimum
    from cfbench_tabular.testing import context_of, factuals_of

    data = example_data()
    model = TreeEnsemble(
        Config(factory=f"sklearn.ensemble:{factory}", options={"n_estimators": 5, "max_depth": 3})
    )
    model.fit(data, generator("test"), lambda done, total: None)
    factuals, context = factuals_of(model, data, slice(0, 5)), context_of(data)
    found = TreeOptimum(OptimumConfig()).counterfactuals(model, factuals, context)
    given = ~np.isnan(found.counterfactuals[:, 0])
    assert given.any()
    flipped = model.predict_proba(found.counterfactuals[given])[:, 1] > 0.5
    assert (flipped != (factuals.classes[given] == 1)).all()
    assert found.details["proven"].tolist() == [1.0] * 5
