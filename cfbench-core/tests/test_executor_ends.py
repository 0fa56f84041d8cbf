"""What is left of an executor with processes when its own process is killed or interrupted: nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_processes import popen
from running_processes import is_running, wait_until

from cfbench_core.store import Store

PARENT = """
import sys
from pathlib import Path
sys.path.insert(0, {path!r})
from sample_tasks import task
from cfbench_core.executors.process import ProcessExecutor
from cfbench_core.suites import Limits
executor = ProcessExecutor(Path({store!r}), 2, 1, Limits(), [], False)
executor.submit(task({function!r}, {{"flag": {flag!r}}}))
executor.submit(task("tells_pid"))
try:
    while True:
        event = executor.wait()
        if event.task.label == "tells_pid" and hasattr(event, "outcome"):
            print(event.outcome.summary["pid"], flush=True)
finally:
    executor.close()
"""


@contextlib.contextmanager
def parent(tmp_path: Path, function: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that runs an executor with a busy and an idle worker, and the numbers of these workers."""
    samples = str(Path(__file__).parent / "samples")
    flag = tmp_path / "flag"
    code = PARENT.format(path=samples, store=str(tmp_path / "store"), function=function, flag=str(flag))
    command = [sys.executable, "-c", code]
    with popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            idle = int(process.stdout.readline())
            wait_until(lambda: flag.exists() and flag.read_text() != "")
            workers = [idle, int(flag.read_text().split()[0])]
            assert all(map(is_running, workers))
            yield process, workers
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(
    "function",
    [
        "sleeps_after_writing",
        pytest.param(
            "never_lets_go", marks=pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
        ),
    ],
)
def test_no_worker_survives_a_parent_that_is_killed(tmp_path: Path, function: str) -> None:
    with parent(tmp_path, function) as (process, workers):
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not any(map(is_running, workers)), seconds=3)
    assert [entry.label for entry in Store(tmp_path / "store").entries()] == ["tells_pid"]
    if function == "sleeps_after_writing":
        assert len(Store(tmp_path / "store").clean_abandoned()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT")
def test_ctrl_c_ends_parent_and_workers_at_once(tmp_path: Path) -> None:
    with parent(tmp_path, "sleeps_after_writing") as (process, workers):
        begin = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the whole foreground group
        process.wait(timeout=5)
        assert time.monotonic() - begin < 3
        assert not any(map(is_running, workers))
