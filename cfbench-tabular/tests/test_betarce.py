"""BetaRCE against closed forms and its guarantee, and the models that are trained again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import cfbench_core
from cfbench_core import api
from cfbench_core.errors import UserError
from cfbench_tabular.classifiers.retrained import bootstrapped, collected_state, resampled, separated_states
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.betarce import BetaRCE, Config, robustness_bound
from cfbench_tabular.metrics.retraining import Config as MetricConfig
from cfbench_tabular.metrics.retraining import Retraining

STUDY = {
    "suite": "tabular",
    "data": ["iris"],
    "classifiers": ["mlp"],
    "explainers": ["nearest-enemy", {"name": "betarce", "base": "nearest-enemy"}],
    "metrics": ["validity", "coverage", "retraining"],
    "protocol": {"factuals": 10, "retrained_models": 20},
    "executor": "inline",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@given(st.integers(1, 200), st.integers(0, 200), st.floats(0.01, 0.99))
@settings(max_examples=60, deadline=None)
def test_the_bound_is_a_quantile_of_the_posterior(models, agreeing, alpha):
    agreeing = min(agreeing, models)
    posterior = stats.beta(0.5 + agreeing, 0.5 + models - agreeing)
    bound = float(robustness_bound(agreeing, models, alpha))
    assert bound == pytest.approx(float(posterior.ppf(1 - alpha)), abs=1e-9)
    assert float(posterior.sf(bound)) == pytest.approx(alpha, abs=1e-6)


def test_settings_that_no_agreement_can_show_are_refused():
    with pytest.raises(
        ValueError, match=r"5 models cannot show delta 0.9 with confidence 0.9: .* use more models"
    ):
        Config(models=5)
    with pytest.raises(ValueError, match="changes must name at least one"):
        Config(changes=())
    Config(models=13)


def thresholds(linear, generator, count):
    """Models of one number that predict class 1 above a threshold, which is normal."""
    return [linear([1.0], -threshold) for threshold in generator.normal(0.0, 1.0, count)]


def moved(linear, numbers, config, seed=0, start=0.2):
    """The answer for the factual -1, whose base counterfactual is the training row ``start``, and the models."""
    encoding, models = numbers(1), thresholds(linear, np.random.default_rng(seed), config.models)
    context = Context(
        encoding,
        np.array([[-1.0], [start]]),
        lambda unit: np.random.default_rng([seed, len(unit)]),
        retrained=models,
    )
    factuals = Factuals(np.array([[-1.0]]), np.array([0]), ("0",))
    return BetaRCE(config).counterfactuals(linear([1.0]), factuals, context), models


NEAREST = {
    "component": "tabular/explainer/nearest-enemy",
    "target": "cfbench_tabular.explainers.nearest_enemy:NearestEnemy",
    "config": "cfbench_tabular.explainers.nearest_enemy:Config",
    "options": {},
    "files": {},
}
"""As a worker receives the base explainer."""


@pytest.mark.parametrize("delta", [0.6, 0.8, 0.9])
def test_the_answer_is_the_nearest_robust_point(linear, numbers, delta):
    """With thresholds t, a number is robust exactly from the m-th smallest t on, m being the votes that are needed."""
    config = Config(base=NEAREST, delta=delta, samples=200, radius=0.01, layers=500)
    explanation, models = moved(linear, numbers, config)
    votes = np.arange(config.models + 1)
    needed = votes[stats.beta.ppf(0.1, 0.5 + votes, 0.5 + config.models - votes) > delta][0]
    exact = np.sort([-model.intercept for model in models])[needed - 1]
    found = float(explanation.counterfactuals[0, 0])
    assert exact < found < exact + 0.02
    assert explanation.details["distance to base"][0] == pytest.approx(found - 0.2)
    assert explanation.details["robustness"][0] > delta > explanation.details["robustness of base"][0]


def test_a_robust_counterfactual_stays(linear, numbers):
    explanation, _ = moved(linear, numbers, Config(base=NEAREST), start=6.0)
    assert explanation.counterfactuals[0, 0] == 6.0
    assert explanation.details["distance to base"][0] == 0.0


def test_without_a_robust_point_there_is_no_counterfactual(linear, numbers):
    explanation, _ = moved(linear, numbers, Config(base=NEAREST, layers=3))
    assert np.isnan(explanation.counterfactuals).all()


@pytest.mark.slow
def test_the_guarantee_holds_for_fresh_models(linear, numbers):
    """In at least alpha of the cases a fresh model agrees with probability above delta: Phi(x) for a normal threshold."""
    config = Config(base=NEAREST, delta=0.8, alpha=0.9, samples=50, radius=0.05, layers=200)
    answers = [moved(linear, numbers, config, seed)[0].counterfactuals[0, 0] for seed in range(200)]
    held = np.mean(stats.norm.cdf(answers) > 0.8)
    assert held >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / 200)


def test_too_few_models_are_an_error(linear, numbers):
    context = Context(numbers(1), np.array([[1.0]]), lambda unit: np.random.default_rng(0))
    factuals = Factuals(np.array([[-1.0]]), np.array([0]), ("0",))
    with pytest.raises(UserError, match="betarce needs 32 retrained models, got 0"):
        BetaRCE(Config()).counterfactuals(linear([1.0]), factuals, context)


def test_the_metric_is_the_share_of_models_that_agree(make_observed, linear):
    observed = make_observed(
        [[-1.0], [-1.0], [-1.0]],
        [[3.0], [1.0], [np.nan]],
        model=linear([1.0]),
        retrained=(linear([1.0], -2.0), linear([1.0]), linear([1.0], -0.5)),
    )
    values = Retraining(MetricConfig()).compute(observed)["retraining"]
    assert np.allclose(values, [1.0, 2 / 3, np.nan], equal_nan=True)


def test_a_bootstrap_sample_has_both_classes_and_shares_the_vectors(study_like):
    sample = bootstrapped(study_like, np.random.default_rng(0))
    rows = study_like.rows("train")
    drawn = sample.rows("train")
    assert len(drawn) == len(rows) and set(drawn) <= set(rows) and len(set(drawn)) < len(rows)
    assert sample.vectors is study_like.vectors
    assert np.array_equal(sample.rows("test"), study_like.rows("test"))
    rare = resampled(
        study_like, np.append(rows[study_like.labels[rows] == 0][:40], rows[study_like.labels[rows] == 1][:1])
    )
    for seed in range(20):
        assert set(rare.labels[bootstrapped(rare, np.random.default_rng(seed)).rows("train")]) == {0, 1}


def test_states_are_joined_and_separated():
    states = [({"w": np.arange(3), "w/2": np.eye(2)}, np.array([1, 1])), ({"w": np.ones(2)}, np.array([4]))]
    for (state, rows), (found, own) in zip(states, separated_states(collected_state(states)), strict=True):
        assert np.array_equal(rows, own) and state.keys() == found.keys()
        assert all(np.array_equal(state[name], found[name]) for name in state)


@pytest.fixture
def study_like():
    from cfbench_tabular.testing.example import example_data

    return example_data()


def test_a_run_trains_other_models_for_the_metric_than_for_the_explainer(tmp_path):
    run = cfbench_core.run(STUDY, out=tmp_path / "run")
    means = run.summary.set_index(["explainer", "metric"])["mean"]
    assert means["betarce-nearest-enemy", "validity"] == 1.0
    assert means["betarce-nearest-enemy", "retraining"] > max(0.9, means["nearest-enemy", "retraining"])
    stages = {
        (stage.kind, stage.parameters["purpose"], stage.parameters["count"])
        for cell in api.plan(STUDY).cells
        for stage in cell.stages.values()
        if stage.kind == "retrained"
    }
    assert stages == {("retrained", "explain", 32), ("retrained", "score", 20)}


def test_given_weights_cannot_be_trained_again(tmp_path):
    draw = np.random.default_rng(0)
    weights = {"W1": (4, 3), "b1": 3, "W2": (3, 2), "b2": 2}
    np.savez(tmp_path / "given.npz", **{name: draw.normal(size=size) for name, size in weights.items()})
    given = {"name": "mlp", "label": "given", "weights": str(tmp_path / "given.npz")}
    cells = api.plan({**STUDY, "classifiers": ["mlp", given]}).cells
    own = {cell.labels["explainer"]: cell for cell in cells if cell.labels["model"] == "given"}
    reason = "needs a model that can be trained again, but the weights of given are given"
    assert reason in own["betarce-nearest-enemy"].skipped
    assert not own["nearest-enemy"].skipped
    assert "retraining" not in {column.name for column in own["nearest-enemy"].columns}
    assert not any(stage.kind == "retrained" for stage in own["nearest-enemy"].stages.values())


def test_the_base_explainer_stands_in_the_configuration_and_in_the_key(tmp_path):
    def key(base):
        document = {**STUDY, "explainers": [{"name": "betarce", "label": "b", "base": base}]}
        return api.plan(document).cells[0].stages["explanations"].key

    assert (
        len({key("nice"), key("nearest-enemy"), key({"name": "nearest-enemy", "constraints": "ignore"})}) == 3
    )
    assert key("nice") == key({"name": "nice"})
    with pytest.raises(UserError, match=r"explainers\[0\].base.*nearest-enemy"):
        key("nearest-enmy")
