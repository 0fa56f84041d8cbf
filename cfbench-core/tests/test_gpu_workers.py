"""Worker processes on GPUs, with a list of GPUs that are not there: each worker sees one, or none."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_tasks import task

from cfbench_core.devices.gpus import SHARE, VISIBLE, WORKSPACE, Gpu
from cfbench_core.executors import Finished, Started
from cfbench_core.executors.process import ProcessExecutor
from cfbench_core.stages import Task
from cfbench_core.suites import Limits

GIB = 2**30
TWO = (Gpu("GPU-aa11", 24 * GIB), Gpu("GPU-bb22", 24 * GIB))
ON_GPU = "cuda, no TF32, deterministic"
Make = Callable[..., ProcessExecutor]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with contextlib.ExitStack() as stack:

        def make(workers: int, gpus: Any, gpu_memory_gb: float = 8, **options: Any) -> ProcessExecutor:
            limits = Limits(seconds=60, gpu_memory_gb=gpu_memory_gb)
            executor = ProcessExecutor(
                tmp_path / "store", workers, 1, limits, [], fresh=False, gpus=gpus, **options
            )
            stack.callback(executor.close)
            return executor

        yield make


def gpu_report(number: int, on_gpu: bool = True, waits_for: str = "", domain: str = "") -> Task:
    """A task that reports which GPUs its process sees, once a file has appeared."""
    given = task("reports_gpu", {"number": number, "waits_for": waits_for})
    return replace(given, device=ON_GPU if on_gpu else "cpu", domain=domain, label=f"task {number}")


def found(executor: ProcessExecutor, tasks: list[Task]) -> dict[str, dict[str, Any]]:
    """What each task reported, by label."""
    for one in tasks:
        executor.submit(one)
    return finished(executor, len(tasks))


def finished(executor: ProcessExecutor, count: int) -> dict[str, dict[str, Any]]:
    reports: dict[str, dict[str, Any]] = {}
    while len(reports) < count:
        event = executor.wait()
        if isinstance(event, Finished):
            assert event.outcome.done, event.outcome.traceback
            reports[event.task.label] = dict(event.outcome.summary)
    return reports


@pytest.mark.slow
def test_workers_get_gpus_in_turn_and_tasks_on_the_cpu_see_none(make: Make, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    executor = make(4, TWO)
    tasks = [gpu_report(number, on_gpu=number < 3, waits_for=str(flag)) for number in range(4)]
    for one in tasks:
        executor.submit(one)
    for _ in tasks:  # all four at once
        assert isinstance(executor.wait(), Started)
    flag.touch()
    reports = finished(executor, 4)
    visible = [reports[f"task {number}"][VISIBLE] for number in range(4)]
    assert visible == ["GPU-aa11", "GPU-bb22", "GPU-aa11", ""]
    shares = [reports[f"task {number}"][SHARE] for number in range(4)]
    assert shares == ["0.5", "0.5", "0.5", None]
    (name, value), *_ = WORKSPACE.items()
    assert [reports[f"task {number}"][name] for number in range(4)] == [value, value, value, None]


@pytest.mark.slow
def test_no_more_workers_than_a_gpu_has_memory_for_while_the_cpu_works_on(make: Make, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    executor = make(4, TWO[:1], gpu_memory_gb=20)  # a place for one worker
    for number in range(3):
        executor.submit(gpu_report(number, waits_for=str(flag)))
    executor.submit(gpu_report(3, on_gpu=False))
    first = [executor.wait() for _ in range(2)]
    assert {event.task.label for event in first if isinstance(event, Started)} == {"task 0", "task 3"}
    assert "task 3" in finished(executor, 1)
    flag.touch()
    reports = finished(executor, 3)
    assert {report["pid"] for report in reports.values()} == {reports["task 0"]["pid"]}
    assert {report[VISIBLE] for report in reports.values()} == {"GPU-aa11"}
    assert reports["task 0"][SHARE] == "1.0"


@pytest.mark.slow
def test_an_idle_worker_makes_place_for_the_code_of_others(make: Make) -> None:
    executor = make(2, TWO[:1], gpu_memory_gb=20)
    reports = found(executor, [gpu_report(0), gpu_report(1, domain="another"), gpu_report(2)])
    assert len({report["pid"] for report in reports.values()}) in (2, 3)
    assert reports["task 1"]["pid"] not in {reports["task 0"]["pid"], reports["task 2"]["pid"]}
    assert {report[VISIBLE] for report in reports.values()} == {"GPU-aa11"}


@pytest.mark.slow
def test_the_place_of_a_worker_that_died_is_given_out_again(make: Make) -> None:
    executor = make(1, TWO[:1])
    executor.submit(replace(task("leaves_at_once"), device=ON_GPU))
    executor.submit(gpu_report(0))
    outcomes = {}
    while len(outcomes) < 2:
        event = executor.wait()
        if isinstance(event, Finished):
            outcomes[event.task.label] = event.outcome
    assert outcomes["leaves_at_once"].status == "failed"
    assert outcomes["task 0"].summary[VISIBLE] == "GPU-aa11"


@pytest.mark.slow
def test_another_first_gpu_for_another_executor_of_the_machine(make: Make) -> None:
    visible = [found(make(1, TWO, first_gpu=n), [gpu_report(n)])[f"task {n}"][VISIBLE] for n in range(3)]
    assert Counter(visible) == {"GPU-aa11": 2, "GPU-bb22": 1}


@pytest.mark.slow
def test_without_gpus_the_environment_stays_as_it_is(make: Make) -> None:
    reports = found(make(2, ()), [gpu_report(0), gpu_report(1, on_gpu=False)])
    assert [reports[f"task {n}"][VISIBLE] for n in range(2)] == [os.environ.get(VISIBLE)] * 2
