"""What a Dask worker does for a run, without Dask: it computes tasks, and ends what nobody wants any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from dask_commands import wait_until
from sample_tasks import task
from toy_runs import SAMPLES

from cfbench_core.devices.gpus import Gpu
from cfbench_core.executors import dask_node


@pytest.fixture
def run_settings(tmp_path: Path) -> dict[str, Any]:
    return {
        "run": "cfbench-test",
        "store_root": str(tmp_path / "store"),
        "remote": None,
        "witness": str(tmp_path),
        "threads": 1,
        "limits": {"seconds": 30.0, "memory_gb": 4.0},
        "search_path": [str(SAMPLES)],
        "fresh": False,
    }


def test_the_worker_processes_of_a_run_end_when_it_is_idle(
    run_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_node, "IDLE_SECONDS", 0.2)
    pids = []
    for number in range(2):
        tells = task("tells_pid", {"number": number})
        outcome, _ = dask_node._compute(run_settings, 1, 0, tells, lambda **event: None, lambda: True)
        pids.append(outcome.summary["pid"])
        wait_until(lambda pid=outcome.summary["pid"]: not psutil.pid_exists(pid))
    assert pids[0] != pids[1]


def test_a_task_that_is_not_wanted_any_more_is_ended(run_settings: dict[str, Any], tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    sleeps = task("sleeps_after_writing", {"flag": str(flag)})
    outcome, _ = dask_node._compute(
        run_settings, 1, 0, sleeps, lambda **event: None, lambda: not flag.exists()
    )
    assert (outcome.status, outcome.reason) == ("failed", "cancelled")
    dask_node._end("cfbench-test")
    assert not psutil.pid_exists(int(flag.read_text()))


def test_a_machine_without_the_shared_folder_says_so(
    run_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_node, "SHARED_SECONDS", 0.1)
    assert dask_node._problem(run_settings) == ""
    problem = dask_node._problem({**run_settings, "witness": "/no/such/folder"})
    assert "does not see the cache" in problem and "$CFBENCH_CACHE_DIR" in problem


@pytest.mark.slow
def test_workers_of_a_local_cluster_begin_with_different_gpus(
    run_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = (Gpu("GPU-aa11", 2**34), Gpu("GPU-bb22", 2**34))
    monkeypatch.setattr("cfbench_core.executors.process.visible_gpus", lambda: gpus)
    monkeypatch.setattr(dask_node, "visible_gpus", lambda: gpus)
    seen = []
    for name in (0, 1, "tcp://127.0.0.1:4001"):  # of Dask workers, each in a process of its own
        reporting = replace(task("reports_gpu", {"waits_for": "", "name": str(name)}), device="cuda, no TF32")
        assert dask_node.lacks_device(reporting) == ""
        number = dask_node._number(name)
        outcome, _ = dask_node._compute(
            run_settings, 1, number, reporting, lambda **event: None, lambda: True
        )
        seen.append(outcome.summary["CUDA_VISIBLE_DEVICES"])
        dask_node._end("cfbench-test")
    assert seen == ["GPU-aa11", "GPU-bb22", "GPU-aa11"]


def test_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_node, "visible_gpus", lambda: ())
    assert dask_node.lacks_device(task("answer")) == ""
    problem = dask_node.lacks_device(replace(task("answer"), device="cuda, no TF32, deterministic"))
    assert "has no GPU that torch can use, and answer computes on cuda" in problem
    assert "executor.resources: {cuda: {GPU: 1}}" in problem and "device: cpu" in problem
