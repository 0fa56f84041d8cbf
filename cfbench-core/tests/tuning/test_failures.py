"""Searches that fail in part or whole, and what cannot be tuned."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from toy_searches import study

from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
from cfbench_core.tuning.search import open_search, tune


def test_no_trial_is_begun_when_the_time_is_over(registry: Registry) -> None:
    slow = study(models={"name": "times", "pause": 0.2})
    tuned = tune(slow, component="times", trials=50, timeout=0.5, out="tuned.yaml", registry=registry)
    assert 1 <= len(tuned.trials) <= 4
    none = tune(slow, component="digits", trials=50, timeout=0.0, out="none.yaml", registry=registry)
    assert none.trials == () and none.best is None and not Path("none.yaml").exists()


@pytest.mark.slow
def test_a_trial_that_takes_too_long_has_failed_and_the_search_continues(registry: Registry) -> None:
    limited = study(
        models={"name": "times", "pause": 1.5}, executor="process", workers=1, limits={"seconds": 0.5}
    )
    tuned = tune(limited, component="times", trials=2, out="tuned.yaml", registry=registry)
    assert [trial.status for trial in tuned.trials] == ["timeout", "timeout"]
    assert tuned.best is None and tuned.options == {} and not Path("tuned.yaml").exists()
    assert tuned.verbalize() == "validation closeness: all 2 trials failed"


def test_the_traceback_of_a_failed_trial_is_stored(registry: Registry) -> None:
    tune(
        study(models={"name": "times", "factor": 40}),
        component="times",
        trials=1,
        out="tuned.yaml",
        registry=registry,
    )
    assert "it diverged" in Path("tuned.trials/logs/trial-0000.txt").read_text()


def test_a_metric_that_nobody_reports_fails_every_trial_with_the_reason(registry: Registry) -> None:
    tuned = tune(study(), component="times", trials=1, metric="beauty", out="tuned.yaml", registry=registry)
    assert tuned.trials[0].reason == "times reports no fit validation beauty: it cannot be judged by it"
    tuned = tune(study(), component="digits", trials=1, metric="beauty", out="other.yaml", registry=registry)
    assert tuned.trials[0].reason == "scores: no unit has a value of beauty"


def test_what_all_trials_share_ends_the_search_when_it_fails(registry: Registry) -> None:
    broken = study(models={"name": "times", "factor": 40})
    with pytest.raises(UserError, match="what all trials share cannot be computed: it diverged"):
        tune(broken, component="digits", out="tuned.yaml", registry=registry)


@pytest.mark.parametrize(
    ("changes", "component", "said"),
    [
        ({}, "recommender/tims", "is not in the configuration. Did you mean 'recommender/times'?"),
        (
            {},
            "explainer/times",
            "It has dataset/numbers, recommender/times, explainer/digits; others are put in",
        ),
        (
            {"explainers": [{"name": "digits", "label": "a"}, {"name": "digits", "label": "b"}]},
            "digits",
            "is ambiguous; it may be explainer/a, explainer/b",
        ),
        ({}, "numbers", "toy/dataset/numbers cannot be tuned: none of its options that apply here"),
        ({"explainers": ["plain"]}, "plain", "toy/explainer/plain cannot be tuned: none of its options"),
    ],
)
def test_what_cannot_be_tuned_is_an_error(
    registry: Registry, changes: dict[str, Any], component: str, said: str
) -> None:
    with pytest.raises(UserError, match=f".*{said}"):
        open_search(study(**changes), component=component, registry=registry)


def test_the_label_of_one_is_not_mistaken_for_the_name_of_another(registry: Registry) -> None:
    two = study(explainers=["digits", {"name": "digits", "label": "other"}])
    assert open_search(two, component="digits", registry=registry).place == 0
    assert open_search(two, component="explainer/other", registry=registry).place == 1


def test_a_label_may_look_like_a_path(registry: Registry) -> None:
    search = open_search(
        study(explainers=[{"name": "digits", "label": "a/b"}]), component="explainer/a/b", registry=registry
    )
    assert search.component == "explainer/a/b" and search.out == Path("tuned-a-b.yaml")


def test_without_optuna_it_says_what_to_install(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)  # what Python does for a module that is not there
    with pytest.raises(UserError, match=r"needs optuna: pip install 'cfbench-core\[tune\]'"):
        tune(study(), component="times", registry=registry)
    assert not Path("tuned-times.trials").exists()
