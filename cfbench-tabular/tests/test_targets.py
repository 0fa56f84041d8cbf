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
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core import api
from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.run_directory import Run
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
        "executor": "inline",
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


LOANS = "income,debt,years,decision\n" + "".join(
    f"{income},{debt},{years},{'accepted' if score > 7 else 'review' if score > 2 else 'rejected'}\n"
    for at, (income, debt) in enumerate((i, d) for i in range(1, 13) for d in range(0, 9))
    for years in [at % 5]
    for score in [income - debt + years / 2]
)


@pytest.mark.slow
def test_from_one_class_to_another_above_a_probability_the_sentence_says_both(tmp_path, monkeypatch, capsys):
    """From the file to the sentence; what it says is checked with the estimator itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "loans.csv").write_text(LOANS)
    assert main(["init", "--csv", "loans.csv", "loans.yaml"]) == 0
    text = (tmp_path / "loans.yaml").read_text()
    target = next(line for line in text.splitlines() if line.strip().startswith("target:"))
    document = yaml.safe_load(text.replace(target, "    target: accepted\n    factual_class: rejected"))
    document |= {"classifiers": [ALL | {"label": "scoring"}], "explainers": ["nice", "growing-spheres"]}
    document["protocol"] = {"factuals": 4, "decision_threshold": 0.8}
    (tmp_path / "loans.yaml").write_text(yaml.safe_dump(document))
    assert main(["run", "loans.yaml", "--output", "out", "--quiet", "--executor", "inline"]) == 0
    capsys.readouterr()
    assert main(["explain", "out"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    sentence = re.search(
        r"row (\d+) of loans counts as rejected for scoring; with (.*?), the probability of accepted would be above 80%",
        shown,
    )
    assert sentence, shown
    found = Run(tmp_path / "out")
    explanations = found.explanations
    assert set(explanations["factual_class"]) == {"rejected"}
    assert set(explanations["wanted_class"]) == {"accepted with a probability above 80%"}
    table = pd.read_csv(tmp_path / "loans.csv")
    model, rows = estimator_of(table, tmp_path / "cache"), table.drop(columns="decision")
    order = list(model.classes_)
    for (_, _, unit), part in explanations.groupby(["cell", "explainer", "unit"]):
        factual = rows.loc[[int(unit)]].astype(float)
        after = factual.copy()
        for column, value in zip(part["column"], part["value"], strict=True):
            after[column] = float(value)
        before = model.predict_proba(factual.to_numpy())[0]
        assert order[before.argmax()] == "rejected"
        assert model.predict_proba(after.to_numpy())[0][order.index("accepted")] > 0.8
    valid = found.scores.query("metric == 'validity'")["value"]
    assert len(valid) and (valid == 1).all()


def estimator_of(table, cache):
    """The estimator of the run, trained again on its training rows with the library alone; raw numbers in."""
    from sklearn.linear_model import LogisticRegression as Library
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    split = pd.read_parquet(next(cache.glob("**/rows.parquet")))
    train = table.loc[split.loc[split["split"] == "train", "row"]]
    inputs = train.drop(columns="decision").to_numpy(dtype=float)
    return make_pipeline(StandardScaler(), Library()).fit(inputs, train["decision"])


def test_a_target_above_a_probability_is_not_the_ratio_to_the_best_other_class():
    """Of 0.5, 0.3 and 0.2 the probability is 0.5, not 0.5 / 0.8."""
    data = replace(wine(), decision_threshold=0.6)
    estimator = ScikitLearn(Config(factory="sklearn.naive_bayes:GaussianNB", classes="all"))
    model = fitted(estimator, data)
    decided: Any = DecisionThreshold(model, 0.6)
    rows = np.random.default_rng(0).normal(size=(500, data.encoding.width))
    own = model.estimator.predict_proba(rows)[:, model.target_index]
    found = decided.predict_proba(rows)
    assert ((found[:, 1] > found[:, 0]) == (own > 0.6)).all()


def test_a_regressor_with_a_decision_threshold_is_refused():
    data = replace(wine(), decision_threshold=0.9)
    numbers = np.arange(len(data.table), dtype=float)
    table = replace(data.table, numbers=numbers, number_range=NumberRange(10.0, None))
    with pytest.raises(UserError, match=r"predicts numbers, not probabilities: protocol\.decision_threshold"):
        fitted(
            ScikitLearn(Config(factory="sklearn.linear_model:LinearRegression")), replace(data, table=table)
        )


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


@pytest.mark.slow
def test_the_commands_of_the_how_to_work_as_printed(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "choose-the-target.md").read_text("utf-8")
    for title, content in re.findall(r'```csv title="(.*?)"\n(.*?)```', text, flags=re.DOTALL):
        (tmp_path / title).write_text(content)
    environment = {**os.environ, "CFBENCH_CACHE_DIR": str(tmp_path / "cache")}
    commands = re.findall(r"^\$ cfbench (.*)$", text, flags=re.MULTILINE)
    assert len(commands) == 10
    outputs = {}
    for command in commands:
        program = [str(Path(sys.executable).parent / "cfbench"), *shlex.split(command)]
        done = subprocess.run(
            program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        outputs[command] = " ".join(done.stdout.split())  # sentences are folded
    assert "it would count as class_0" in outputs["explain runs/pair"]
    assert "the probability of class_0, as" in outputs["explain runs/sure"]
    assert "the probability of class_0 would be above 90%" in outputs["explain runs/sure-pair"]
    assert "the price that regression predicts is" in outputs["explain runs/price"]
