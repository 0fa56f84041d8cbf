"""The processes that a process started."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil


def children_of(process: psutil.Process) -> list[psutil.Process]:
    """All that a process started, and what these started in turn; none of a process that has ended.

    psutil reads the state of every process of the machine for this. Linux says of one process whether it has any, so
    there the many that have none cost next to nothing.
    """
    threads = Path(f"/proc/{process.pid}/task")
    with contextlib.suppress(OSError):  # another system, or a process or thread that is just ending
        if threads.is_dir() and not any((one / "children").read_bytes() for one in threads.iterdir()):
            return []
    with contextlib.suppress(psutil.Error):
        found: list[psutil.Process] = process.children(recursive=True)
        return found
    return []
