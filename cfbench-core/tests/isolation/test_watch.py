"""What components of other distributions change: found, reported, and without effect on others."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hostile_stages
import numpy as np
import psutil
import pytest
from sample_tasks import task

from cfbench_core.compute import compute
from cfbench_core.executors import Finished
from cfbench_core.executors.inline import InlineExecutor
from cfbench_core.executors.process import ProcessExecutor
from cfbench_core.isolation.watch import clean_up
from cfbench_core.outcomes import Outcome
from cfbench_core.stages import Task
from cfbench_core.store import Store
from cfbench_core.suites import Limits

posix = pytest.mark.skipif(sys.platform == "win32", reason="no fork")


def hostile(function: str, domain: str = "mine", number: int = 0) -> Task:
    made = task(function, {"number": number, "explainer": COMPONENT}, label=f"{function} {domain} {number}")
    return dataclasses.replace(made, target=f"hostile_stages:{function}", domain=domain)


COMPONENT = {"component": "toy/explainer/bad", "target": "mine.bad:Bad", "config": None, "options": {}}


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    shared = {"weights": np.zeros(3), "names": ["a", "b"]}
    hostile_stages.SHARED.update(shared)
    yield
    clean_up()
    hostile_stages.SHARED.update(shared)


@contextlib.contextmanager
def executor(kind: type, folder: Path, **options: Any) -> Iterator[Any]:
    arguments = {"limits": Limits(seconds=30, memory_gb=4), "search_path": [], "fresh": False, **options}
    made = kind(folder / "store", workers=1, threads=1, **arguments)
    try:
        yield made
    finally:
        made.close()


def outcomes(made: Any, tasks: list[Task]) -> list[Outcome]:
    """In the order of the tasks, each submitted when the one before has ended."""
    found = []
    for one in tasks:
        made.submit(one)
        while not isinstance(event := made.wait(), Finished):
            pass
        found.append(event.outcome)
    return found


# Inputs


def test_a_task_that_changes_nothing_is_ok(tmp_path: Path) -> None:
    unfit: list[int] = []
    outcome = compute(hostile("changes_nothing"), Store(tmp_path), unfit=lambda: unfit.append(1))
    assert (outcome.status, unfit) == ("ok", [])


def test_writing_into_an_input_fails_with_advice(tmp_path: Path) -> None:
    outcome = compute(hostile("writes_read_only"), Store(tmp_path))
    assert outcome.reason == (
        "ValueError: assignment destination is read-only "
        "(components receive read-only arrays: copy an array before changing it)"
    )


@pytest.mark.parametrize(("function", "what"), [("writes_anyway", "weights"), ("appends", "names")])
def test_a_changed_input_fails_the_task_and_names_what_changed(
    tmp_path: Path, function: str, what: str
) -> None:
    unfit: list[int] = []
    store = Store(tmp_path)
    outcome = compute(hostile(function), store, unfit=lambda: unfit.append(1))
    assert outcome.status == "failed"
    assert outcome.reason == f"explainer bad changed the model ({what}), which other components use"
    assert unfit == [1]
    assert store.entries() == []


@pytest.mark.parametrize("function", ["patches", "patches_and_raises"])
def test_a_replaced_function_fails_the_task(tmp_path: Path, function: str) -> None:
    outcome = compute(hostile(function), Store(tmp_path))
    assert outcome.reason == "explainer bad replaced numpy.argsort, which other components use"
    clean_up()
    assert np.argsort(np.array([3, 1, 2])).tolist() == [1, 2, 0]


@pytest.mark.parametrize("kind", [InlineExecutor, ProcessExecutor])
def test_a_replaced_function_changes_no_other_task(tmp_path: Path, kind: type) -> None:
    with executor(kind, tmp_path) as made:
        bad, same, other = outcomes(
            made, [hostile("patches"), hostile("sorts"), hostile("sorts", domain="", number=1)]
        )
    assert bad.status == "failed"
    assert same.summary["order"] == other.summary["order"] == [1, 2, 0]


# Processes


def test_code_of_different_origin_runs_in_different_processes(tmp_path: Path) -> None:
    domains = ["", "mine", "mine+theirs", "", "mine"]
    with executor(ProcessExecutor, tmp_path) as made:
        tasks = [hostile("tells_pid", domain, number) for number, domain in enumerate(domains)]
        pids = [outcome.summary["pid"] for outcome in outcomes(made, tasks)]
    assert len(set(pids)) == 3
    assert pids[0] == pids[3]
    assert pids[1] == pids[4]


@posix
def test_a_process_that_returns_twice_gives_one_result(tmp_path: Path) -> None:
    with executor(ProcessExecutor, tmp_path) as made:
        first, second = outcomes(made, [hostile("forks"), hostile("tells_pid")])
    assert (first.status, second.status) == ("ok", "ok")
    assert first.summary == {"done": True}


@posix
@pytest.mark.parametrize("function", ["leaves_a_daemon", "leaves_a_thread"])
def test_a_worker_with_something_left_running_is_replaced(tmp_path: Path, function: str) -> None:
    with executor(ProcessExecutor, tmp_path) as made:
        first, second = outcomes(made, [hostile(function), hostile("tells_pid")])
        assert first.summary["pid"] != second.summary["pid"]
    deadline = time.monotonic() + 3
    while sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleepers() == []


def sleepers() -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = " ".join(process.info["cmdline"] or [])
        if "os.setsid(); time.sleep(60)" in command and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


@posix
@pytest.mark.parametrize("function", ["claims_success", "writes_nonsense"])
def test_a_component_cannot_speak_for_its_worker(tmp_path: Path, function: str) -> None:
    with executor(ProcessExecutor, tmp_path) as made:
        first, second = outcomes(made, [hostile(function), hostile("tells_pid")])
    assert second.status == "ok"
    assert first.reason == "its worker sent a message that cannot be understood"
    assert not Store(tmp_path / "store").has("scores", hostile(function).key)


# Exceptions and output


@pytest.mark.parametrize("kind", [InlineExecutor, ProcessExecutor])
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("raises_a_surrogate", r"ValueError: \ud800"),
        ("raises_what_cannot_be_shown", "UnshowableError: its message cannot be shown (RuntimeError)"),
        ("raises_generator_exit", "GeneratorExit"),
        ("raises_escape_sequences", r"ValueError: \x1b[2J gone"),
    ],
)
def test_any_exception_is_one_line_that_can_be_written(
    tmp_path: Path, kind: type, function: str, reason: str
) -> None:
    with executor(kind, tmp_path) as made:
        (outcome,) = outcomes(made, [hostile(function)])
    assert (outcome.status, outcome.reason) == ("failed", reason)
    outcome.traceback.encode("utf-8")


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    outcome = compute(hostile("raises_a_long_message"), Store(tmp_path))
    assert len(outcome.reason) < 1000
    assert len(outcome.traceback) < 50_000


def test_an_interrupt_that_a_component_raises_costs_its_task_only(tmp_path: Path) -> None:
    with executor(ProcessExecutor, tmp_path) as made:
        first, second = outcomes(made, [hostile("interrupts"), hostile("tells_pid")])
    assert (first.reason, second.status) == ("KeyboardInterrupt", "ok")


def test_of_much_output_the_end_is_logged_without_control_characters(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with executor(ProcessExecutor, tmp_path, log=log) as made:
        (outcome,) = outcomes(made, [hostile("prints_much")])
    assert outcome.status == "ok"
    assert log.stat().st_size < 1_000_000
    assert "\x1b" not in log.read_text()
