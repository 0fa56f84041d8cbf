"""A worker process: reads tasks, one JSON line each, computes them, and reports progress, one JSON line each.

Started by :mod:`cfbench_core.executors.process` as ``python -m cfbench_core.executors.worker``, so users need
no ``if __name__ == "__main__"``. The first line is the settings, every other one a task with a random ticket:
``{"ticket": "5d1f...", "task": "..."}``. Answers are ``{"event": "waiting"}`` while another process
computes the same, ``{"event": "begun"}``, ``{"event": "progress", "done": 3,
"total": 10}`` and ``{"event": "finished", "ticket": "5d1f...", "outcome": "...", "unfit": false, "forgot": false}``; a
worker that is unfit must not get another task, and one that forgot has no inputs loaded any more.

The end of standard input means that nobody wants the results any more: the worker and all that it started
end, even in the midst of work.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

PROGRESS_SECONDS = 0.1
"""Progress is reported no more often than this."""

GOODBYE_SECONDS = 5.0
"""How long an idle worker may take to end by itself when its parent is gone."""


def main() -> None:
    incoming, outgoing = private_channel()
    settings = json.loads(incoming.readline())
    _die_with(int(settings["parent"]))
    _end_first_without_memory()
    _adopt_orphans()
    faulthandler.enable()  # a crash in C leaves its Python stack in the log
    sys.path[:] = settings["search_path"]
    _Worker(settings, incoming, outgoing).run()


class _Worker:
    def __init__(self, settings: dict[str, Any], incoming: IO[str], outgoing: IO[str]) -> None:
        from cfbench_core.executors.worker_memory import WorkerMemory
        from cfbench_core.stores import open_store
        from cfbench_core.usable_memory import TASK_MEMORY

        os.environ[TASK_MEMORY] = str(int(settings["memory_bytes"]))
        self.store = open_store(Path(settings["store_root"]), settings["remote"])
        self.threads = int(settings["threads"])
        self.fresh = bool(settings["fresh"])
        self.incoming = incoming
        self.outgoing = outgoing
        self.sending = threading.Lock()  # a stage may report its progress from any thread
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.busy = False
        self.unfit = False
        self.last_progress = 0.0
        self.memory = WorkerMemory(float(settings["memory_bytes"]))

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        while (line := self.lines.get()) is not None:
            self.busy = True
            self.task(line)
            self.busy = False

    def listen(self) -> None:
        """Always reading, so the end of the parent is seen also while a stage computes."""
        for line in self.incoming:
            self.lines.put(line)
        if not self.busy:
            self.lines.put(None)
            time.sleep(GOODBYE_SECONDS)
        end_own_group()

    def task(self, line: str) -> None:
        from cfbench_core.compute import compute
        from cfbench_core.executors.messages import task_from_json, to_json
        from cfbench_core.executors.worker_memory import empty_caches
        from cfbench_core.threads import limited_threads

        self.last_progress = 0.0
        self.memory.task_arrived()
        message = json.loads(line)
        with limited_threads(self.threads):
            outcome = compute(
                task_from_json(message["task"]),
                self.store,
                self.report,
                self.fresh,
                begin=self.begin,
                unfit=self.give_up,
                interruptible=False,
                waiting=lambda: self.send(event="waiting"),
            )
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):  # a component closed it
                self.give_up()
        forgot = self.memory.holds_too_much()
        if forgot:
            empty_caches()
            self.unfit |= self.memory.holds_too_much()
        self.send(
            event="finished",
            ticket=message["ticket"],
            outcome=to_json(outcome),
            unfit=self.unfit,
            forgot=forgot,
        )

    def begin(self) -> None:
        self.memory.task_begins()
        self.send(event="begun")

    def give_up(self) -> None:
        """Requests that the parent replaces this worker."""
        self.unfit = True

    def report(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done >= total or now - self.last_progress >= PROGRESS_SECONDS:
            self.last_progress = now
            self.send(event="progress", done=int(done), total=int(total))

    def send(self, **message: Any) -> None:
        with self.sending:
            self.outgoing.write(json.dumps(message) + "\n")
            self.outgoing.flush()


def private_channel() -> tuple[IO[str], IO[str]]:
    """Standard input and output as files of our own; what anybody prints goes to standard error (the log)
    from now on.

    Programs that a stage starts do not inherit either: they can neither read tasks nor write events.
    """
    incoming = os.fdopen(os.dup(0), "r", encoding="utf-8")
    outgoing = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def _die_with(parent: int) -> None:
    """Requests that Linux kill this process when its parent ends, even while code in C holds the interpreter.

    What the worker itself has started is not reached by that; everywhere else it is ended with the worker.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it ended before the request
        end_own_group()


def _end_first_without_memory() -> None:
    """Requests that Linux, when the system is out of memory, ends this process before others."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _adopt_orphans() -> None:
    """Requests that Linux make processes that leave their parent children of this one, so that they end with it."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(36, 1)  # 36 is PR_SET_CHILD_SUBREAPER


def end_own_group() -> None:
    """Ends this process and those it started, without any goodbye."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
