"""Computes everything in the calling process, one task after the other: for debuggers and very small experiments."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from cfbench_core.compute import compute
from cfbench_core.executors import Event, Finished, Progress, Started
from cfbench_core.executors.messages import task_from_json, to_json
from cfbench_core.isolation.watch import clean_up
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Task
from cfbench_core.stores import Remote, open_store
from cfbench_core.suites import Limits
from cfbench_core.threads import limited_threads

SPEC = ComponentSpec(
    id="core/executor/inline",
    summary="One task after the other in the calling process, without limits; for debugging",
    target=f"{__name__}:InlineExecutor",
)


class InlineExecutor:
    """No other process, so nothing can end a task: limits are not enforced, and a crash ends the run.

    Tasks are computed inside :meth:`wait`, in the thread that calls it, so breakpoints and Ctrl-C work as usual, what a
    task prints is seen at once, and its progress is reported at its end.

    Components of other distributions run in the same process as everything else. What they change there is found and put
    back as far as that is possible (inputs, replaced functions, settings of the process); only the executor ``process``
    keeps them apart.
    """

    def __init__(
        self,
        store_root: Path,
        workers: int,
        threads: int,
        limits: Limits,
        search_path: Sequence[str],
        fresh: bool,
        log: Path | None = None,
        remote: Remote | None = None,
    ) -> None:
        self._store = open_store(store_root, remote)
        self._threads = threads
        self._fresh = fresh
        self._pending: deque[Task] = deque()
        self._events: deque[Event] = deque()
        self._begun: Task | None = None
        self._added = [folder for folder in search_path if folder not in sys.path]
        sys.path += self._added  # last: no file there replaces a module of Python or of a library

    def submit(self, task: Task) -> None:
        self._pending.append(task)

    def wait(self) -> Event:
        if self._events:
            return self._events.popleft()
        if self._begun is not None:
            task, self._begun = self._begun, None
            self._compute(task)
            return self._events.popleft()
        if not self._pending:
            raise RuntimeError("nothing was submitted: there is nothing to wait for")
        self._begun = self._pending.popleft()
        return Started(self._begun)

    def close(self) -> None:
        self._pending.clear()
        self._events.clear()
        for folder in self._added:
            if folder in sys.path:
                sys.path.remove(folder)
        self._added = []

    def _compute(self, task: Task) -> None:
        def report(done: int, total: int) -> None:
            self._events.append(Progress(task, int(done), int(total)))

        same = task_from_json(
            to_json(task)
        )  # as it would arrive in another process: lists for tuples, and so on
        with limited_threads(self._threads):
            outcome = compute(same, self._store, report, self._fresh, unfit=clean_up)
        self._events.append(Finished(task, outcome))
