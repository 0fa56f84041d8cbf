"""Dask's own command lines in processes of their own, and how all processes that a test causes are found."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from child_processes import popen

MARK = "CFBENCH_TEST_OF_DASK"
"""The environment variable by which all processes of a test are found."""


def marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


class Commands:
    """Dask's own command lines, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scheduler(self, **settings: str) -> str:
        """Starts a scheduler on a free port; its address."""
        self.process = self._start("scheduler", "--port", "0", "--no-dashboard", "--no-show", **settings)
        file = self.folder / "scheduler.json"
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self.address = str(json.loads(file.read_text())["address"])
        assert self.address.startswith("tcp://127.0.0.1:")
        return self.address

    def worker(self, threads: int = 1, **environment: str) -> subprocess.Popen[Any]:
        """Starts a worker; it may take a moment to join."""
        return self._start(
            "worker", "--nthreads", str(threads), "--no-nanny", "--no-dashboard",
            "--local-directory", str(self.folder), **environment,
        )  # fmt: skip

    def _start(self, command: str, *arguments: str, **environment: str) -> subprocess.Popen[Any]:
        where = ["--host", "127.0.0.1", "--scheduler-file", str(self.folder / "scheduler.json")]
        with (self.folder / f"{command}.log").open("ab") as log:
            return popen(
                [sys.executable, "-m", "dask", command, *where, *arguments],
                stdout=log, stderr=log, env={**os.environ, **environment},
            )  # fmt: skip
