"""Finding the processes that a process started."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from cfbench_core.child_processes import children_of

SLEEP = "import time; time.sleep(60)"
# starts a child from a thread, which lists it as its own, and says when
GRANDPARENT = f"""
import subprocess, sys, threading, time
def start():
    subprocess.Popen([sys.executable, "-c", {SLEEP!r}])
    print("started", flush=True)
    time.sleep(60)
threading.Thread(target=start).start()
"""


@contextmanager
def running(program: str, lines: int = 0) -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as started:
        process = psutil.Process(started.pid)
        try:
            assert started.stdout is not None
            for _ in range(lines):
                started.stdout.readline()
            yield process
        finally:
            for child in process.children(recursive=True):
                child.kill()
            started.kill()


def test_a_process_without_children_has_none() -> None:
    with running(SLEEP) as process:
        assert children_of(process) == []


def test_children_that_a_thread_started_are_found_as_psutil_finds_them() -> None:
    with running(GRANDPARENT, lines=1) as process:
        found = children_of(process)
        assert len(found) == 1 and found == process.children(recursive=True)
        assert len(children_of(psutil.Process())) >= 2  # children of children too


def test_a_process_that_has_ended_has_none() -> None:
    with running("") as process:
        deadline = time.monotonic() + 30
        while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.01)
        assert children_of(process) == []
    assert children_of(process) == []
