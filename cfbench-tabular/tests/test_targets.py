"""Class to class, decision thresholds and ranges of numbers: the binary question has the answer of the real one."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core import api
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.gradient_boosting import Config as BoostingConfig
from cfbench_tabular.classifiers.gradient_boosting import GradientBoosting
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.classifiers.random_forest import Config as ForestConfig
from cfbench_tabular.classifiers.random_forest import RandomForest
from cfbench_tabular.classifiers.scikit_learn import Config, ScikitLearn
from cfbench_tabular.classifiers.targets import DecisionThreshold, of_classes, of_numbers
from cfbench_tabular.number_range import NumberRange
from cfbench_tabular.schema import Schema
from cfbench_tabular.testing import example_data, fitted

HOUSES = "area,rooms,city,price\n" + "".join(
    f"{area},{1 + area // 40},{city},{2000 * area + (60000 if city == 'Ulm' else 0)}\n"
    for area, city in zip(range(30, 180, 2), ["Ulm", "Bonn", "Bonn"] * 25, strict=True)
)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), wanted=st.integers(0, 3))
def test_of_several_classes_the_wanted_one_is_predicted_where_it_is_the_most_probable(seed, wanted):
    probabilities = np.random.default_rng(seed).dirichlet(np.ones(4), size=20)
    found = of_classes(probabilities, wanted)
    assert found.sum(axis=1) == pytest.approx(np.ones(20))
    assert ((found[:, 1] > found[:, 0]) == (probabilities.argmax(axis=1) == wanted)).all()


def test_of_two_classes_the_probability_is_that_of_the_class():
    probabilities = np.array([[0.2, 0.8], [1.0, 0.0]])
    assert of_classes(probabilities, 1) == pytest.approx(probabilities)


@settings(max_examples=100, deadline=None)
@given(
    low=st.none() | st.floats(-5, 0),
    high=st.none() | st.floats(1, 5),
    values=st.lists(st.floats(-9, 9), min_size=1, max_size=9),
)
def test_numbers_in_the_range_are_class_one(low, high, values):
    numbers = np.array(values)
    found = of_numbers(numbers, low, high, 2.0)
    inside = NumberRange(low, high).contains(numbers)
    room = np.minimum(
        numbers - (-np.inf if low is None else low), (np.inf if high is None else high) - numbers
    )
    away = np.abs(room) > 1e-9
    assert ((found[:, 1] > found[:, 0]) == inside)[away].all()


@pytest.mark.parametrize("threshold", [0.4, 0.6])
@pytest.mark.parametrize(
    "made",
    [
        LogisticRegression(LogisticConfig()),
        RandomForest(ForestConfig(trees=9, depth=3)),
        GradientBoosting(BoostingConfig(trees=9)),
    ],
)
def test_a_decision_threshold_moves_the_boundary_of_predictions_gradients_layers_and_trees(made, threshold):
    data = example_data()
    model = fitted(made, data)
    decided: Any = DecisionThreshold(model, threshold)
    rows = np.random.default_rng(0).normal(size=(200, data.encoding.width))
    before, after = model.predict_proba(rows)[:, 1], decided.predict_proba(rows)
    expected = before > threshold
    assert after.sum(axis=1) == pytest.approx(np.ones(200))
    assert ((after[:, 1] > after[:, 0]) == expected).all() and expected.any() and not expected.all()
    if hasattr(decided, "layers"):
        ((weights, biases),) = decided.layers()
        logits = rows @ weights + biases
        assert ((logits[:, 1] > logits[:, 0]) == expected).all()
        assert decided.log_odds_gradient(rows) == pytest.approx(model.log_odds_gradient(rows))
    if hasattr(model, "ensemble"):
        trees, offset = decided.ensemble()
        assert ((trees.total(rows) + offset > 1e-12) == expected).all()


def test_an_estimator_of_all_classes_predicts_the_target_where_it_is_the_most_probable():
    data = wine()
    model = fitted(ScikitLearn(Config(factory="sklearn.naive_bayes:GaussianNB", classes="all")), data)
    names = model.predicted_names(data.vectors)
    own = model.estimator.predict_proba(data.vectors)
    order = np.unique(data.table.target)
    assert (names == order[own.argmax(axis=1)]).all()
    found = model.predict_proba(data.vectors)
    assert ((found[:, 1] > found[:, 0]) == (names == "class_0")).all()


def wine() -> Any:
    from cfbench_tabular.datasets.wine import Config as WineConfig
    from cfbench_tabular.datasets.wine import Wine
    from cfbench_tabular.prepared_dataset import PreparedDataset

    table = replace(Wine(WineConfig()).load(), target_class="class_0")
    return PreparedDataset.make(table, 0.2, 0.2, generator("tabular", "split", 0))


def run(tmp_path: Any, data: Any, classifiers: Any, **protocol: Any) -> Any:
    document = {
        "suite": "tabular",
        "data": data,
        "classifiers": classifiers,
        "explainers": ["nice", "growing-spheres"],
        "protocol": {"factuals": 4, **protocol},
        "metrics": ["validity", "feasibility", "l2"],
    }
    return api.run(document, out=tmp_path / "run")


ALL = {"name": "scikit-learn", "factory": "sklearn.linear_model:LogisticRegression", "classes": "all"}


def test_from_one_class_to_another(tmp_path):
    data = {"name": "wine", "target": "class_0", "factual_class": "class_2"}
    found = run(tmp_path, data, [ALL, "random-forest"])
    explanations = found.explanations
    assert set(explanations["factual_class"]) == {"class_2"} and set(explanations["wanted_class"]) == {
        "class_0"
    }
    assert (found.scores.query("metric == 'validity'")["value"] == 1).all()
    assert "needs a model of all classes" in str(
        found.plan.skipped if hasattr(found.plan, "skipped") else found.plan
    )


def test_with_a_decision_threshold_the_sentence_says_the_probability(tmp_path):
    found = run(
        tmp_path, {"name": "wine", "target": "class_0"}, ["logistic-regression"], decision_threshold=0.9
    )
    assert set(found.explanations["wanted_class"]) == {
        "class_0 with a probability of at most 90%",
        "class_0 with a probability above 90%",
    }


def test_a_regressor_is_explained_up_to_a_range_of_numbers(tmp_path):
    file = tmp_path / "houses.csv"
    file.write_text(HOUSES)
    data = {"name": "csv", "file": str(file), "class_column": "price", "target_range": [200000, None]}
    regressor = {
        "name": "scikit-learn",
        "factory": "sklearn.linear_model:LinearRegression",
        "label": "linear",
    }
    found = run(tmp_path, data, [regressor])
    assert (found.scores.query("metric == 'feasible'")["value"] == 1).all()
    assert set(found.explanations["wanted_class"]) == {"at least 200,000", "below 200,000"}
    from cfbench_tabular.verbalization import best_explanation

    sentence = best_explanation(found)
    assert "the price that linear predicts is" in sentence and "200,000" in sentence


def test_bad_targets_are_one_clear_line(tmp_path):
    with pytest.raises(UserError, match=r"factual_class and target are both 'class_0'"):
        run(tmp_path, {"name": "wine", "target": "class_0", "factual_class": "class_0"}, [ALL])
    for wrong in ((3.0, 2.0), (None, None)):
        with pytest.raises(ValueError, match="target_range must have a lower limit below the upper one"):
            Schema(target_range=wrong)
    with pytest.raises(ValueError, match="threshold and target_range exclude each other"):
        Schema(threshold=1.0, target_range=(1.0, 2.0))
    regressor = ScikitLearn(Config(factory="sklearn.linear_model:LinearRegression"))
    with pytest.raises(UserError, match="needs a class column of numbers"):
        fitted(regressor, example_data())


def test_the_commands_of_the_how_to_work_as_printed(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "choose-the-target.md").read_text("utf-8")
    for title, content in re.findall(r'```csv title="(.*?)"\n(.*?)```', text, flags=re.DOTALL):
        (tmp_path / title).write_text(content)
    environment = {**os.environ, "CFBENCH_CACHE_DIR": str(tmp_path / "cache")}
    commands = re.findall(r"^\$ cfbench (.*)$", text, flags=re.MULTILINE)
    assert len(commands) == 8
    outputs = {}
    for command in commands:
        program = [str(Path(sys.executable).parent / "cfbench"), *shlex.split(command)]
        done = subprocess.run(
            program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        outputs[command] = " ".join(done.stdout.split())  # sentences are folded
    assert "it would count as class_0" in outputs["explain runs/pair"]
    assert "with a probability above 90%" in outputs["explain runs/sure"]
    assert "the price that regression predicts is" in outputs["explain runs/price"]
