"""Searches over recommenders and explainers: judged on validation data, on users who are not used otherwise."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from safetensors.numpy import load_file

from cfbench_core import run, tune
from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.models import load_state
from cfbench_core.store import Store
from cfbench_core.tuning.search import open_search
from cfbench_recsys.quality import evaluate
from cfbench_recsys.splits import Split, load_split

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(SAMPLES)


def study(**changes: Any) -> dict[str, Any]:
    return {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": [{"name": "mf", "epochs": 4, "dimensions": 16}, "ease"],
        "explainers": [{"import": "my_lab:ByIndex"}],
        "protocol": {"k": [3, 5], "users": 30, "format": "implicit"},
        "executor": "inline",
        **changes,
    }


def explaining(explainer: str, **changes: Any) -> dict[str, Any]:
    return study(
        recommenders=[{"import": "my_lab:CoOccurrence", "label": "co"}],
        explainers=[{"import": f"tunable_lab:{explainer}", "label": "it"}],
        **changes,
    )


def artifacts(kind: str) -> list[Path]:
    store = Store()
    return [entry.path for entry in store.entries() if entry.kind == kind]


# Recommenders


def trained() -> tuple[Split, dict[float, Any]]:
    """The split, and by its learning rate each model that a search trained."""
    (folder,) = artifacts("split")
    split, models = load_split(folder), {}
    for folder in artifacts("model"):
        component = json.loads((folder / "artifact.json").read_text())["parameters"]["model"]
        model = create(component)
        model.load_state(load_state(folder), split.profiles)
        models[component["options"]["learning_rate"]] = model
    return split, models


def test_a_recommender_is_judged_by_its_quality_on_validation_data(tmp_path: Path) -> None:
    tuned = tune(study(), component="recommender/mf", trials=3, out=tmp_path / "tuned.yaml")
    split, models = trained()
    expected = {}
    for rate, model in models.items():
        assert not hasattr(model, "score_edits")
        expected[rate] = evaluate(model, split.validation, split.profiles)["NDCG@10"]
        assert expected[rate] != evaluate(model, split.test, split.profiles)["NDCG@10"]
    assert len(expected) == 3
    for trial in tuned.trials:
        assert trial.value == pytest.approx(expected[trial.options["learning_rate"]], rel=1e-12)
    assert tuned.best is not None and tuned.best.value == max(expected.values())


def test_the_gain_of_a_recommender_is_that_on_the_test_part(tmp_path: Path) -> None:
    tuned = tune(study(), component="recommender/mf", trials=3, out=tmp_path / "tuned.yaml")
    split, models = trained()
    assert tuned.best is not None and tuned.best.number > 0, "the search must find something"
    both = [models[trial.options["learning_rate"]] for trial in (tuned.best, tuned.trials[0])]
    expected = tuple(evaluate(model, split.test, split.profiles)["NDCG@10"] for model in both)
    assert tuned.held_out == pytest.approx(expected, rel=1e-12)
    assert tuned.preset("here").search["held_out"]["metric"] == "test NDCG@10"


def test_the_tuned_configuration_runs_with_the_model_that_was_found(tmp_path: Path) -> None:
    tuned = tune(study(), component="mf", trials=2, out=tmp_path / "tuned.yaml")
    before = set(artifacts("model"))
    written = yaml.safe_load((tmp_path / "tuned.yaml").read_text())
    assert written["recommenders"][0] == {"name": "mf", "epochs": 4, "dimensions": 16, **tuned.options}
    done = run(tmp_path / "tuned.yaml", out=tmp_path / "run")
    assert {cell.status for cell in done.cells()} == {"ok"}
    (new,) = set(artifacts("model")) - before
    assert json.loads((new / "artifact.json").read_text())["label"] == "ease on debian-python"


CALL = (
    "import sys; from cfbench_core.cli import main; "
    "sys.exit(main(['tune', 'study.yaml', '--component', 'mf', '--trials', '3', '--quiet']))"
)


@pytest.mark.slow
def test_a_killed_search_resumes(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study(executor="process")))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SAMPLES), os.environ.get("PYTHONPATH", "")]),
    }
    process = subprocess.Popen([sys.executable, "-c", CALL], cwd=tmp_path, env=environment)
    record = tmp_path / "tuned-mf.trials" / "trials.json"
    deadline = time.monotonic() + 120
    while not record.exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = json.loads(record.read_text())["trials"]
    assert 1 <= len(first) < 3
    again = subprocess.run(
        [sys.executable, "-c", CALL], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    assert f"{len(first)} of 3 trials existed already" in again.stdout
    trials = json.loads(record.read_text())["trials"]
    assert trials[: len(first)] == first
    whole = tune(study(), component="mf", trials=3, out=tmp_path / "whole.yaml")
    assert [(trial["options"], trial["value"]) for trial in trials] == [
        (dict(trial.options), trial.value) for trial in whole.trials
    ]


# Explainers


@pytest.mark.slow
def test_a_more_faithful_explainer_scores_better(tmp_path: Path) -> None:
    tuned = tune(explaining("Blend"), component="it", trials=10, sample=40, out=tmp_path / "tuned.yaml")
    assert tuned.search.tunable.metric == "POS-P@3 of other users"
    assert tuned.best is not None and not tuned.failed
    tried = sorted(trial.options["truth"] for trial in tuned.trials)
    assert tuned.best.options["truth"] in tried[-3:]
    assert tuned.best.value < tuned.trials[0].value  # pure noise


def test_an_explainer_is_judged_on_users_who_are_neither_explained_nor_learned_from(tmp_path: Path) -> None:
    run(explaining("Blend"), out=tmp_path / "run")
    explained = {user for folder in artifacts("units") for user in users(folder)}
    learned_in_run = set(learned_from(artifacts("explainer")[0]))
    before = {*artifacts("units"), *artifacts("explainer")}
    tune(explaining("Blend"), component="it", trials=2, sample=25, out=tmp_path / "tuned.yaml")
    judged = [users(units) for units in set(artifacts("units")) - before]  # of the trials, and held out
    assert len(explained) == 30 and {len(sample) for sample in judged} == {25}
    assert not explained & set().union(*judged)
    for folder in set(artifacts("explainer")) - before:
        learned = learned_from(folder)
        assert any(learned == learned_in_run - sample for sample in judged) and not learned & explained


def test_the_gain_is_measured_on_users_whom_no_trial_used(tmp_path: Path) -> None:
    """Best and configured options are judged on further users, by the mean of the same metric."""
    tuned = tune(explaining("Blend"), component="it", trials=6, sample=25, out=tmp_path / "tuned.yaml")
    assert tuned.best is not None and tuned.best.number > 0 and tuned.held_out is not None
    judged, held_out = sorted(artifacts("units"), key=lambda folder: folder.stat().st_mtime)
    assert len(users(held_out)) == 25 and not users(held_out) & users(judged)
    scores = {folder: pd.read_parquet(folder / "scores.parquet") for folder in artifacts("scores")}
    means = [
        own.loc[own["metric"] == "POS-P@3", "value"].mean()
        for own in scores.values()
        if set(own["user"]) == set(pd.read_parquet(held_out / "units.parquet")["user"])
    ]
    assert sorted(tuned.held_out) == pytest.approx(sorted(means)) and tuned.held_out[0] < tuned.held_out[1]
    found = tuned.preset("here").search["held_out"]
    assert found["metric"] == "POS-P@3 of other users, held out"
    assert (found["value"], found["as_configured"]) == pytest.approx(tuned.held_out, rel=1e-5)
    assert "on held-out data" in tuned.verbalize()


def users(folder: Path) -> set[int]:
    return set(pd.read_parquet(folder / "units.parquet")["user_index"])


def learned_from(folder: Path) -> set[int]:
    (file,) = folder.glob("*.safetensors")
    return set(load_file(file)["learned_from"].tolist())


def test_its_value_is_the_mean_of_the_metric_over_these_users(tmp_path: Path) -> None:
    options = {"trials": 1, "sample": 25, "metric": "NEG-P@5"}
    tuned = tune(explaining("Blend"), component="it", out=tmp_path / "tuned.yaml", **options)
    assert tuned.search.tunable.direction == "higher"
    scores = pd.concat([pd.read_parquet(folder / "scores.parquet") for folder in artifacts("scores")])
    assert set(scores["metric"]) >= {"NEG-P@5"} and scores["user"].nunique() == 25
    assert tuned.trials[0].value == pytest.approx(scores.loc[scores["metric"] == "NEG-P@5", "value"].mean())


def test_an_explicit_explainer_is_judged_by_what_it_displaces(tmp_path: Path) -> None:
    config = explaining("RemovesSome", protocol={"k": [3], "users": 30, "level": "list"})
    tuned = tune(config, component="it", trials=4, sample=20, out=tmp_path / "tuned.yaml")
    assert tuned.search.tunable.metric == "PN-S@3 of other users"
    assert "item level" in tuned.search.tunable.data  # whatever the levels of the run
    assert tuned.trials[0].value == 0.0  # it removes nothing


def test_the_setting_in_which_an_explainer_is_tuned_is_named_with_its_options(tmp_path: Path) -> None:
    """Options that suit one scope and one number of edits may not suit another."""
    config = study(
        recommenders=[{"name": "lightgcn", "epochs": 1}],
        explainers=[{"import": "tunable_lab:RemovesSome", "label": "it"}],
        protocol={"k": 3, "users": 20, "format": "explicit", "scope": "user-only", "max_edits": [4, 9]},
    )
    tuned = tune(config, component="it", trials=2, sample=5, out=tmp_path / "tuned.yaml")
    where = "debian-python, lightgcn, item level, user-only scope, at most 4 edits"
    assert f"tuned on {where}:" in (tmp_path / "tuned.yaml").read_text().splitlines()[0]
    assert tuned.preset("here").search["data"] == where


# What cannot be tuned


@pytest.mark.parametrize(
    ("config", "component", "options", "said"),
    [
        (study(data=["debian-python", {"name": "debian-python", "label": "b"}]), "mf", {},
         "a search is about one dataset, the configuration has debian-python, b; choose: --set data=debian-python"),
        (study(explainers=[{"import": "tunable_lab:Blend"}]), "blend", {},
         "a search is about one recommender, the configuration has mf, ease; choose: --set recommenders=mf"),
        (study(), "mf", {"metric": "NDCG@1"},
         "--metric NDCG@1: a recommender is judged by one of NDCG@10, HR@10, .* Did you mean 'NDCG@10'"),
        (explaining("Blend"), "it", {"metric": "POSP@3"},
         "--metric POSP@3: not among the metrics of it. Did you mean 'POS-P@3'"),
        (explaining("Blend"), "it", {"metric": "Full removal"},
         "--metric Full removal: of this neither more nor less is better"),
        (explaining("RemovesSome"), "it", {}, "it explains nothing here: no implicit format"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_reported(
    config: dict[str, Any], component: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        open_search(config, component=component, **options)


def test_weights_from_a_file_cannot_be_tuned(tmp_path: Path) -> None:
    (tmp_path / "mf.safetensors").touch()
    given = study(recommenders=[{"name": "mf", "weights": str(tmp_path / "mf.safetensors")}])
    with pytest.raises(UserError, match="mf: its weights come from a file, so there is nothing to tune"):
        open_search(given, component="mf")


def test_without_unexplained_users_nothing_can_be_tuned(tmp_path: Path) -> None:
    config = explaining("Blend", protocol={"k": [3], "users": 100_000, "format": "implicit"})
    with pytest.raises(UserError, match="who may be explained are explained, none is left to tune on: lower"):
        tune(config, component="it", trials=1, out=tmp_path / "tuned.yaml")
