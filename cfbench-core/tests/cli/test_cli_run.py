"""``plan``, ``run``, ``status``, ``report``, ``explain``, ``compare``: exit codes, and what stands where."""

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

import pandas as pd
import pytest
from child_processes import popen

from cfbench_core.cli.commands.explain import same_sentences

from .conftest import Command

SAMPLES = Path(__file__).parents[1] / "samples"
CFBENCH = "import sys; from cfbench_core.cli import main; sys.exit(main(sys.argv[1:]))"


def environment(toy: Path) -> dict[str, str]:
    """Of a process that finds the toy suite as this one does."""
    path = os.pathsep.join([str(toy.parent / "site"), str(SAMPLES), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}


def change_study(toy: Path, explainers: str) -> None:
    study = toy / "study.yaml"
    study.write_text(study.read_text().replace("[digits]", explainers))


def test_a_run_ends_in_its_tables_an_explanation_and_the_path_of_its_report(
    toy: Path, cfbench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    done = cfbench("run", "study.yaml", "--output", "runs/one")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    head = next(line.split() for line in lines if line.lstrip().startswith("sum"))
    assert head[:4] == ["sum", "↓", "noise", "↑"]
    digits = next(line.split() for line in lines if line.startswith("digits"))
    assert digits[:3] == ["digits", "5.5", "±1.3"]  # the mean of the digit sums of 0, 2, ..., 38
    assert lines[-2:] == [
        "Example: 7 is explained by 7.",
        "Report: runs/one/report.html      All tables: cfbench report runs/one      Explanations: cfbench view runs/one",
    ]
    assert (toy / "runs/one/report.html").exists()


def test_where_nobody_watches_progress_is_a_few_plain_lines_on_stderr(toy: Path, cfbench: Command) -> None:
    lines = cfbench("run", "study.yaml", "--output", "runs/one").err.splitlines()
    assert lines[0].startswith("cfbench 0.") and lines[0].endswith("1 recommender · 1 explainer · seed 0")
    assert lines[1] == "plan     1 cell: 1 to run, 0 skipped"
    assert re.fullmatch(r"fit      times: accuracy 1\.00, \d+\.\d s", lines[2])
    assert re.fullmatch(r"explain  10/10 tasks, \d+:\d\d", lines[-1])
    assert len(lines) <= 13


def test_quiet_says_nothing_on_stderr(toy: Path, cfbench: Command) -> None:
    assert cfbench("run", "study.yaml", "--output", "runs/one", "--quiet").err == ""


def test_a_terminal_gets_bars_on_stderr_and_the_report_stays_on_stdout(toy: Path) -> None:
    ours, theirs = pty.openpty()
    with popen(
        [sys.executable, "-c", CFBENCH, "run", "study.yaml", "--output", "runs/one"],
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
    assert re.search(r"fit +times +━+ +100% +accuracy 1\.00", shown)
    assert re.search(r"explain +━+ +100% +10/10", shown)
    assert "Report: runs/one/report.html" in out and "Report:" not in shown and "━" not in out


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


def test_a_second_run_takes_all_from_the_cache(toy: Path, cfbench: Command) -> None:
    cfbench("run", "study.yaml", "--output", "runs/one")
    again = cfbench("run", "study.yaml", "--output", "runs/two")
    assert "fit      times: accuracy 1.00, cached" in again.err
    cells = json.loads(cfbench("status", "runs/two", "--format", "json").out)["cells"]
    assert cells == {"cached": 1}
    fresh = cfbench("run", "study.yaml", "--output", "runs/three", "--fresh")
    assert "cached" not in fresh.err


def test_failed_cells_make_exit_code_1_and_are_shown_with_their_reason(toy: Path, cfbench: Command) -> None:
    change_study(toy, "[digits, {name: digits, label: bad, misbehave: raise}]")
    done = cfbench("run", "study.yaml", "--output", "runs/one")
    assert done.code == 1
    reason = "ValueError: seven is not for me"
    assert sum(reason in line for line in done.err.splitlines()) == 1  # once, though more depends on it
    reported = next(line for line in done.out.splitlines() if line.startswith("numbers/times/bad"))
    assert reported == f"numbers/times/bad: partial: 1 of 5 chunks: {reason}"
    assert "Tracebacks: runs/one/logs" in done.out
    assert any("seven is not for me" in log.read_text() for log in (toy / "runs/one/logs").iterdir())
    assert cfbench("status", "runs/one").code == 1


def test_nothing_to_run_is_exit_code_3_and_says_why(toy: Path, cfbench: Command) -> None:
    change_study(toy, "[{name: digits, label: skipped}]")
    for arguments in (["run", "study.yaml"], ["run", "study.yaml", "--dry-run"], ["plan", "study.yaml"]):
        done = cfbench(*arguments)
        assert done.code == 3 and "  skip  skipped: it is called skipped" in done.out.splitlines()
    assert not (toy / "runs").exists()


def test_what_is_wrong_with_a_configuration_is_one_line_each_and_exit_code_2(
    toy: Path, cfbench: Command
) -> None:
    change_study(toy, "[digit]")
    with (toy / "study.yaml").open("a") as study:
        study.write("chunks: 5\n")
    done = cfbench("run", "study.yaml")
    assert (done.code, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert first.startswith("study.yaml:4: explainers[0]: no explainer 'digit'. Did you mean 'digits'?")
    assert second == "study.yaml:7: chunks: unknown key. Did you mean 'chunk'?"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["run", "study.yaml", "--set", "seed"], "--set seed: must look like key.inner=value"),
        (["run", "study.yaml", "--suite", "toy"], "--suite chooses a default configuration"),
        (["run", "study.yaml", "--executor", "inlin"], "Did you mean 'inline'?"),
        (["run", "study.yaml", "--workers", "0"], "0 is not in the range"),
        (["run", "--nonsense"], "No such option"),
        (["rnu"], "no command 'rnu'. Did you mean 'run'?"),
        (["status", "nowhere"], "nowhere: no such directory"),
        (["report", "."], "not a run directory"),
        (["evaluate", "study.yaml", "--explanations", "nowhere.parquet"], "nowhere.parquet"),
        (["check", "nothing"], "is not installed"),
        (["data", "fetch", "nothing"], "no dataset 'nothing'"),
    ],
)
def test_a_wrong_call_is_exit_code_2_and_a_line_on_stderr(
    toy: Path, cfbench: Command, arguments: list[str], said: str
) -> None:
    done = cfbench(*arguments)
    assert done.code == 2 and done.out == ""
    assert said in done.err and "Traceback" not in done.err


def test_debug_shows_where_an_error_came_from(toy: Path, cfbench: Command) -> None:
    for arguments in (["--debug", "run", "nowhere.yaml"], ["run", "nowhere.yaml", "--debug"]):
        done = cfbench(*arguments)
        assert done.code == 2 and "Traceback" in done.err
        assert done.err.splitlines()[-1].startswith("nowhere.yaml: no such file")


def test_ctrl_c_is_exit_code_130_and_the_same_command_resumes(toy: Path, cfbench: Command) -> None:
    change_study(toy, f"[{{name: digits, misbehave: 'wait:{toy / 'go'}'}}]")
    process = popen(
        [sys.executable, "-c", CFBENCH, "run", "study.yaml", "--output", "runs/one"],
        cwd=toy,
        env=environment(toy),
        stderr=subprocess.PIPE,
        text=True,
    )
    outcomes = toy / "runs/one/outcomes.jsonl"
    deadline = time.monotonic() + 60
    while not (outcomes.exists() and '"explanations"' in outcomes.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    running = cfbench("status", "runs/one")
    assert "running" in running.out
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped; the same command resumes"
    assert json.loads(cfbench("status", "runs/one", "--format", "json").out)["state"] == "stopped"

    (toy / "go").touch()
    done = cfbench("run", "study.yaml", "--output", "runs/one")
    assert done.code == 0 and "accuracy 1.00, cached" in done.err


def test_plan_shows_what_runs_and_what_is_skipped_and_why(toy: Path, cfbench: Command) -> None:
    change_study(toy, "[digits, plain, {name: digits, label: skipped}]")
    planned = cfbench("plan", "study.yaml")
    assert planned.code == 0
    assert planned.out.splitlines() == [
        "3 cells: 2 to run, 1 skipped",
        "",
        "numbers · times",
        "  run   digits plain",
        "  skip  skipped: it is called skipped",
    ]
    cells = json.loads(cfbench("plan", "study.yaml", "--format", "json").out)
    assert [(cell["explainer"], cell["status"]) for cell in cells] == [
        ("digits", "planned"),
        ("plain", "planned"),
        ("skipped", "skipped"),
    ]
    assert not (toy / "runs").exists()


def test_set_changes_the_plan(toy: Path, cfbench: Command) -> None:
    assert "2 cells" in cfbench("plan", "study.yaml", "--set", "explainers=[digits, plain]").out


def test_without_a_configuration_the_suites_default_runs(toy: Path, cfbench: Command) -> None:
    done = cfbench("run", "--suite", "toy", "--executor", "inline")
    assert done.code == 0
    assert re.search(r"Report: runs/\d{4}-\d\d-\d\d-\d{4}/report\.html", done.out)


def test_a_finished_run_is_reported_again_in_every_format(toy: Path, cfbench: Command) -> None:
    cfbench("run", "study.yaml", "--output", "runs/one")
    assert "digits" in cfbench("report", "runs/one").out
    assert cfbench("report", "runs/one", "--format", "latex").out.count("\\toprule") == 1
    assert "| digits" in cfbench("report", "runs/one", "--format", "markdown").out
    (toy / "runs/one/report.html").unlink()
    assert cfbench("report", "runs/one", "--format", "html").out == "wrote runs/one/report.html\n"
    assert "7 is explained by 7." in (toy / "runs/one/report.html").read_text()
    written = cfbench("report", "runs/one", "--output", "table.tex")
    assert written.out == "wrote table.tex\n" and "\\toprule" in (toy / "table.tex").read_text()
    unclear = cfbench("report", "runs/one", "--output", "table.doc")
    assert unclear.code == 2 and "say --format" in unclear.err


def test_explain_shows_how_each_explainer_explains_one_unit(toy: Path, cfbench: Command) -> None:
    reported = cfbench("explain", "study.yaml", "--unit", "7", "--output", "runs/one")
    assert reported.code == 0 and reported.out.splitlines() == [
        "numbers · times",
        "  digits:",
        "    7 is explained by 7.",
        "",
        "Other units: cfbench explain runs/one --list",
    ]
    assert cfbench("explain", "runs/one", "--unit", "7").out == reported.out
    unknown = cfbench("explain", "runs/one", "--unit", "20")
    assert unknown.code == 2 and "'20' was not explained in runs/one" in unknown.err
    assert "(cfbench explain runs/one --list)" in unknown.err
    assert cfbench("explain", "runs/one", "--unit", "7", "--list").code == 2


def test_explain_lists_units_and_chooses_the_first_of_them(toy: Path, cfbench: Command) -> None:
    cfbench("run", "study.yaml", "--output", "runs/one")
    listed = json.loads(cfbench("explain", "runs/one", "--list", "--format", "json").out)
    explanations = pd.read_parquet(toy / "runs/one/explanations.parquet")
    counts = explanations.groupby("unit").agg(cells=("cell", "nunique"), rows=("cell", "size"))
    assert {one["unit"]: (one["cells"], one["rows"]) for one in listed} == {
        str(unit): (row.cells, row.rows) for unit, row in counts.iterrows()
    }
    lines = cfbench("explain", "runs/one", "--list").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [one["unit"] for one in listed]
    chosen = json.loads(cfbench("explain", "runs/one", "--format", "json").out)
    most = [one["unit"] for one in listed if one["cells"] == listed[0]["cells"]]
    assert {unit for one in chosen for unit in one["units"]} == {most[(len(most) - 1) // 2]}
    assert all(one["sentence"] for one in chosen)


def test_equal_sentences_stand_together() -> None:
    sentences = [
        ("a", "It fell (mf, explained by a)."),
        ("c", "It stayed (c)."),
        ("b", "It fell (mf, explained by b)."),
        ("d.e", "d.e wrote: it fell."),
    ]
    assert same_sentences(sentences) == [
        (["a", "b"], "It fell."),
        (["c"], "It stayed."),
        (["d.e"], "d.e wrote: it fell."),
    ]


def test_two_runs_are_compared_unit_by_unit(toy: Path, cfbench: Command) -> None:
    cfbench("run", "study.yaml", "--output", "runs/one")
    cfbench(
        "run", "study.yaml", "--output", "runs/two", "--set", "models={name: times, factor: 3, label: times}"
    )
    same = cfbench("compare", "runs/one", "runs/one")
    assert same.code == 0 and "2 scores that both runs have are identical" in same.out
    other = json.loads(cfbench("compare", "runs/one", "runs/two", "--format", "json").out)
    sums = next(one for one in other["differences"] if one["metric"] == "sum")
    assert (sums["first"], sums["second"], sums["n"]) == (5.5, 6.9, 20)  # digit sums of 2n and of 3n


def test_status_of_a_finished_run_counts_cells_and_work(toy: Path, cfbench: Command) -> None:
    cfbench("run", "study.yaml", "--output", "runs/one")
    status = cfbench("status", "runs/one")
    assert status.code == 0
    lines = status.out.splitlines()
    assert lines[:3] == ["run    runs/one (toy)", "state  finished", "cells  1 ok"]
    assert lines[3].startswith("tasks  13 ok; computing took ")  # data, model, units, 5 + 5 chunks
