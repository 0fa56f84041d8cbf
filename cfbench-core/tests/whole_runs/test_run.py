"""A run from its configuration to its tables, over the toy suite: resumed, interrupted, and with whatever goes wrong."""

from __future__ import annotations

import functools
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import toy_runs
import toy_suite
from child_processes import popen
from toy_runs import script_of, wait_for

from cfbench_core.api import prepare
from cfbench_core.errors import UserError
from cfbench_core.plan import Column
from cfbench_core.registry import Registry
from cfbench_core.run_directory import Run

configuration = functools.partial(toy_runs.configuration, count=20)
run = functools.partial(toy_runs.run, count=20)


def statuses(run: Run) -> dict[str, str]:
    return {str(cell.labels["explainer"]): cell.status for cell in run.cells()}


def test_a_run_ends_in_the_tables_of_the_contract(registry: Registry, tmp_path: Path) -> None:
    done = run(registry, tmp_path / "run")
    sums = done.scores[done.scores["metric"] == "sum"].set_index("unit")["value"]
    assert sums.to_dict() == {str(n): float(sum(map(int, str(2 * n)))) for n in range(20)}
    assert list(done.scores.columns[:9]) == [
        "cell", "suite", "dataset", "model", "explainer", "metric", "unit", "value", "status",
    ]  # fmt: skip
    assert set(done.scores["status"]) == {"ok"}
    assert done.exit_code == 0
    files = {path.name for path in done.directory.iterdir()}
    assert files >= {
        "config.yaml", "environment.json", "plan.json", "outcomes.jsonl", "scores.parquet", "explanations.parquet",
        "costs.parquet", "quality.csv", "summary.csv", "report.html",
    }  # fmt: skip
    assert done.config["seed"] == 0
    assert done.config["limits"] == {"seconds": 1800.0, "memory_gb": 8.0, "gpu_memory_gb": 8.0}


def test_a_range_may_be_bounded_on_one_side(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bounded(name: str, direction: str, range: tuple[float, float] | None = None) -> Column:
        return Column(name, direction, (0, math.inf) if range else (-math.inf, 100))

    monkeypatch.setattr(toy_suite, "Column", bounded)
    done = Run(run(registry, tmp_path / "run").directory)
    assert {column.name: column.range for cell in done.cells() for column in cell.columns} == {
        "sum": (-math.inf, 100),
        "noise": (0, math.inf),
    }

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    json.loads((done.directory / "plan.json").read_text(), parse_constant=refuse)


def test_the_summaries_of_data_sets_and_models_are_stored(registry: Registry, tmp_path: Path) -> None:
    done = run(registry, tmp_path / "run")
    assert len(done.summaries("data")) == len(done.summaries("model")) == 1
    (reported,) = done.summaries("model").values()
    assert reported["quality"]
    assert done.summaries("scores") == {}


def test_executors_workers_order_and_chunks_change_nothing(
    registry: Registry, tmp_path: Path, monkeypatch: Any
) -> None:
    expected = None
    for name, changes in {
        "inline": {},
        "one worker": {"executor": "process", "workers": 1},
        "two workers": {"executor": "process", "workers": 2},
        "other chunks": {"chunk": 7},
        "one chunk": {"chunk": 100},
    }.items():
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "caches" / name))
        written = (run(registry, tmp_path / name, **changes).directory / "scores.parquet").read_bytes()
        if "chunk" in name:  # rows come in another order: metric by metric within a chunk
            continue
        expected = expected or written
        assert written == expected, name
    columns = ["cell", "metric", "unit"]
    tables = [
        Run(tmp_path / name).scores.sort_values(columns).reset_index(drop=True)
        for name in ("inline", "other chunks", "one chunk")
    ]
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])


def test_a_second_run_computes_nothing_and_finds_the_same(registry: Registry, tmp_path: Path) -> None:
    first = run(registry, tmp_path / "a")
    second = run(registry, tmp_path / "b")
    assert statuses(first) == {"digits": "ok"} and statuses(second) == {"digits": "cached"}
    ends = [
        json.loads(line)["status"] for line in (second.directory / "outcomes.jsonl").read_text().splitlines()
    ]
    assert set(ends) == {"cached"}
    for table in ("scores.parquet", "explanations.parquet", "costs.parquet"):
        assert (first.directory / table).read_bytes() == (second.directory / table).read_bytes()


def test_only_what_changed_is_computed_again(registry: Registry, tmp_path: Path) -> None:
    run(registry, tmp_path / "a")
    other = run(registry, tmp_path / "b", explainers=[{"name": "digits", "base": 8}])
    ends = [json.loads(line) for line in (other.directory / "outcomes.jsonl").read_text().splitlines()]
    assert {end["kind"] for end in ends if end["status"] == "cached"} == {"data", "model", "units"}
    assert {end["kind"] for end in ends if end["status"] == "ok"} == {"explanations", "scores"}


def test_fresh_computes_again(registry: Registry, tmp_path: Path) -> None:
    run(registry, tmp_path / "a")
    assert statuses(run(registry, tmp_path / "a", fresh=True)) == {"digits": "ok"}


@pytest.mark.parametrize(
    ("misbehave", "status", "said"),
    [
        ("raise", "failed", "ValueError: seven is not for me"),
        ("hang", "timeout", "4"),
        pytest.param("eat", "out_of_memory", "0.4", marks=pytest.mark.slow),
        ("die", "failed", "signal 9"),
        pytest.param("exit", "failed", "3", marks=pytest.mark.slow),
    ],
)
def test_a_failure_costs_its_own_units_only(
    registry: Registry, tmp_path: Path, misbehave: str, status: str, said: str
) -> None:
    done = run(
        registry,
        tmp_path / "run",
        executor="process",
        workers=2,
        limits={"seconds": 4.0, "memory_gb": 0.4},
        explainers=["digits", {"name": "digits", "label": "bad", "misbehave": misbehave}],
    )
    assert statuses(done) == {"digits": "ok", "bad": "partial"}
    bad = done.scores[done.scores["explainer"] == "bad"]
    lost = bad[bad["status"] != "ok"]
    assert set(lost["status"]) == {status} and set(lost["unit"]) == {
        "4",
        "5",
        "6",
        "7",
    }  # the chunk of number 7
    assert lost["value"].isna().all() and set(lost["metric"]) == {"sum", "noise"}
    assert len(bad) == 40
    assert said in next(cell.reason for cell in done.cells("partial"))
    assert done.exit_code == 1
    summary = done.summary.set_index(["explainer", "metric"])
    assert (summary.loc[("bad", "sum"), "n"], summary.loc[("bad", "sum"), "n_missing"]) == (16, 4)
    good = done.scores[(done.scores["explainer"] == "digits") & (done.scores["metric"] == "sum")]
    assert len(good) == 20 and set(good["status"]) == {"ok"}
    if misbehave == "raise":
        assert "seven is not for me" in next((done.directory / "logs").glob("*.txt")).read_text()


def test_what_failed_is_tried_again_and_the_rest_is_not(registry: Registry, tmp_path: Path) -> None:
    flag = tmp_path / "exists"
    bad = [{"name": "digits", "misbehave": f"wait:{flag}"}]
    limited = {"executor": "process", "workers": 1, "limits": {"seconds": 4.0}}
    assert statuses(run(registry, tmp_path / "run", explainers=bad, **limited)) == {"digits": "partial"}
    flag.touch()
    done = run(registry, tmp_path / "run", explainers=bad, **limited)
    assert statuses(done) == {"digits": "ok"} and set(done.scores["status"]) == {"ok"}


def test_skipped_cells_stand_in_the_plan_with_their_reason(registry: Registry, tmp_path: Path) -> None:
    done = run(registry, tmp_path / "run", explainers=["digits", {"name": "digits", "label": "skipped"}])
    assert statuses(done) == {"digits": "ok", "skipped": "skipped"}
    assert done.exit_code == 0
    nothing = run(registry, tmp_path / "none", explainers=[{"name": "digits", "label": "skipped"}])
    assert nothing.exit_code == 3


def test_a_directory_of_another_configuration_is_not_overwritten(registry: Registry, tmp_path: Path) -> None:
    run(registry, tmp_path / "run")
    with pytest.raises(UserError, match=r"another configuration \(different: seed\)"):
        run(registry, tmp_path / "run", seed=1)
    run(registry, tmp_path / "run", fresh=True, seed=1)


@pytest.mark.slow
def test_printing_does_not_disturb_a_worker(registry: Registry, tmp_path: Path) -> None:
    printing = [{"name": "digits", "misbehave": "print"}]
    assert statuses(run(registry, tmp_path / "run", executor="process", explainers=printing)) == {
        "digits": "ok"
    }


@pytest.mark.parametrize("executor", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_killed_in_the_middle_it_resumes_and_ends_in_the_same_bytes(tmp_path: Path, executor: str) -> None:
    flag = tmp_path / "go"
    waiting = configuration(
        executor=executor, workers=2, explainers=[{"name": "digits", "misbehave": f"wait:{flag}"}]
    )
    script = script_of(waiting, tmp_path / "killed")
    child = popen([sys.executable, "-c", script])
    log = tmp_path / "killed" / "outcomes.jsonl"
    wait_for(child, tmp_path / "killed")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    flag.touch()
    subprocess.run([sys.executable, "-c", script], check=True)
    resumed = (tmp_path / "killed" / "scores.parquet").read_bytes()
    ends = [json.loads(line)["status"] for line in log.read_text().splitlines()]
    assert "cached" in ends

    undisturbed = script_of(waiting, tmp_path / "whole")
    environment = {**os.environ, "CFBENCH_CACHE_DIR": str(tmp_path / "another cache")}
    subprocess.run([sys.executable, "-c", undisturbed], check=True, env=environment)
    assert (tmp_path / "whole" / "scores.parquet").read_bytes() == resumed


@pytest.mark.slow
def test_ctrl_c_leaves_at_once_and_nothing_running(tmp_path: Path) -> None:
    waiting = configuration(executor="process", explainers=[{"name": "digits", "misbehave": "hang"}])
    script = script_of(waiting, tmp_path / "run")
    child = popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    wait_for(child, tmp_path / "run")
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert child.returncode != 0 and "KeyboardInterrupt" in said
    assert not (tmp_path / "run" / ".lock").exists()


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_workers_that_cannot_be_is_refused_as_the_command_refuses_it(
    registry: Registry, workers: Any
) -> None:
    with pytest.raises(UserError) as caught:
        prepare(configuration(), registry=registry, workers=workers)
    assert caught.value.lines == (f"workers: must be a whole number >= 1, got {workers!r}",)


def test_a_plan_is_shown_in_one_line(registry: Registry) -> None:
    plan = prepare(configuration(), registry=registry).plan
    skipped = len(plan.cells) - len(plan.to_run)
    assert repr(plan) == f"Plan(suite='toy', {len(plan.to_run)} cells to run, {skipped} skipped)"
