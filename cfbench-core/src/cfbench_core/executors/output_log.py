"""The file in which the output of tasks is stored."""

from __future__ import annotations

from pathlib import Path

from cfbench_core.plain_text import visible
from cfbench_core.stages import Task

MOST_LOGGED_BYTES = 10_000_000
"""What tasks print is stored until the log has this size."""


class OutputLog:
    """Appends what tasks printed to a file; without a path it stores nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __call__(self, task: Task, output: str) -> None:
        if self._path is None or not output:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            if file.tell() < MOST_LOGGED_BYTES:
                file.write(f"=== {visible(task.label)} ({task.kind} {task.key[:16]})\n{output.rstrip()}\n")
