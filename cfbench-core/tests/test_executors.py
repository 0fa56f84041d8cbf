"""Both executors, with real processes: equal results, limits that end the work, nothing left running."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from running_processes import is_running, wait_until
from sample_tasks import task

from cfbench_core.executors import Event, Executor, Finished, Progress, Started
from cfbench_core.executors.inline import InlineExecutor
from cfbench_core.executors.process import ProcessExecutor
from cfbench_core.outcomes import Outcome
from cfbench_core.stages import Task
from cfbench_core.store import Store
from cfbench_core.suites import Limits

KINDS = [InlineExecutor, ProcessExecutor]
MAKE = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MAKE]:
    """Makes executors over one store, and closes them; no process that they started may survive that."""
    with contextlib.ExitStack() as stack:

        def make(kind: type, seconds: float = 30, memory_gb: float = 4, **options: Any) -> Executor:
            arguments = {"workers": 1, "threads": 1, "search_path": [], "fresh": False, **options}
            executor = kind(
                tmp_path / "store", limits=Limits(seconds=seconds, memory_gb=memory_gb), **arguments
            )
            stack.callback(executor.close)
            return executor

        yield make
    assert running_workers() == []


def running_workers() -> list[psutil.Process]:
    """The workers of this process (other tests may have processes of their own)."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may end while it is looked at
            if "cfbench_core.executors.worker" in process.cmdline():
                found.append(process)
    return found


def finish(executor: Executor, tasks: list[Task]) -> tuple[dict[str, Outcome], list[Event]]:
    """Submits works and waits for all: outcomes by label, and all events."""
    for each in tasks:
        executor.submit(each)
    outcomes: dict[str, Outcome] = {}
    events = []
    while len(outcomes) < len(tasks):
        event = executor.wait()
        events.append(event)
        if isinstance(event, Finished):
            outcomes[event.task.label] = event.outcome
    return outcomes, events


# What both do


@pytest.mark.parametrize("kind", KINDS)
def test_every_work_is_started_and_finished_once_and_in_order(make: MAKE, kind: type) -> None:
    executor = make(kind)
    outcomes, events = finish(executor, [task("answer"), task("silent")])
    assert [type(event) for event in events] == [Started, Finished, Started, Finished]
    assert [event.task.label for event in events] == ["answer", "answer", "silent", "silent"]
    assert outcomes["answer"].status == "ok"
    assert outcomes["answer"].summary == {"answer": 42}
    again, _ = finish(executor, [task("answer")])
    assert again["answer"].status == "cached"


@pytest.mark.parametrize("kind", KINDS)
def test_progress_is_reported_between_start_and_finish(make: MAKE, kind: type) -> None:
    _, events = finish(make(kind), [task("progresses")])
    reported = [(event.done, event.total) for event in events if isinstance(event, Progress)]
    assert reported == [(1, 3), (2, 3), (3, 3)]
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_work_raises_costs_that_work_only(make: MAKE, kind: type) -> None:
    outcomes, _ = finish(
        make(kind), [task("raises"), task("leaves"), task("raises_memory_error"), task("answer")]
    )
    assert outcomes["raises"].reason == "TypeError: the first line"
    assert "executor_stages.py" in outcomes["raises"].traceback
    assert outcomes["leaves"].reason == "SystemExit: 3"
    assert outcomes["raises_memory_error"].status == "out_of_memory"
    assert outcomes["answer"].status == "ok"


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_for_nothing_is_an_error_not_a_hang(make: MAKE, kind: type) -> None:
    with pytest.raises(RuntimeError, match="nothing was submitted"):
        make(kind).wait()


@pytest.mark.parametrize("kind", KINDS)
def test_fresh_computes_what_is_there_already(make: MAKE, kind: type) -> None:
    finish(make(InlineExecutor), [task("answer")])
    outcomes, _ = finish(make(kind, fresh=True), [task("answer")])
    assert outcomes["answer"].status == "ok"


@pytest.mark.parametrize("kind", KINDS)
def test_modules_of_the_user_are_found_on_the_search_path(make: MAKE, kind: type, tmp_path: Path) -> None:
    folder = tmp_path / kind.__name__
    folder.mkdir()
    module = f"users_own_{kind.__name__.lower()}"
    (folder / f"{module}.py").write_text("def stage(task):\n    return {'mine': True}\n")
    mine = Task(**{**vars(task("answer")), "target": f"{module}:stage", "key": "c" * 64})
    executor = make(kind, search_path=[str(folder)])
    outcomes, _ = finish(executor, [mine])
    assert outcomes["answer"].summary == {"mine": True}
    executor.close()
    assert str(folder) not in sys.path


def test_numbers_are_identical_in_every_executor(tmp_path: Path) -> None:
    tasks = [task("draws", {"n": n, "pair": (1, 0.1)}, label=str(n)) for n in range(4)]
    summaries, files = [], []
    for name, kind, workers in (
        ("a", InlineExecutor, 1),
        ("b", ProcessExecutor, 1),
        ("c", ProcessExecutor, 2),
    ):
        store = Store(tmp_path / name)
        executor = kind(store.root, workers, 1, Limits(), [], False)
        try:
            outcomes, _ = finish(executor, tasks if name != "c" else tasks[::-1])
        finally:
            executor.close()
        summaries.append({label: outcome.summary for label, outcome in outcomes.items()})
        files.append([(store.path("scores", each.key) / "numbers.npy").read_bytes() for each in tasks])
    assert summaries[0] == summaries[1] == summaries[2]
    assert "'pair': [1, 0.1]" in str(summaries[0]["0"]["parameters"])
    assert files[0] == files[1] == files[2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_libraries_use_the_configured_number_of_threads(make: MAKE, kind: type, threads: int) -> None:
    np.ones((2, 2)) @ np.ones((2, 2))  # BLAS is loaded here already, with a number of its own
    before = os.environ.get("OMP_NUM_THREADS")
    outcomes, _ = finish(make(kind, threads=threads), [task("tells_threads")])
    assert outcomes["tells_threads"].summary == {"blas": [threads], "variable": str(threads)}
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_inline_is_left_by_the_keyboard(make: MAKE) -> None:
    executor = make(InlineExecutor)
    executor.submit(task("interrupts"))
    assert isinstance(executor.wait(), Started)
    with pytest.raises(KeyboardInterrupt):
        executor.wait()


# What workers are for


def test_a_work_that_never_ends_times_out_and_the_others_complete(make: MAKE) -> None:
    tasks = [task("sleeps", {"seconds": 60}), task("answer"), task("silent")]
    begin = time.monotonic()
    outcomes, _ = finish(make(ProcessExecutor, seconds=1.5), tasks)
    assert time.monotonic() - begin < 40
    assert outcomes["sleeps"].status == "timeout"
    assert re.fullmatch(r"ended after \d\.\d s \(limits\.seconds: 1\.5\)", outcomes["sleeps"].reason)
    assert 1.5 <= outcomes["sleeps"].elapsed_seconds < 10
    assert outcomes["sleeps"].peak_memory_bytes > 1e6
    assert (outcomes["answer"].status, outcomes["silent"].status) == ("ok", "ok")


def test_the_deadline_holds_though_nobody_waits_and_ends_what_the_work_started(
    make: MAKE, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    executor = make(ProcessExecutor, seconds=0.3)
    executor.submit(task("spins_with_a_child", {"flag": str(flag)}))
    assert isinstance(executor.wait(), Started)
    wait_until(flag.exists)
    time.sleep(0.05)
    pids = [int(pid) for pid in flag.read_text().split()]
    wait_until(lambda: not any(map(is_running, pids)))
    event = executor.wait()
    assert isinstance(event, Finished)
    assert event.outcome.status == "timeout"


def test_starting_a_worker_and_importing_do_not_count_against_the_deadline(
    make: MAKE, tmp_path: Path
) -> None:
    (tmp_path / "slow_to_import.py").write_text(
        "import time\ntime.sleep(2.5)\ndef stage(task):\n    return {'imported': True}\n"
    )
    slow = Task(**{**vars(task("answer")), "target": "slow_to_import:stage"})
    outcomes, _ = finish(make(ProcessExecutor, seconds=1.5, search_path=[str(tmp_path)]), [slow])
    assert outcomes["answer"].summary == {"imported": True}


@pytest.mark.parametrize("function", ["eats_memory", "feeds_a_child"])
def test_a_work_that_eats_memory_is_ended_near_the_limit(make: MAKE, function: str) -> None:
    outcomes, _ = finish(make(ProcessExecutor, memory_gb=0.5), [task(function), task("answer")])
    hungry = outcomes[function]
    assert hungry.status == "out_of_memory"
    assert hungry.reason.endswith("GB of memory (limits.memory_gb: 0.5)")
    assert 0.5e9 < hungry.peak_memory_bytes < 1.0e9
    if function == "eats_memory":
        assert hungry.peak_memory_bytes < 0.7e9
    assert outcomes["answer"].status == "ok"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_that_is_still_a_copy_of_its_worker_counts_once(make: MAKE) -> None:
    """Each command that a library runs begins as such a copy."""
    outcomes, _ = finish(make(ProcessExecutor, memory_gb=0.35), [task("forks")])
    assert outcomes["forks"].status == "ok"


@pytest.mark.slow
def test_memory_that_one_work_left_behind_is_not_held_against_the_next(make: MAKE) -> None:
    tasks = [task("holds_memory", {"n": n}, label=str(n)) for n in range(3)]
    outcomes, _ = finish(make(ProcessExecutor, memory_gb=0.35), tasks)
    assert [outcome.status for outcome in outcomes.values()] == ["ok"] * 3
    assert len({outcome.summary["pid"] for outcome in outcomes.values()}) == 3
    released = [task("caches_memory", {"n": n}, label=str(n)) for n in range(80)]
    outcomes, _ = finish(make(ProcessExecutor, memory_gb=0.33, workers=2), released)
    assert len({outcome.summary["pid"] for outcome in outcomes.values()}) <= 2  # not 80


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("leaves_at_once", "its worker ended with exit code 1"),
        ("crashes", "its worker ended by signal 11 (SIGSEGV)"),
        ("is_killed", "its worker ended by signal 9 (SIGKILL); perhaps the system was short of memory"),
    ],
)
def test_a_worker_that_dies_costs_its_work_only(
    make: MAKE, tmp_path: Path, function: str, reason: str
) -> None:
    outcomes, events = finish(make(ProcessExecutor), [task(function), task("answer")])
    assert outcomes[function].status == "failed"
    assert outcomes[function].reason == reason
    assert outcomes["answer"].status == "ok"
    assert len(events) == 4
    if function == "crashes":
        assert "in crashes" in outcomes[function].traceback  # faulthandler reported where
    assert [entry.label for entry in Store(tmp_path / "store").entries()] == ["answer"]
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


def test_the_death_of_an_idle_worker_costs_nothing(make: MAKE) -> None:
    executor = make(ProcessExecutor)
    outcomes, _ = finish(executor, [task("tells_pid")])
    os.kill(int(outcomes["tells_pid"].summary["pid"]), signal.SIGKILL)
    wait_until(lambda: not is_running(int(outcomes["tells_pid"].summary["pid"])))
    outcomes, events = finish(executor, [task("answer")])
    assert outcomes["answer"].status == "ok"
    assert len(events) == 2


def test_a_worker_that_dies_before_it_begins_a_task_costs_nothing(make: MAKE) -> None:
    """It is stopped while idle, so it receives the task and is killed without having looked at it."""
    executor = make(ProcessExecutor)
    outcomes, _ = finish(executor, [task("tells_pid")])
    pid = int(outcomes["tells_pid"].summary["pid"])
    os.kill(pid, signal.SIGSTOP)
    executor.submit(task("answer"))
    started = executor.wait()
    os.kill(pid, signal.SIGKILL)
    finished = executor.wait()
    assert isinstance(started, Started) and isinstance(finished, Finished)
    assert finished.outcome.status == "ok"


def test_what_work_prints_goes_to_the_log_and_not_into_the_answers(make: MAKE, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "output.txt"
    executor = make(ProcessExecutor, log=log)
    again = task("prints", {"again": 1}, label="prints again")
    outcomes, _ = finish(executor, [task("prints"), task("answer"), again])
    assert (outcomes["prints"].status, outcomes["prints again"].status) == ("ok", "ok")
    head, *said = log.read_text().splitlines()
    assert head.startswith("=== prints (scores ")
    assert sorted(said[:4]) == ["a warning", "from C", "from a child", '{"event": "finished"}']
    assert len(said) == 9


def test_standard_input_is_empty_for_work(make: MAKE) -> None:
    outcomes, _ = finish(make(ProcessExecutor), [task("reads_standard_input"), task("answer")])
    assert outcomes["reads_standard_input"].summary == {"read": ""}
    assert outcomes["answer"].status == "ok"


def test_a_file_named_like_a_standard_module_in_the_current_folder_does_no_harm(
    make: MAKE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise RuntimeError('not the real one')\n")
    monkeypatch.chdir(tmp_path)
    outcomes, _ = finish(make(ProcessExecutor), [task("answer")])
    assert outcomes["answer"].status == "ok"


def test_workers_keep_what_they_loaded_and_get_work_that_needs_it(make: MAKE, tmp_path: Path) -> None:
    inputs = [task("answer", {"data": name}, label=name) for name in "ab"]
    executor = make(ProcessExecutor, workers=2)
    finish(executor, inputs)
    tasks = [
        task("adds_inputs", {"n": n}, {"data": data}, label=f"{data.label}{n}")
        for data in inputs
        for n in range(5)
    ]
    outcomes, events = finish(executor, tasks)
    starts = [event.task.label for event in events if isinstance(event, Started)]
    assert starts[:2] == ["a0", "b0"]  # the second worker takes what the first has not loaded
    assert [label for label in starts if label[0] == "a"] == [f"a{n}" for n in range(5)]
    pids = {label: outcomes[label].summary["pid"] for label in starts}
    assert pids["a0"] != pids["b0"]
    for number, label in enumerate(starts):
        other = "ba"["ab".index(label[0])]
        own_is_left = any(later[0] == other for later in starts[number:])
        # Who has loaded the other input gets this one's work only when there is nothing else to do.
        assert pids[label] == pids[f"{label[0]}0"] or not own_is_left
    by_owner = [label for label in starts if pids[label] == pids[f"{label[0]}0"]]
    assert {outcomes[label].summary["loads"] for label in by_owner} == {1}  # read once, kept


def test_no_more_workers_are_started_than_needed(make: MAKE) -> None:
    executor = make(ProcessExecutor, workers=8)
    finish(executor, [task("answer"), task("silent")])
    assert 1 <= len(running_workers()) <= 2


def test_work_beyond_the_size_of_a_pipe_arrives(make: MAKE) -> None:
    outcomes, _ = finish(make(ProcessExecutor), [task("draws", {"long": "x" * 1_000_000})])
    assert len(outcomes["draws"].summary["parameters"]) > 1_000_000


# The end


def test_closing_ends_busy_workers_and_their_children_at_once(make: MAKE, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    executor = make(ProcessExecutor, workers=2)
    executor.submit(task("spins_with_a_child", {"flag": str(flag)}))
    executor.submit(task("answer"))
    executor.wait()
    wait_until(flag.exists)
    begin = time.monotonic()
    executor.close()
    assert time.monotonic() - begin < 2.0
    assert running_workers() == []
    time.sleep(0.05)
    assert not any(is_running(int(pid)) for pid in flag.read_text().split())
    assert list((tmp_path / "store" / "tmp").iterdir()) == []
    executor.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
def test_ctrl_c_in_the_terminal_does_not_reach_workers(make: MAKE) -> None:
    """It goes to the foreground process group: what becomes of the work is for the parent to decide."""
    outcomes, _ = finish(make(ProcessExecutor), [task("tells_pid")])
    assert os.getpgid(int(outcomes["tells_pid"].summary["pid"])) != os.getpgrp()
