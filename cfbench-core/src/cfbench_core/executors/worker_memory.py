"""What a worker process holds beyond what it has imported, after a task. What it can release is no leak.

A worker caches inputs and models for its next tasks, and its libraries take memory that a fresh worker would take as well.
Only what remains of a task when the caches are empty is a leak, and is a reason to replace the worker.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from typing import Any

import psutil

from cfbench_core.child_processes import children_of

SHARE = 0.5
"""A worker that holds more than this share of the memory limit empties its caches, and is replaced if that does not help."""


class WorkerMemory:
    """The resident memory of this process, and the part of it that is imported code (``floor``).

    Args:
        limit: of a task, in bytes.
    """

    def __init__(self, limit: float) -> None:
        self._most = limit * SHARE
        self._process = psutil.Process()
        self.floor = self._arrived = self._resident()

    def task_arrived(self) -> None:
        """A task is about to import what it needs."""
        self._arrived = self._resident()

    def task_begins(self) -> None:
        """It has imported that."""
        self.floor += max(0, self._resident() - self._arrived)

    def holds_too_much(self) -> bool:
        """Whether tasks and the processes that they started have left too much memory in use."""
        return self._resident() - self.floor + _memory_of_children(self._process) > self._most

    def _resident(self) -> int:
        return int(self._process.memory_info().rss)


def _memory_of_children(process: psutil.Process) -> int:
    total = 0
    for child in children_of(process):
        with contextlib.suppress(psutil.Error):
            total += int(child.memory_info().rss)
    return total


def empty_caches() -> None:
    """Releases the inputs and the models that this process has loaded."""
    from cfbench_core import stages

    stages.forget_loaded()
    lifecycle: Any = sys.modules.get("cfbench_core.lifecycle.stages")
    if lifecycle is not None:
        lifecycle.forget_models()
    gc.collect()
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # a C library other than glibc
            ctypes.CDLL(None).malloc_trim(0)
