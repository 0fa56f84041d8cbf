"""A search that is taken up again, killed, or begun twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from child_processes import popen
from toy_searches import study

from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
from cfbench_core.tuning.journal import Trial
from cfbench_core.tuning.results import Tuned
from cfbench_core.tuning.search import Observer, open_search, run_search, tune

SAMPLES = Path(__file__).parents[1] / "samples"


def values(tuned: Tuned) -> list[tuple[dict[str, Any], float | None]]:
    return [(dict(trial.options), trial.value) for trial in tuned.trials]


def test_a_resumed_search_continues_as_if_it_had_not_been_stopped(
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


class Interrupts:
    """An observer that presses Ctrl-C before the first trial."""

    def begun(self, trials: Sequence[Trial]) -> None:
        raise KeyboardInterrupt


def test_a_restart_that_is_interrupted_at_its_beginning_does_not_bring_the_trials_back(
    registry: Registry,
) -> None:
    call: dict[str, Any] = {"component": "times", "out": "tuned.yaml", "registry": registry}
    tune(study(), trials=3, **call)
    with pytest.raises(KeyboardInterrupt):
        tune(study(), trials=3, restart=True, observer=cast("Observer", Interrupts()), **call)
    assert tune(study(), trials=2, **call).resumed == 0


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


@pytest.mark.slow
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
        process = popen(command, cwd=parts, env=environment)
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
                run_search(search, 2)

        def preparing(self, label: str) -> None: ...
        def progress(self, trial: int, share: float) -> None: ...
        def tried(self, trial: Trial, best: Trial | None) -> None: ...

    assert len(run_search(search, 2, observer=Intruder()).trials) == 2
