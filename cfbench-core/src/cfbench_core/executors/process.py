"""Computes in worker processes, and ends what takes too long or too much memory.

Workers are reused: what they imported and loaded serves the next task. Tasks that run code of other distributions get
workers of their own (see ``isolation/domains.py``), and so do tasks that compute on a GPU: a worker sees one GPU, or none
(see ``devices/gpus.py``). A thread monitors the workers, so limits hold whatever the caller does
meanwhile. A crash costs one task only: a fresh worker takes the next.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfbench_core.config.code_references import module_path
from cfbench_core.devices.choice import CPU
from cfbench_core.devices.gpus import Gpu, Places, hidden, visible_gpus
from cfbench_core.executors import Event, Finished, Progress, Started
from cfbench_core.executors.backlog import Backlog
from cfbench_core.executors.messages import outcome_from_json
from cfbench_core.executors.output_log import OutputLog
from cfbench_core.executors.worker_process import WorkerProcess
from cfbench_core.outcomes import Outcome
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Task
from cfbench_core.stores import Remote, open_store
from cfbench_core.suites import Limits

POLL_SECONDS = 0.05
"""The shortest interval between checks of the limits."""

LONGEST_POLL_SECONDS = 0.25
"""The longest one, where no limit is near; or longer where a check of many workers takes long, see POLL_SHARE."""

BYTES_A_SECOND = 16e9
"""The memory of a task is supposed to grow no faster."""

POLL_SHARE = 0.1
"""The share of time that checks of the limits may take."""

CHILDREN_SECONDS = 0.5
"""The interval at which processes that workers started are looked for: it may take longer than weighing them."""

IMPORT_SECONDS = 300.0
"""What a worker may take to start and to import a component, unless the time limit of its task is higher."""

GOODBYE_SECONDS = 1.0
"""What idle workers may take to end by themselves when the executor is closed."""

SPARE = 2
"""Idle workers of other pools that stay alive, in addition to the number of workers that compute."""

CANCELLED = Outcome("failed", "cancelled")

SPEC = ComponentSpec(
    id="core/executor/process",
    summary="Worker processes; each task has a time limit and a memory limit",
    target=f"{__name__}:ProcessExecutor",
)


class ProcessExecutor:
    """Up to ``workers`` processes, started as needed; for the arguments see :mod:`cfbench_core.executors`.

    ``log`` may also be a function that receives each task with its output, before the task's event ``Finished``.
    ``gpus``: those that workers get in turn; those that this process may use if None. ``first_gpu``: the number of the one
    that is given out first.
    """

    def __init__(
        self,
        store_root: Path | None,
        workers: int,
        threads: int,
        limits: Limits,
        search_path: Sequence[str],
        fresh: bool,
        log: Path | Callable[[Task, str], None] | None = None,
        remote: Remote | None = None,
        gpus: Sequence[Gpu] | None = None,
        first_gpu: int = 0,
    ) -> None:
        self._store = open_store(store_root, remote)
        self._size = workers
        self._threads = threads
        self._limits = limits
        self._log_output = log if callable(log) else OutputLog(log)
        gpus = visible_gpus() if gpus is None else gpus
        self._places = Places(gpus, workers, limits.gpu_memory_gb, first_gpu)
        self._settings = {
            "store_root": str(self._store.root.absolute()),
            "remote": remote,
            "search_path": module_path(search_path),
            "fresh": fresh,
            "memory_bytes": self._memory_limit,
        }
        self._submitted: queue.SimpleQueue[Task] = queue.SimpleQueue()  # by any thread
        self._backlog = Backlog()
        self._events: deque[Event] = deque()
        self._workers: list[WorkerProcess] = []
        self._idle: dict[int, WorkerProcess] = {}  # by identity, the one that has waited longest first
        self._inbox: queue.SimpleQueue[tuple[WorkerProcess | None, Any]] = queue.SimpleQueue()
        self._closing = False
        self._wake = threading.Event()  # set when the watching thread must look at once
        self._watcher = threading.Thread(target=self._watch, name="cfbench-limits", daemon=True)
        self._watcher.start()

    def submit(self, task: Task) -> None:
        """May be called by another thread than the one that waits."""
        self._submitted.put(task)
        self._inbox.put((None, None))

    def cancel(self, task: Task) -> None:
        """Ends a submitted task, also one that is being computed; its outcome is "failed".

        May be called by another thread than the one that waits.
        """
        self._inbox.put((None, task))

    def wait(self) -> Event:
        self._dispatch()
        while not self._events:
            if len(self._idle) == len(self._workers):
                raise RuntimeError("nothing was submitted: there is nothing to wait for")
            try:
                worker, message = self._inbox.get(timeout=1.0)
            except queue.Empty:
                continue  # gives Ctrl-C a chance on systems where waiting cannot be interrupted
            if worker is None and message is not None:
                self._cancel(message)
            elif worker in self._workers:
                self._handle(worker, message)
            self._dispatch()
        return self._events.popleft()

    def close(self) -> None:
        self._closing = True
        self._wake.set()
        self._watcher.join()
        self._backlog.clear()
        self._events.clear()
        busy = [worker for worker in self._workers if worker.task]
        idle = [worker for worker in self._workers if not worker.task]
        for worker in idle:
            worker.dismiss()
        for worker in busy:
            worker.end()
        deadline = time.monotonic() + GOODBYE_SECONDS
        for worker in idle:
            worker.wait(max(0.0, deadline - time.monotonic()))
            worker.end()
        for worker in self._workers:
            worker.release()
        self._workers = []
        if busy:
            self._store.clean_abandoned()

    # Who gets what

    def _accept(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._backlog.add(self._submitted.get_nowait())

    def _dispatch(self) -> None:
        """Gives tasks to idle workers as long as there are both."""
        self._accept()
        while self._backlog and len(self._workers) - len(self._idle) < self._size:
            pools = [pool for pool in self._backlog.pools if self._has_room(pool)]
            if not pools:
                return  # until a worker on a GPU has finished
            idle = [worker for worker in self._idle.values() if worker.pool in pools]
            if not idle:
                idle = [self._new_worker(self._backlog.oldest(pools[0]), pools)]
            worker, task = self._backlog.best_pair(idle)
            if worker.give(task):
                del self._idle[id(worker)]
                self._backlog.remove(task)
                self._backlog.has_loaded(worker, worker.loaded)
                self._events.append(Started(task))
            else:
                self._retire(worker)

    def _needs_place(self, task: Task) -> bool:
        """Whether a task needs a place on a GPU, of those that there are."""
        return task.device != CPU and bool(self._places)

    def _has_room(self, pool: str) -> bool:
        """Whether a worker of the pool may compute: always on the CPU; else if it has a place on a GPU, or can get one."""
        if not self._needs_place(self._backlog.oldest(pool)) or self._places.free:
            return True
        return any(worker.place is not None for worker in self._idle.values())

    def _new_worker(self, task: Task, wanted: Collection[str]) -> WorkerProcess:
        """A new worker for the pool of a task, in place of an idle one of another pool where that is in its way."""
        on_gpu = self._needs_place(task)
        idle = list(self._idle.values())
        if on_gpu and not self._places.free:
            idle = [worker for worker in idle if worker.place is not None]
        elif len(self._workers) < self._size + SPARE:
            idle = []
        if idle:
            self._retire(min(idle, key=lambda worker: (worker.pool in wanted, worker.given)))
        place = self._places.take() if on_gpu else None
        environment = place.environment() if place else hidden() if self._places else {}
        worker = WorkerProcess(
            self._settings, self._threads, self._inbox, self._wake, task, place, environment
        )
        self._workers.append(worker)
        self._idle[id(worker)] = worker
        return worker

    # What came of it

    def _handle(self, worker: WorkerProcess, message: Any) -> None:
        if isinstance(message, BaseException):
            raise message
        if message is None:
            self._buried(worker)
        elif message["event"] == "progress" and worker.task is not None:
            self._events.append(Progress(worker.task, message["done"], message["total"]))
        elif message["event"] == "finished":
            self._finished(worker, message)

    def _finished(self, worker: WorkerProcess, message: Mapping[str, Any]) -> None:
        try:
            outcome, unfit = outcome_from_json(message["outcome"]), bool(message["unfit"])
            forgot = bool(message["forgot"])
        except (ValueError, KeyError, TypeError, AttributeError):  # a component forged it
            outcome = Outcome("failed", "its worker sent an outcome that cannot be understood")
            unfit = forgot = True
        with worker.lock:
            task, worker.task = worker.task, None
            condemned = worker.verdict is not None  # too late: it had just finished, but it is being ended
        if task is None:  # a component sent a message in the name of its worker
            self._retire(worker)
            return
        self._idle[id(worker)] = worker
        self._log_output(task, worker.take_output())
        self._events.append(Finished(task, outcome))
        worker.is_fresh = False
        if condemned or unfit:
            self._retire(worker)
        elif forgot:
            worker.loaded.clear()
            self._backlog.has_loaded(worker, ())

    def _buried(self, worker: WorkerProcess) -> None:
        """A worker has ended, by itself or by verdict; its task, if any, ends with it."""
        task, begun = worker.task, worker.begun
        last_words = worker.take_output()
        reason = worker.died_of()
        self._retire(worker)
        if task is None or (self._may_be_the_workers_fault(worker) and self._compute_afresh(task)):
            return
        self._log_output(task, last_words)
        self._events.append(
            Finished(
                task,
                worker.verdict
                or Outcome(
                    "failed",
                    reason,
                    f"{reason}\n\nIts last words:\n{last_words[-5000:]}",
                    elapsed_seconds=time.monotonic() - begun if begun else 0.0,
                    peak_memory_bytes=worker.highest_memory,
                ),
            )
        )

    def _may_be_the_workers_fault(self, worker: WorkerProcess) -> bool:
        """Whether a task ended for what its worker did before: it was killed while idle, just before it received the
        task, or earlier tasks may have left the memory in use."""
        if worker.is_fresh:
            return False
        if worker.verdict is None:
            return worker.begun is None
        return worker.verdict.status == "out_of_memory"

    def _compute_afresh(self, task: Task) -> bool:
        """Gives a task to a new worker, in place of the one that has ended; False if that one is dead as well."""
        worker = self._new_worker(task, (task.pool,))
        if not worker.give(task):
            self._retire(worker)
            return False
        del self._idle[id(worker)]
        self._backlog.has_loaded(worker, worker.loaded)
        return True

    def _cancel(self, task: Task) -> None:
        self._accept()
        for waiting in self._backlog:
            if waiting is task:
                self._backlog.remove(waiting)
                self._events += [Started(task), Finished(task, CANCELLED)]
        for worker in self._workers:
            if worker.task is task:
                worker.condemn(CANCELLED)

    def _retire(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        self._idle.pop(id(worker), None)
        self._backlog.has_loaded(worker, ())
        worker.end()
        worker.release()
        if worker.place is not None:
            self._places.give_back(worker.place)
        self._store.clean_abandoned()

    # Limits

    @property
    def _memory_limit(self) -> float:
        return self._limits.memory_gb * 1e9

    def _watch(self) -> None:
        """Ends work that is beyond its limits, and reports workers that have ended; a thread of its own."""
        pause, looked = POLL_SECONDS, 0.0
        while True:
            woken = self._wake.wait(pause)
            self._wake.clear()
            if self._closing:
                return
            started = time.monotonic()
            look = started - looked >= CHILDREN_SECONDS
            looked = started if look else looked
            pauses = [self._checked(worker, look) for worker in list(self._workers)]
            took = time.monotonic() - started
            # A worker that is silent is about to end, and has when it is looked at again.
            pause = max(POLL_SECONDS if woken else min([self._pause_of_new, *pauses]), took / POLL_SHARE)

    def _checked(self, worker: WorkerProcess, look_for_children: bool) -> float:
        """Reports a worker that has ended, and ends one that is beyond its limits; the seconds until the next check."""
        try:
            if worker.reported:
                return LONGEST_POLL_SECONDS
            if not worker.is_over():
                worker.limit_output()
                return self._judge(worker, look_for_children)
            worker.reported = True
            self._inbox.put((worker, None))
        except Exception as error:  # limits that silently hold no more would be worse than the end of the run
            self._inbox.put((worker, error))
        return LONGEST_POLL_SECONDS

    def _judge(self, worker: WorkerProcess, look_for_children: bool) -> float:
        """Ends a worker whose task is beyond its limits; the seconds until the task may be, within those of polls."""
        memory = worker.memory(look_for_children) if worker.task else 0
        with worker.lock:
            if worker.task is None or worker.verdict is not None:
                return LONGEST_POLL_SECONDS
            worker.verdict = self._verdict(worker, memory)
        if worker.verdict is not None:
            worker.kill()
            return POLL_SECONDS
        _, since, allowed = self._time_limit(worker)
        return _pause(self._memory_limit - memory, since + allowed - time.monotonic())

    @property
    def _pause_of_new(self) -> float:
        """The seconds until a task that is given now may be beyond its limits."""
        return _pause(self._memory_limit, self._limits.seconds)

    def _time_limit(self, worker: WorkerProcess) -> tuple[bool, float, float]:
        """Whether a task is being imported, since when the time for that or for computing counts, and how much it is."""
        begun = worker.begun
        if begun is None:
            return True, worker.given, max(IMPORT_SECONDS, self._limits.seconds)
        return False, begun, self._limits.seconds

    def _verdict(self, worker: WorkerProcess, memory: int) -> Outcome | None:
        now = time.monotonic()
        if memory > self._memory_limit:
            elapsed = now - (worker.begun or worker.given)
            return Outcome(
                "out_of_memory",
                f"ended at {memory / 1e9:.2f} GB of memory (limits.memory_gb: {self._limits.memory_gb:g})",
                elapsed_seconds=elapsed,
                peak_memory_bytes=memory,
            )
        importing, since, allowed = self._time_limit(worker)
        if now - since <= allowed:
            return None
        return Outcome(
            "timeout",
            f"ended after {now - since:.1f} s of importing it"
            if importing
            else f"ended after {now - since:.1f} s (limits.seconds: {allowed:g})",
            elapsed_seconds=now - since,
            peak_memory_bytes=worker.highest_memory,
        )


def _pause(bytes_left: float, seconds_left: float) -> float:
    """Seconds until the next check of a task that has so much left of its limits."""
    return min(max(POLL_SECONDS, min(bytes_left / BYTES_A_SECOND, seconds_left)), LONGEST_POLL_SECONDS)
