"""``tune``: exit codes, what stands where, Ctrl-C, and a preset that ``describe`` and ``run`` know."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from child_processes import popen

from .conftest import Command, Install

SAMPLES = Path(__file__).parents[1] / "samples"
CFBENCH = "import sys; from cfbench_core.cli import main; sys.exit(main(sys.argv[1:]))"


def environment(toy: Path) -> dict[str, str]:
    """Of a process that finds the toy suite as this one does."""
    path = os.pathsep.join([str(toy.parent / "site"), str(SAMPLES), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"}


def test_a_search_ends_in_the_best_options_and_where_everything_is(toy: Path, cfbench: Command) -> None:
    done = cfbench("tune", "study.yaml", "--component", "recommender/times", "--trials", "12")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    reported = re.fullmatch(
        r"validation closeness (0\.\d+) in trial (\d+), the best of 12 \(0\.166667 as it was configured\)",
        lines[0],
    )
    assert reported
    trials = json.loads(Path("tuned-times.trials/trials.json").read_text())["trials"]
    best = trials[int(reported[2])]
    assert float(reported[1]) == pytest.approx(best["value"], rel=1e-5)
    assert lines[3].split() == [
        "factor",
        str(best["options"]["factor"]),
        "2.0",
        *["0.5", "to", "50,", "logarithmic"],
    ]
    failed = [trial for trial in trials if trial["status"] == "failed"]
    assert f"{len(failed)} trials failed; why: tuned-times.trials/trials.csv" in lines
    assert lines[-1] == "Configuration: tuned-times.yaml      Run it: cfbench run tuned-times.yaml"
    assert cfbench("run", "tuned-times.yaml", "--output", "run").code == 0
    assert (
        yaml.safe_load(Path("run/config.yaml").read_text())["models"][0]["factor"]
        == best["options"]["factor"]
    )


def test_where_nobody_watches_progress_is_the_head_and_what_matters(toy: Path, cfbench: Command) -> None:
    lines = cfbench("tune", "study.yaml", "--component", "times", "--trials", "12").err.splitlines()
    head = r"cfbench \S+ · recommender/times on numbers · 1 option · validation closeness, higher is better · seed 0"
    assert re.fullmatch(head, lines[0])
    assert all(
        re.match(r"prepare  |better   trial \d+: 0\.\d+, |failed   trial \d+: it diverged", line)
        for line in lines[1:]
    )
    found = [float(match[1]) for line in lines if (match := re.match(r"better .*: (0\.\d+),", line))]
    assert found == sorted(found) and len(found) >= 2
    assert cfbench("tune", "study.yaml", "--component", "times", "--trials", "13", "--quiet").err == ""


def test_called_again_it_resumes_and_says_so(toy: Path, cfbench: Command) -> None:
    call = ["tune", "study.yaml", "--component", "times", "--trials"]
    cfbench(*call, "3")
    more = cfbench(*call, "5")
    assert "resumed  3 of 5 trials are in tuned-times.trials" in more.err.splitlines()
    assert more.out.splitlines()[0] == "3 of 5 trials existed already"
    nothing = cfbench(*call, "5")
    assert nothing.code == 0 and nothing.err == ""
    assert nothing.out.splitlines()[0] == "5 trials existed already; for more: --trials 10"
    assert nothing.out.splitlines()[1:] == more.out.splitlines()[1:]


@pytest.mark.slow
def test_a_terminal_gets_a_bar_with_the_best_so_far(toy: Path) -> None:
    ours, theirs = pty.openpty()
    with popen(
        [sys.executable, "-c", CFBENCH, "tune", "study.yaml", "--component", "times", "--trials", "4"],
        cwd=toy,
        env=environment(toy),
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        seen = _until_closed(ours)
        out = process.stdout.read()
    assert process.returncode == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert re.search(r"trial +4/4 ━+ +best 0\.\d+ \(trial \d\)", shown)
    assert "Configuration: tuned-times.yaml" in out and "━" not in out


def _until_closed(descriptor: int) -> str:
    parts = []
    while select.select([descriptor], [], [], 60)[0]:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # how Linux says that nobody writes any more
            break
        if not part:
            break
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode()


@pytest.mark.slow
def test_ctrl_c_is_exit_code_130_with_the_best_so_far_written(toy: Path, cfbench: Command) -> None:
    call = ["tune", "study.yaml", "--set", "models=[{name: times, pause: 0.3}]", "--set", "executor=process",
            "--component", "times", "--trials", "5"]  # fmt: skip
    process = popen(
        [sys.executable, "-c", CFBENCH, *call],
        cwd=toy,
        env=environment(toy),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (toy / "tuned-times.yaml").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped; the same command resumes"
    trials = json.loads((toy / "tuned-times.trials/trials.json").read_text())["trials"]
    assert 1 <= len(trials) < 5
    assert "factor" in yaml.safe_load((toy / "tuned-times.yaml").read_text())["models"][0]
    assert cfbench("run", "tuned-times.yaml", "--dry-run").code == 0
    done = cfbench(*call)
    assert done.code == 0 and done.out.startswith(f"{len(trials)} of 5 trials existed already\n")


def test_when_all_trials_fail_it_is_exit_code_1(toy: Path, cfbench: Command) -> None:
    done = cfbench("tune", "study.yaml", "--component", "times", "--trials", "1", "--metric", "beauty")
    assert (done.code, done.out) == (1, "all 1 trial failed; why: tuned-times.trials/trials.csv\n")
    assert "failed   trial 0: times reports no fit validation beauty: it cannot be judged by it" in done.err
    assert not Path("tuned-times.yaml").exists()


def test_a_time_in_which_nothing_can_be_tried_is_exit_code_3(toy: Path, cfbench: Command) -> None:
    done = cfbench("tune", "study.yaml", "--component", "times", "--timeout", "0s")
    assert done.code == 3 and "nothing was tried" in done.err and done.out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--component", "tims"], "--component tims: is not in the configuration. Did you mean 'times'?"),
        (
            ["--component", "times", "--preset-into", "p.yaml"],
            "--preset-into FILE and --name NAME go together",
        ),
        (["--component", "times", "--timeout", "soon"], "'soon' is no duration: write 90s, 10m or 1.5h"),
        (
            ["--component", "times", "--suite", "toy"],
            "--suite chooses a default configuration, but study.yaml is given",
        ),
        ([], "Missing option '--component'"),
    ],
)
def test_a_call_that_is_wrong_is_exit_code_2(
    toy: Path, cfbench: Command, arguments: list[str], said: str
) -> None:
    done = cfbench("tune", "study.yaml", *arguments)
    assert done.code == 2 and said in done.err and done.out == ""


def test_a_time_limit_shows_how_many_trials_are_complete(toy: Path, cfbench: Command) -> None:
    slow = ["--set", "models=[{name: times, pause: 0.2}]"]
    done = cfbench("tune", "study.yaml", *slow, "--component", "times", "--trials", "90", "--timeout", "2")
    assert done.code == 0
    assert re.match(r"time limit reached after \d+ of 90 trials; the same command resumes\n", done.out)


@pytest.mark.parametrize("duration", ["0", "0s", "0.0m", "0 h"])
def test_durations_are_written_as_people_write_them(toy: Path, cfbench: Command, duration: str) -> None:
    assert cfbench("tune", "study.yaml", "--component", "times", "--timeout", duration).code == 3
    enough = duration.replace("0", "9", 1)
    assert (
        cfbench("tune", "study.yaml", "--component", "times", "--trials", "2", "--timeout", enough).code == 0
    )


def test_a_preset_is_written_with_a_call_that_can_be_repeated(toy: Path, cfbench: Command) -> None:
    call = [
        "tune",
        "study.yaml",
        "--set",
        "data={name: numbers, count: 5}",
        "--component",
        "times",
        "--trials",
        "4",
    ]
    done = cfbench(*call, "--preset-into", "presets/times.yaml", "--name", "five", "--workers", "1")
    assert done.code == 0 and "Preset: presets/times.yaml" in done.out
    search = yaml.safe_load(Path("presets/times.yaml").read_text())["five"]["search"]
    assert search["command"] == (
        "cfbench tune study.yaml --set 'data={name: numbers, count: 5}' --component times --trials 4"
    )


PLUGIN = """
import dataclasses
from cfbench_core.hooks import hookimpl

@hookimpl
def cfbench_components():
    import toy_suite
    return [
        dataclasses.replace(spec, presets="cfbench_tuned_plugin_presets:times.yaml") if spec.name == "times" else spec
        for spec in toy_suite.SPECS
    ]
"""


def test_describe_shows_presets_with_where_they_come_from(
    install: Install, tmp_path: Path, cfbench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("cfbench-tuned", "1.0", PLUGIN)
    package = tmp_path / "site" / "cfbench_tuned_plugin_presets"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "times.yaml").write_text(
        "five:\n"
        "  options: {factor: 7.5}\n"
        "  search: {command: cfbench tune five.yaml, metric: closeness, value: 0.5, as_configured: 0.25, trials: 4,\n"
        "           date: '2026-11-21', space: {factor: 0.5 to 50},\n"
        "           held_out: {metric: 'closeness, held out', value: 0.4, as_configured: 0.3}}\n"
        "plain: {options: {factor: 3.0, pause: 0.1}}\n"
        "theirs: {options: {factor: 2.0}, search: {source: table 3 of the paper}}\n"
    )
    lines = cfbench("describe", "toy/recommender/times").out.splitlines()
    start = lines.index("Presets")
    assert lines[start + 1 : start + 9] == [
        "  preset: five   # factor: 7.5",
        "      closeness 0.5 · 0.25 before · 4 trials · 2026-11-21",
        "      closeness, held out 0.4 · 0.3 before",
        "      cfbench tune five.yaml",
        "  preset: plain   # factor: 3.0, pause: 0.1",
        "  preset: theirs   # factor: 2.0",
        "      table 3 of the paper",
        "",
    ]
    described = json.loads(cfbench("describe", "toy/recommender/times", "--format", "json").out)
    assert described["presets"]["five"]["search"]["trials"] == 4


def test_help_has_examples(cfbench: Command) -> None:
    shown = cfbench("tune", "--help").out
    assert "Examples" in shown and "cfbench tune study.yaml --component recommender/mf" in shown
    assert "tune" in cfbench("--help").out
