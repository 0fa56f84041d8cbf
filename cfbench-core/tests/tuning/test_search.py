"""A whole search, from the study to the preset."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
import yaml
from toy_searches import study

from cfbench_core.api import execute, prepare
from cfbench_core.presets import parse_presets, write_preset
from cfbench_core.registry import Component, Registry
from cfbench_core.tuning.journal import Trial
from cfbench_core.tuning.results import Tuned
from cfbench_core.tuning.search import open_search, tune


def test_a_search_begins_with_what_was_configured_and_ends_with_the_best(registry: Registry) -> None:
    """The toy model is as good as its factor is near to 7, and diverges beyond 20."""
    tuned = tune(study(), component="recommender/times", trials=30, out="tuned.yaml", registry=registry)
    assert tuned.trials[0].options == {"factor": 2.0} and tuned.trials[0].value == pytest.approx(1 / 6)
    for trial in tuned.trials:
        if trial.options["factor"] > 20:
            assert (trial.status, trial.value, trial.reason) == ("failed", None, "it diverged")
        else:
            assert trial.value == pytest.approx(1 / (1 + abs(trial.options["factor"] - 7)))
    assert tuned.failed and tuned.best is not None
    assert tuned.best.value == max(trial.value or 0 for trial in tuned.trials)
    assert 6 < tuned.best.options["factor"] < 8


def test_the_configuration_that_comes_of_it_runs_and_finds_its_model_in_the_cache(
    registry: Registry, tmp_path: Path
) -> None:
    tuned = tune(
        study(models={"name": "times", "label": "mine", "pause": 0.001}),
        component="mine",
        trials=5,
        out="tuned.yaml",
        registry=registry,
        command="cfbench tune\nstudy.yaml",
    )
    assert tuned.best is not None
    text = Path("tuned.yaml").read_text()
    assert text.startswith(
        f"# recommender/mine tuned on numbers: {tuned.verbalize()}\n# Found by: cfbench tune study.yaml\n"
    )
    written = yaml.safe_load(text)
    assert written["models"] == [
        {"name": "times", "label": "mine", "pause": 0.001, "factor": tuned.best.options["factor"]}
    ]
    run = execute(prepare("tuned.yaml", registry=registry), out=tmp_path / "run")
    lines = [json.loads(line) for line in (run.directory / "outcomes.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines if line["kind"] == "model"] == ["cached"]


def test_tuned_options_no_longer_have_the_name_of_a_published_preset(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "published_times"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "times.yaml").write_text("theirs: {options: {factor: 3.0}, search: {source: table 3}}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def with_preset(component: Component) -> Component:
        spec = component.spec
        found = "published_times:times.yaml" if spec.name == "times" else spec.presets
        return dataclasses.replace(component, spec=dataclasses.replace(spec, presets=found))

    plugins = (
        dataclasses.replace(p, components=tuple(map(with_preset, p.components))) for p in registry.plugins
    )
    presets, models = Registry(plugins), {"name": "times", "preset": "theirs"}
    assert prepare(study(models=models), registry=presets).config.models[0].label == "times-theirs"
    tuned = tune(study(models=models), component="times", trials=5, out="tuned.yaml", registry=presets)
    assert tuned.best is not None and tuned.best.number > 0
    assert yaml.safe_load(Path("tuned.yaml").read_text())["models"] == [
        {"name": "times", "factor": tuned.best.options["factor"]}
    ]


def test_an_explainer_is_judged_by_the_mean_of_a_metric(registry: Registry) -> None:
    """The sum of digits of 0, 2, ..., 38: what the search finds is the best of all bases that it tried."""

    def mean_sum(base: int) -> float:
        sums = []
        for number in range(0, 40, 2):
            digits = []
            while number:
                number, digit = divmod(number, base)
                digits.append(digit)
            sums.append(sum(digits))
        return sum(sums) / len(sums)

    tuned = tune(study(), component="explainer/digits", trials=12, out="tuned.yaml", registry=registry)
    for trial in tuned.trials:
        assert trial.value == pytest.approx(mean_sum(trial.options["base"]))
    assert tuned.best is not None
    tried = {trial.options["base"] for trial in tuned.trials}
    assert tuned.best.options["base"] == min(tried, key=mean_sum)


def test_the_table_of_trials_holds_all_of_them(registry: Registry) -> None:
    tuned = tune(study(), component="times", trials=12, out="some/where.yaml", registry=registry)
    with Path("some/where.trials/trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["trial"]) for row in rows] == list(range(12))
    assert [float(row["factor"]) for row in rows] == [trial.options["factor"] for trial in tuned.trials]
    assert [row["value"] and float(row["value"]) for row in rows] == [
        "" if trial.value is None else trial.value for trial in tuned.trials
    ]


def test_what_was_configured_may_lie_outside_of_the_space(registry: Registry) -> None:
    far = study(models={"name": "times", "factor": 0.01})
    tuned = tune(far, component="times", trials=4, out="tuned.yaml", registry=registry)
    assert tuned.trials[0].options == {"factor": 0.01}
    assert all(0.5 <= trial.options["factor"] <= 50 for trial in tuned.trials[1:])


def test_the_best_at_the_end_of_its_range_is_reported(registry: Registry) -> None:
    search = open_search(study(), component="times", registry=registry)
    assert Tuned(search, (Trial(0, {"factor": 50.0}, "ok", 1.0),), 0).at_the_edge == ["factor"]
    assert Tuned(search, (Trial(0, {"factor": 49.0}, "ok", 1.0),), 0).at_the_edge == []


def test_a_preset_holds_the_options_and_how_they_were_found(registry: Registry) -> None:
    paused = study(models={"name": "times", "pause": 0.001}, seed=3)
    tuned = tune(
        paused, component="times", trials=6, out="tuned.yaml", registry=registry, command="cfbench tune ..."
    )
    write_preset(Path("presets.yaml"), tuned.preset("numbers"))
    preset = parse_presets(Path("presets.yaml").read_text(), "presets.yaml")["numbers"]
    assert tuned.best is not None and tuned.best.value is not None
    assert preset.options == {"pause": 0.001, "factor": tuned.best.options["factor"]}
    search = dict(preset.search)
    assert search["value"] == pytest.approx(tuned.best.value, rel=1e-5)
    assert search["command"] == "cfbench tune ..." and search["metric"] == "validation closeness"
    assert (search["trials"], search["failed"], search["seed"]) == (6, len(tuned.failed), 3)
    assert search["space"] == {"factor": "0.5 to 50, logarithmic"}
    assert search["version"] == "cfbench-toy 1.0" and search["hardware"]
