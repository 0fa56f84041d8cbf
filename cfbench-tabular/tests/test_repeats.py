"""``protocol.repeats``: everything once more with another seed, for what lives on it."""

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
    "protocol": {"factuals": 6, "repeats": True},
    "executor": "inline",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def test_counterfactuals_are_compared_with_those_of_the_second_call(tmp_path):
    run = cfbench_core.run(STUDY, out=tmp_path / "run")
    mean = run.summary.set_index(["explainer", "metric"])["mean"]
    assert mean["nearest-enemy", "stability"] == 1.0
    assert mean["growing-spheres", "stability"] < 0.5
    # Logistic regression has one optimum: a second one is the same, and returns nothing.
    assert np.isnan(mean["nearest-enemy", "retraining"])


def test_metrics_that_need_a_protocol_option_are_left_out_without_it():
    once = {**STUDY, "protocol": {"factuals": 6}}
    measured = {column.name for column in api.plan(once).cells[0].columns}
    assert not measured & {"stability", "retraining", "#distinct"}
    assert {"MADD", "MD", "LOF", "connected", "robustness", "actionable"} <= measured
    twice = {column.name for column in api.plan(STUDY).cells[0].columns}
    assert twice - measured == {"stability", "retraining"}
    several = {**STUDY, "protocol": {"counterfactuals_per_instance": 3}}
    measured = {column.name for column in api.plan(several).cells[0].columns}
    assert {"#distinct", "diversity", "column diversity"} <= measured


@pytest.mark.parametrize(
    ("metric", "line"),
    [
        ("stability", "metric stability needs protocol.repeats, which is false here"),
        ("diversity", "metric diversity needs protocol.counterfactuals_per_instance, which is 1 here"),
    ],
)
def test_a_metric_without_its_protocol_option_names_the_option(metric, line):
    with pytest.raises(UserError) as error:
        api.plan({**STUDY, "protocol": {}, "metrics": ["validity", metric]})
    assert line in str(error.value)
