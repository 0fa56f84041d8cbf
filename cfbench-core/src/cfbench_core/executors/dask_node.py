"""What a Dask worker runs: it computes tasks with the executor ``process``.

A run has one executor in each Dask worker, which is ended when the run ends or has sent nothing for a while.
"""

from __future__ import annotations

import asyncio
import json
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfbench_core.config.code_references import module_path
from cfbench_core.devices.choice import CPU
from cfbench_core.devices.gpus import visible_gpus
from cfbench_core.executors import Event, Finished, Progress, Started
from cfbench_core.executors.messages import task_from_json, to_json
from cfbench_core.executors.process import CANCELLED, ProcessExecutor
from cfbench_core.lifecycle.code import library_folders
from cfbench_core.outcomes import Outcome
from cfbench_core.stages import Task
from cfbench_core.suites import Limits

POLL_SECONDS = 0.5
"""How often it is checked whether a task that is being computed is still wanted."""

IDLE_SECONDS = 60.0
"""After so long without a task the worker processes of a run end; the next task starts new ones."""

PROGRESS_SECONDS = 0.5
"""Progress is sent no more often than this."""

SHARED_SECONDS = 5.0
"""How long a new folder may take to be visible on another machine."""


def own_folders(search_path: Sequence[str]) -> list[str]:
    """Folders of the module path that are not those of installed libraries, and those of ``search_path``.

    A machine of a cluster looks for the user's own modules there, after everything else.
    """
    folders = [Path(folder) for folder in module_path(search_path)]
    return [
        str(folder.absolute())
        for folder in folders
        if folder.is_dir()
        and not any(folder.resolve().is_relative_to(installed) for installed in library_folders())
    ]


def compute_on_node(settings: str, name: str, task: str) -> str:
    """Computes a task in a worker process on this machine.

    Args:
        settings: JSON; how the run computes tasks.
        name: what events about the task are called.
        task: as JSON.

    Returns:
        JSON: ``{"outcome": "...", "output": "what it printed"}``, or ``{"problem": "..."}`` if this machine can compute no
        task of the run.

    Raises:
        Reschedule: if the task was ended because it was not wanted any more. The scheduler ignores that, unless it has
            assigned the task to this machine again meanwhile.
    """
    from distributed import Reschedule, get_worker

    worker = get_worker()
    key = worker.get_current_task()
    run = json.loads(settings)
    given = task_from_json(task)
    problem = _problem(run) or lacks_device(given)
    if problem:
        return json.dumps({"problem": problem})

    def is_wanted() -> bool:
        found = worker.state.tasks.get(key)
        return found is not None and found.state in ("executing", "long-running")

    def send(**event: Any) -> None:
        worker.log_event(run["run"], {"name": name, **event})

    outcome, output = _compute(run, worker.state.nthreads, _number(worker.name), given, send, is_wanted)
    if outcome == CANCELLED:
        raise Reschedule
    return json.dumps({"outcome": to_json(outcome), "output": output})


def lacks_device(task: Task) -> str:
    """Why a task cannot be computed with the devices of this machine; empty if it can."""
    if task.device == CPU or visible_gpus():
        return ""
    return (
        f"{platform.node()} has no GPU that torch can use, and {task.label} computes on {task.device}; start workers on "
        "machines with GPUs with --resources GPU=1 and set executor.resources: {cuda: {GPU: 1}}, or set device: cpu"
    )


def _number(name: object) -> int:
    """The number of a worker of a local cluster, 0 for others: workers of one machine begin with different GPUs."""
    return name if isinstance(name, int) else 0


async def end_run(run: str) -> None:
    """Ends everything that a run started in this Dask worker."""
    await asyncio.to_thread(_end, run)


class _Waiting:
    """The thread that waits for one task."""

    def __init__(self, task: Task, send: Callable[..., None]) -> None:
        self.task = task
        self.send = send
        self.done = threading.Event()
        self.last_progress = 0.0
        self.output = ""
        self.outcome = CANCELLED

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done >= total or now - self.last_progress >= PROGRESS_SECONDS:
            self.last_progress = now
            self.send(event="progress", done=done, total=total)


class _Node:
    """The executor of one run in this Dask worker, and the thread that waits for its events."""

    def __init__(self, run: Mapping[str, Any], tasks_at_a_time: int, number: int) -> None:
        self._run = run["run"]
        self._executor = ProcessExecutor(
            None
            if run["remote"]
            else Path(run["store_root"]),  # a store elsewhere has a cache on each machine
            remote=run["remote"],
            workers=tasks_at_a_time,
            threads=run["threads"],
            limits=Limits(**run["limits"]),
            search_path=run["search_path"],
            fresh=run["fresh"],
            log=self._printed,
            first_gpu=number,
        )
        self._waiting: dict[int, _Waiting] = {}  # by the identity of the task
        self._submitted = threading.Semaphore(0)
        self._ending = False
        # A worker process dies with the thread that started it, so this must not be one of Dask's.
        self._thread = threading.Thread(target=self._serve, name="cfbench-node", daemon=True)
        self._thread.start()

    def enter(self, task: Task, send: Callable[..., None]) -> _Waiting:
        """Submits a task. The caller holds the lock."""
        waiting = self._waiting[id(task)] = _Waiting(task, send)
        self._executor.submit(task)
        self._submitted.release()
        return waiting

    def leave(self, task: Task) -> None:
        """Forgets a task that has ended. The caller holds the lock."""
        del self._waiting[id(task)]

    def cancel(self, task: Task) -> None:
        self._executor.cancel(task)

    def end(self) -> None:
        """Ends every task and every process, and waits until they are gone."""
        self._ending = True
        with _lock:
            for waiting in self._waiting.values():
                self._executor.cancel(waiting.task)
        self._submitted.release()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while self._next() and not self._ending:
                while not self._ending and not self._handled(self._executor.wait()):
                    pass  # until one of those that were submitted has ended
        except Exception as error:
            reason = f"{platform.node()}: {type(error).__name__}: {error}"
            for waiting in list(self._waiting.values()):
                waiting.outcome = Outcome("failed", reason)
        finally:
            with _lock:
                if _nodes.get(self._run) is self:
                    del _nodes[self._run]
            self._executor.close()
            for waiting in list(self._waiting.values()):
                waiting.done.set()

    def _next(self) -> bool:
        """Waits for the next task. False: there is none for long, and this node has ended."""
        while not self._submitted.acquire(timeout=IDLE_SECONDS):
            with _lock:
                if not self._waiting:
                    _nodes.pop(self._run, None)
                    return False
        return True

    def _handled(self, event: Event) -> bool:
        """Passes an event on. Whether it is the last of its task."""
        waiting = self._waiting[id(event.task)]
        match event:
            case Started():
                waiting.send(event="started")
            case Progress(_, done, total):
                waiting.progress(done, total)
            case Finished(_, outcome):
                waiting.outcome = outcome
                waiting.done.set()
                return True
        return False

    def _printed(self, task: Task, output: str) -> None:
        self._waiting[id(task)].output = output


_lock = threading.Lock()
_nodes: dict[str, _Node] = {}
"""By run."""


def _compute(
    run: Mapping[str, Any],
    tasks_at_a_time: int,
    number: int,
    task: Task,
    send: Callable[..., None],
    is_wanted: Callable[[], bool],
) -> tuple[Outcome, str]:
    """The outcome of a task, and what it printed. A task that is not wanted any more is ended."""
    with _lock:
        node = _nodes.get(run["run"])
        if node is None:
            node = _nodes[run["run"]] = _Node(run, tasks_at_a_time, number)
        waiting = node.enter(task, send)
    try:
        while not waiting.done.wait(POLL_SECONDS):
            if not is_wanted():
                node.cancel(task)
    finally:
        with _lock:
            node.leave(task)
    return waiting.outcome, waiting.output


def _end(run: str) -> None:
    with _lock:
        node = _nodes.pop(run, None)
    if node is not None:
        node.end()


def _problem(run: Mapping[str, Any]) -> str:
    """Why this machine cannot compute tasks of a run; empty if it can."""
    if run["remote"]:
        return ""
    witness = Path(run["witness"])
    deadline = time.monotonic() + SHARED_SECONDS
    while not witness.is_dir():
        if time.monotonic() > deadline:
            return (
                f"{platform.node()} does not see the cache {run['store_root']}; all machines need the same folder under "
                "the same path: set $CFBENCH_CACHE_DIR to a shared one"
            )
        time.sleep(0.1)
    return ""
