"""``protocol.again``: everything once more with another seed, for what lives on it."""

from __future__ import annotations

import numpy as np
import pytest

import cfbench_core
from cfbench_core import api
from cfbench_core.errors import UserError

STUDY = {
    "suite": "tabular",
    "data": ["iris"],
    "classifiers": ["logistic-regression"],
    "explainers": ["nearest-enemy", {"name": "growing-spheres", "samples": 50}],
    "protocol": {"factuals": 6, "again": True},
    "executor": "inline",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def test_answers_are_compared_with_second_ones_and_not_with_themselves(tmp_path):
    run = cfbench_core.run(STUDY, out=tmp_path / "run")
    mean = run.summary.set_index(["explainer", "metric"])["mean"]
    assert mean["nearest-enemy", "stability"] == 1.0
    assert mean["growing-spheres", "stability"] < 0.5
    # Logistic regression has one optimum: a second one is the same, and says nothing.
    assert np.isnan(mean["nearest-enemy", "retraining"])


def test_metrics_that_live_on_it_are_left_out_without_it():
    once = {**STUDY, "protocol": {"factuals": 6}}
    measured = {column.name for column in api.plan(once).cells[0].columns}
    assert not measured & {"stability", "retraining", "#answers"}
    assert {"MADD", "MD", "LOF", "connected", "robustness", "actionable"} <= measured
    twice = {column.name for column in api.plan(STUDY).cells[0].columns}
    assert twice - measured == {"stability", "retraining"}
    several = {**STUDY, "protocol": {"answers": 3}}
    measured = {column.name for column in api.plan(several).cells[0].columns}
    assert {"#answers", "diversity", "column diversity"} <= measured


@pytest.mark.parametrize(
    ("metric", "line"),
    [
        ("stability", "metric stability needs protocol.again, which is false here"),
        ("diversity", "metric diversity needs protocol.answers, which is 1 here"),
    ],
)
def test_asked_for_without_it_they_say_what_they_need(metric, line):
    with pytest.raises(UserError) as error:
        api.plan({**STUDY, "protocol": {}, "metrics": ["coverage", metric]})
    assert line in str(error.value)
