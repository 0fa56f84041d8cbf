"""A search: what is searched, what comes next, and trials that survive whatever ends the process."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml

from cfbench_core.api import execute, prepare
from cfbench_core.config import Range, Search
from cfbench_core.errors import UserError
from cfbench_core.presets import parse_presets, write_preset
from cfbench_core.registry import Registry
from cfbench_core.tuning.journal import Trial
from cfbench_core.tuning.results import Tuned
from cfbench_core.tuning.sampler import Told, propose
from cfbench_core.tuning.search import open_search, tune
from cfbench_core.tuning.space import Dimension, search_space

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def study(**changes: Any) -> dict[str, Any]:
    return {
        "suite": "toy",
        "data": {"name": "numbers", "count": 20},
        "models": "times",
        "explainers": ["digits"],
        "executor": "inline",
        **changes,
    }


# What is searched


@dataclass(frozen=True)
class Inner:
    rate: Annotated[float, Search(0.1, 1)] = 0.5


@dataclass(frozen=True)
class Everything:
    rate: Annotated[float, Range(above=0), Search(1e-4, 1, log=True)] = 0.1
    size: Annotated[int | None, Range(minimum=1), Search(4, 64)] = None
    kind: Annotated[Literal["a", "b"], Search()] = "a"
    quick: Annotated[bool, Search()] = True
    layers: Annotated[tuple[int, ...], Search(choices=((8,), (16, 8)))] = (8,)
    inner: Inner = field(default_factory=Inner)
    epochs: int = 100


def test_options_are_searched_as_their_annotations_say() -> None:
    assert search_space(Everything) == (
        Dimension("rate", 1e-4, 1, log=True),
        Dimension("size", 4, 64, whole=True),
        Dimension("kind", choices=("a", "b")),
        Dimension("quick", choices=(False, True)),
        Dimension("layers", choices=((8,), (16, 8))),
        Dimension("inner.rate", 0.1, 1),
    )


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Annotated[float, Search()], "needs low < high, or choices"),
        (Annotated[float, Search(2, 1)], "needs low < high, or choices"),
        (Annotated[float, Search(0, 1, log=True)], r"Search\(log=True\) needs low > 0"),
        (Annotated[float, Range(above=0), Search(0, 1)], r"goes beyond its Range \(> 0\)"),
        (Annotated[int, Search(0.5, 2)], "needs whole numbers"),
        (Annotated[str, Search(0, 1)], "needs choices, for it is not a number"),
        (Annotated[int | float, Search(0, 1)], "needs choices, for it is not a number"),
    ],
)
def test_an_annotation_that_makes_no_sense_is_told(hint: Any, said: str) -> None:
    config = dataclass(type("Config", (), {"__annotations__": {"x": hint}, "x": 1}))
    with pytest.raises(ValueError, match=f"^option 'x': .*{said}"):
        search_space(config)


def test_a_dimension_knows_what_belongs_to_it() -> None:
    number = Dimension("x", 1, 8, whole=True)
    assert 1 in number and 8.0 in number
    assert not any(value in number for value in (0, 9, 2.5, None, "2", True))
    choice = Dimension("x", choices=((8,), (16, 8)))
    assert (8,) in choice and (4,) not in choice
    assert choice.restored([16, 8]) == (16, 8)


def test_numbers_are_short_and_stay_within_their_bounds() -> None:
    rate = Dimension("x", 0.12342, 0.67891)
    assert rate.rounded(0.345678) == 0.3457
    assert rate.rounded(0.678909) == 0.6789 and rate.rounded(0.67896) == 0.67891
    assert rate.rounded(0.123421) == 0.12342


# What comes next

SPACE = search_space(Everything)


def earlier(count: int) -> list[Told]:
    told: list[Told] = []
    for number in range(count):
        options = propose(SPACE, told, "lower", 0, number)
        told.append(Told(options, abs(options["rate"] - 0.01) if number % 4 else None))
    return told


def test_what_comes_next_depends_on_seed_number_and_earlier_trials_alone() -> None:
    told = earlier(12)
    assert told == earlier(12)
    following = propose(SPACE, told, "lower", 0, 12)
    assert following == propose(SPACE, told, "lower", 0, 12)
    others = [propose(SPACE, told, "lower", 1, 12), propose(SPACE, told, "lower", 0, 13)]
    assert following not in others
    assert all(value in dimension for dimension, value in zip(SPACE, following.values(), strict=True))


@pytest.mark.parametrize(("direction", "sign"), [("higher", -1), ("lower", 1)])
def test_what_is_told_moves_the_search(direction: str, sign: int) -> None:
    space = (Dimension("x", 0, 1),)
    told = [Told({"x": place / 20}, sign * abs(place / 20 - 0.8)) for place in range(20)]
    drawn = [propose(space, told, direction, seed, 20)["x"] for seed in range(40)]
    assert sum(0.7 < x < 0.9 for x in drawn) > 16  # of a draw at random 8


def test_where_it_fails_the_search_does_not_return() -> None:
    space = (Dimension("x", 0, 1),)
    values = [place / 20 for place in range(20)]
    told = [Told({"x": x}, None if x > 0.3 else 1 + x) for x in values]
    drawn = [propose(space, told, "higher", seed, 20)["x"] for seed in range(20)]
    assert sum(x > 0.5 for x in drawn) <= 4  # of a draw at random one half


def test_a_trial_outside_of_the_space_is_not_told() -> None:
    outside = Told(
        {"rate": 5.0, "size": None, **dict.fromkeys(["kind", "quick", "layers", "inner.rate"])}, 1.0
    )
    assert propose(SPACE, [outside], "lower", 0, 1) == propose(SPACE, [], "lower", 0, 1)


# A whole search


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
        f"# recommender/mine tuned on numbers: {tuned.in_words()}\n# Found by: cfbench tune study.yaml\n"
    )
    written = yaml.safe_load(text)
    assert written["models"] == [
        {"name": "times", "label": "mine", "pause": 0.001, "factor": tuned.best.options["factor"]}
    ]
    run = execute(prepare("tuned.yaml", registry=registry), out=tmp_path / "run")
    lines = [json.loads(line) for line in (run.directory / "outcomes.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines if line["kind"] == "model"] == ["cached"]


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


def test_the_best_at_the_end_of_its_range_is_told(registry: Registry) -> None:
    search = open_search(study(), component="times", registry=registry)
    assert Tuned(search, (Trial(0, {"factor": 50.0}, "ok", 1.0),), 0).at_the_edge == ["factor"]
    assert Tuned(search, (Trial(0, {"factor": 49.0}, "ok", 1.0),), 0).at_the_edge == []


# Taken up again


def values(tuned: Tuned) -> list[tuple[dict[str, Any], float | None]]:
    return [(dict(trial.options), trial.value) for trial in tuned.trials]


def test_a_search_that_is_taken_up_again_goes_on_as_if_it_had_not_been_stopped(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tune(study(), component="times", trials=14, out="whole.yaml", registry=registry)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "other"))
    for trials in (1, 6, 14):
        parts = tune(study(), component="times", trials=trials, out="parts.yaml", registry=registry)
    assert parts.resumed == 6 and whole.resumed == 0
    assert values(parts) == values(whole)


def test_trials_that_are_there_are_not_computed_again(registry: Registry, tmp_path: Path) -> None:
    first = tune(study(), component="times", trials=5, out="tuned.yaml", registry=registry)
    Path("tuned.yaml").unlink()
    (tmp_path / "cache").rename(tmp_path / "moved")
    again = tune(study(), component="times", trials=5, out="tuned.yaml", registry=registry)
    assert again.resumed == 5 and again.trials == first.trials
    assert not (tmp_path / "cache").exists() and Path("tuned.yaml").exists()


def test_restart_forgets_the_trials_but_not_what_they_computed(registry: Registry) -> None:
    first = tune(study(), component="times", trials=5, out="tuned.yaml", registry=registry)
    again = tune(study(), component="times", trials=3, out="tuned.yaml", registry=registry, restart=True)
    assert again.resumed == 0 and again.trials == first.trials[:3]  # their times too


@pytest.mark.parametrize(
    ("changes", "component", "said"),
    [
        ({"seed": 1}, "times", "seed"),
        ({"data": "numbers"}, "times", "data, protocol or code"),
        ({"models": {"name": "times", "factor": 3}}, "times", "options"),
        ({}, "digits", "component, metric, space, options"),
    ],
)
def test_trials_of_another_search_are_not_mixed_in(
    registry: Registry, changes: dict[str, Any], component: str, said: str
) -> None:
    tune(study(), component="times", trials=2, out="tuned.yaml", registry=registry)
    with pytest.raises(
        UserError, match=f"tuned.trials: holds another search \\(different: {said}\\); give another"
    ):
        tune(study(**changes), component=component, trials=2, out="tuned.yaml", registry=registry)


def test_how_it_is_computed_is_no_other_search(registry: Registry) -> None:
    tune(study(), component="times", trials=2, out="tuned.yaml", registry=registry)
    more = study(executor="process", workers=1, limits={"seconds": 60})
    assert tune(more, component="times", trials=3, out="tuned.yaml", registry=registry).resumed == 2


def test_a_record_that_is_no_search_is_left_alone(registry: Registry) -> None:
    Path("tuned.trials").mkdir()
    Path("tuned.trials/trials.json").write_text("[]")
    with pytest.raises(UserError, match=r"trials.json: is not the record of a search"):
        tune(study(), component="times", trials=2, out="tuned.yaml", registry=registry)
    assert Path("tuned.trials/trials.json").read_text() == "[]"


DRIVER = """
import sys; sys.path.insert(0, {samples!r})
from cfbench_core.registry import Component, Plugin, Registry
from cfbench_core.tuning.search import tune
import cfbench_core.plugin, toy_suite
def plugin(name, specs): return Plugin(name, name, "1", name, tuple(Component(s, name, "1") for s in specs))
registry = Registry([plugin("toy", toy_suite.SPECS), plugin("core", cfbench_core.plugin.cfbench_components())])
tune({study!r}, component="times", trials=8, out="tuned.yaml", registry=registry)
"""


def test_a_search_that_is_killed_loses_the_running_trial_and_no_other(tmp_path: Path) -> None:
    slow = study(models={"name": "times", "pause": 0.15})
    script = DRIVER.format(samples=str(SAMPLES), study=slow)
    command = [sys.executable, "-c", script]
    whole = tmp_path / "whole"
    whole.mkdir()
    subprocess.run(command, cwd=whole, check=True, timeout=60)
    expected = [trial["value"] for trial in recorded(whole)]
    assert len(expected) == 8

    parts = tmp_path / "parts"
    parts.mkdir()
    environment = {**os.environ, "CFBENCH_CACHE_DIR": str(tmp_path / "other")}
    for already in (2, 5):
        process = subprocess.Popen(command, cwd=parts, env=environment)
        wait_for(lambda already=already: len(recorded(parts)) >= already)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = [trial["value"] for trial in recorded(parts)]
        assert found == expected[: len(found)] and len(found) >= already
    subprocess.run(command, cwd=parts, env=environment, check=True, timeout=60)
    assert [trial["value"] for trial in recorded(parts)] == expected


def recorded(folder: Path) -> list[dict[str, Any]]:
    path = folder / "tuned.trials" / "trials.json"
    return json.loads(path.read_text())["trials"] if path.exists() else []


def wait_for(happens: Any) -> None:
    deadline = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_searches_do_not_write_the_same_trials(registry: Registry) -> None:
    search = open_search(study(), component="times", out="tuned.yaml", registry=registry)

    class Intruder:
        """Begins the same search while it is going on."""

        def begun(self, trials: Any) -> None:
            with pytest.raises(UserError, match="another cfbench is running in it"):
                search.run(2)

        def preparing(self, label: str) -> None: ...
        def progress(self, trial: int, share: float) -> None: ...
        def tried(self, trial: Trial, best: Trial | None) -> None: ...

    assert len(search.run(2, observer=Intruder()).trials) == 2


# What may go wrong


def test_no_trial_is_begun_when_the_time_is_over(registry: Registry) -> None:
    slow = study(models={"name": "times", "pause": 0.2})
    tuned = tune(slow, component="times", trials=50, timeout=0.5, out="tuned.yaml", registry=registry)
    assert 1 <= len(tuned.trials) <= 4
    none = tune(slow, component="digits", trials=50, timeout=0.0, out="none.yaml", registry=registry)
    assert none.trials == () and none.best is None and not Path("none.yaml").exists()


def test_a_trial_that_takes_too_long_has_failed_and_the_search_goes_on(registry: Registry) -> None:
    limited = study(
        models={"name": "times", "pause": 1.5}, executor="process", workers=1, limits={"seconds": 0.5}
    )
    tuned = tune(limited, component="times", trials=2, out="tuned.yaml", registry=registry)
    assert [trial.status for trial in tuned.trials] == ["timeout", "timeout"]
    assert tuned.best is None and tuned.options == {} and not Path("tuned.yaml").exists()
    assert tuned.in_words() == "validation closeness: all 2 trials failed"


def test_the_story_of_a_failed_trial_is_kept(registry: Registry) -> None:
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
            "stands for several: say which one of explainer/a, explainer/b",
        ),
        ({}, "numbers", "toy/dataset/numbers cannot be tuned: none of its options says what to try"),
        ({"explainers": ["plain"]}, "plain", "toy/explainer/plain cannot be tuned: none of its options"),
    ],
)
def test_what_cannot_be_tuned_is_told(
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


# The preset


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
