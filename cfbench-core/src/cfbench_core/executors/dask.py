"""Computes on the machines of a Dask cluster, each with the executor ``process``.

Needs ``pip install 'cfbench-core[dask]'`` on every machine, the same versions everywhere, and a cache that all of them see
under the same path (``$CFBENCH_CACHE_DIR`` in a shared folder).

A Dask worker computes as many tasks at a time as it has threads. Its threads only wait: each task runs in a worker
process of the executor ``process``, which applies the time limit and the memory limit, survives crashes and stores the
result in the shared cache. Dask carries JSON: tasks to the machines, outcomes and progress back. Machines may join and
leave during a run; the tasks of a machine that is lost are computed again elsewhere.

    executor: {name: dask, address: "tcp://10.0.0.1:8786"}     # a scheduler that runs already
    executor: {name: dask, cluster: local, workers: 4}         # processes on this machine
    executor:                                                  # any deployer of Dask
      name: dask
      cluster: dask_jobqueue.SLURMCluster
      workers: 20
      cluster_options: {cores: 8, memory: 32GB, walltime: "04:00:00"}
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import secrets
import threading
from collections import deque
from collections.abc import Collection, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cfbench_core.config import Help, Range
from cfbench_core.devices.choice import CPU, CUDA
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.executors import Event, Finished, Progress, Started
from cfbench_core.executors.dask_cluster import LOCAL, ClusterProcess, deployer_problem
from cfbench_core.executors.dask_node import compute_on_node, end_run, own_folders
from cfbench_core.executors.messages import outcome_from_json, to_json
from cfbench_core.executors.output_log import OutputLog
from cfbench_core.lifecycle.same_code import code_of
from cfbench_core.outcomes import Outcome
from cfbench_core.plain_text import one_line
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Task
from cfbench_core.stores import Remote, open_store
from cfbench_core.suites import Limits

MOST_SUBMISSIONS = 25
"""How often a task is submitted because the machines that computed it were lost. A scheduler itself starts a task up
to four times (Dask's setting ``scheduler.allowed-failures``), so that is 100 lost machines."""

CLOSE_SECONDS = 10.0
"""What the machines may take to end the tasks of a run that is closed."""

SPEC = ComponentSpec(
    id="core/executor/dask",
    summary="Machines of a Dask cluster (Slurm, Kubernetes, ...), with the limits of process",
    target=f"{__name__}:DaskExecutor",
    config=f"{__name__}:DaskConfig",
)

T = TypeVar("T")


ADAPTIVE = (
    *("minimum", "maximum", "minimum_cores", "maximum_cores", "minimum_memory", "maximum_memory"),
    *("interval", "wait_count", "target_duration"),
)
"""Arguments of ``Cluster.adapt``."""


@dataclass(frozen=True, kw_only=True)
class DaskConfig:
    """Where the tasks are computed."""

    address: Annotated[str | None, Help("of a scheduler that runs already, tcp://host:8786")] = None
    cluster: Annotated[
        str | None,
        Help("started for the run: local (default), or a class such as dask_jobqueue.SLURMCluster"),
    ] = None
    workers: Annotated[
        int | None, Range(minimum=1), Help("of the cluster; none: workers of the experiment, if local")
    ] = None
    adaptive: Annotated[
        dict[str, Any], Help("in place of workers: {minimum: 0, maximum: 20}, as Cluster.adapt takes it")
    ] = field(default_factory=dict)
    cluster_options: Annotated[dict[str, Any], Help("arguments of the cluster's class")] = field(
        default_factory=dict
    )
    resources: Annotated[
        dict[str, Any],
        Help("of Dask, that tasks on a GPU, or of a kind, need: {cuda: {GPU: 1}, model: {BIG: 1}}"),
    ] = field(default_factory=dict)
    connect_timeout: Annotated[float, Range(above=0), Help("seconds until the scheduler must answer")] = 30.0

    def __post_init__(self) -> None:
        if self.address is not None:
            given = [
                name for name in ("cluster", "workers", "adaptive", "cluster_options") if getattr(self, name)
            ]
            if given:
                raise ValueError(
                    f"{' and '.join(given)} cannot stand next to address: that scheduler has its workers"
                )
        problem = deployer_problem(self.cluster) if self.cluster is not None else ""
        if problem:
            raise ValueError(f"cluster: {problem}")
        if self.workers is not None and self.adaptive:
            raise ValueError("give either workers or adaptive")
        if self.cluster not in (None, LOCAL) and self.workers is None and not self.adaptive:
            raise ValueError(f"{self.cluster} needs workers (their number), or adaptive: {{maximum: 20}}")
        for name, number in self.adaptive.items():
            if name in ("minimum", "maximum") and (type(number) is not int or number < 0):
                raise ValueError(f"adaptive.{name}: must be a whole number, got {number!r}")
            if name not in ADAPTIVE:
                raise ValueError(f"adaptive.{name}: unknown key.{did_you_mean(name, ADAPTIVE)}")
        if self.adaptive.get("minimum", 0) > self.adaptive.get("maximum", float("inf")):
            raise ValueError("adaptive: minimum is above maximum")
        for kind, needed in self.resources.items():
            if not isinstance(needed, Mapping) or not all(
                type(n) in (int, float) and n > 0 for n in needed.values()
            ):
                raise ValueError(
                    f"resources.{kind}: must be a mapping of names to numbers above 0, such as {{GPU: 1}}"
                )

    def check_kinds(self, kinds: Collection[str]) -> None:
        """
        Raises:
            UserError: if ``resources`` names something else than ``cuda`` or a kind of task of the study.
        """
        known = sorted({CUDA, *kinds})
        for kind in self.resources:
            if kind not in known:
                raise UserError(
                    f"executor.resources.{kind}: the study has no tasks of this kind."
                    f"{did_you_mean(kind, known)} Kinds: {', '.join(known)}"
                )

    @property
    def auto_device(self) -> str:
        """What ``device: auto`` means. The machines may differ from this one: the configuration says whether they have GPUs,
        by the resources of tasks that need one."""
        return CUDA if CUDA in self.resources else CPU

    @property
    def on_this_machine(self) -> bool:
        """Whether all tasks are computed on this machine."""
        return self.address is None and self.cluster in (None, LOCAL)

    def resources_of(self, task: Task) -> dict[str, float]:
        """The resources of Dask that a task needs."""
        on_gpu = {} if task.device == CPU else self.resources.get(CUDA, {})
        return {**self.resources.get(task.kind, {}), **on_gpu}

    @property
    def sends(self) -> str:
        """What the reader of a configuration should know (see ``used_components.trust_notes``)."""
        if self.address is not None:
            return f"tasks to the Dask scheduler at {one_line(self.address, 100)}, which can run code here"
        return f"jobs to {self.cluster}" if self.cluster not in (None, LOCAL) else ""


class DaskExecutor:
    """Up to as many tasks at a time as the cluster has threads; for the arguments see :mod:`cfbench_core.executors`.

    Raises:
        UserError: where Dask is missing, the cluster cannot be started or the scheduler does not answer.
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
        config: DaskConfig | None = None,
    ) -> None:
        require_distributed()
        self._config = config or DaskConfig()
        self._store = open_store(store_root, remote)
        self._log_output = OutputLog(log)
        self._run = f"cfbench-{secrets.token_hex(8)}"
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._events: deque[Event] = deque()
        self._tasks: dict[str, _Submitted] = {}  # by the name that Dask knows
        self._futures: dict[str, Any] = {}  # of Dask, by the same name
        self._number = 0
        self._client: Any = None
        self._cluster: ClusterProcess | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cfbench-dask", daemon=True)
        self._thread.start()
        # On each machine its presence shows that the cache is the same folder.
        self._witness: Path | None = self._store.begin()
        self._settings = json.dumps(
            {
                "run": self._run,
                "store_root": str(Path(store_root).absolute()),
                "remote": remote,
                "witness": str(self._witness.absolute()),
                "threads": threads,
                "limits": asdict(limits),
                "search_path": own_folders(search_path),
                "fresh": fresh,
            }
        )
        try:
            self._connect(workers)
        except BaseException:
            self.close()
            raise

    def submit(self, task: Task) -> None:
        self._number += 1
        name = f"{self._run}-{self._number}"
        self._tasks[name] = _Submitted(task)
        text = to_json(replace(task, code=code_of(task)))
        self._tasks[name].following = self._start(self._compute(name, self._config.resources_of(task), text))

    def wait(self) -> Event:
        while not self._events:
            if not self._tasks:
                raise RuntimeError("nothing was submitted: there is nothing to wait for")
            try:
                message = self._inbox.get(timeout=1.0)
            except queue.Empty:
                continue  # gives Ctrl-C a chance on systems where waiting cannot be interrupted
            self._handle(message)
        return self._events.popleft()

    def close(self) -> None:
        self._events.clear()
        if self._client is not None:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                self._start(self._disconnect()).result(timeout=2 * CLOSE_SECONDS + 5)
            self._client = None
        for submitted in self._tasks.values():
            if submitted.following is not None:
                submitted.following.cancel()
        self._tasks.clear()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        if self._witness is not None:
            self._store.abandon(self._witness)
            self._witness = None

    # The cluster; coroutines run in the thread of the event loop

    def _connect(self, workers: int) -> None:
        config = self._config
        address = config.address
        if address is None:
            local = config.cluster in (None, LOCAL)
            number = config.workers or (workers if local and not config.adaptive else None)
            self._cluster = ClusterProcess(
                config.cluster or LOCAL, number, config.adaptive, config.cluster_options
            )
            address = self._cluster.address
        self._start(self._open(address)).result()

    async def _open(self, address: str) -> None:
        from distributed import Client

        seconds = self._config.connect_timeout
        client = Client(address, asynchronous=True, timeout=seconds, set_as_default=False, name=self._run)
        try:
            self._client = await asyncio.wait_for(client, seconds + 1)
            self._client.subscribe_topic(self._run, self._heard)
        except (OSError, TimeoutError, ValueError) as error:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.close(timeout=1), 2)
            raise UserError(
                f"executor dask: no Dask scheduler answers at {one_line(address, 100)} within {seconds:g} s; "
                "start one with 'dask scheduler', or correct executor.address "
                f"({one_line(str(error) or type(error).__name__, 150)})"
            ) from None

    async def _disconnect(self) -> None:
        with contextlib.suppress(Exception):
            # First: the scheduler must not give the tasks that end now to another machine.
            await asyncio.wait_for(self._client.cancel(list(self._futures.values())), CLOSE_SECONDS)
            ending = self._client.run(end_run, self._run, on_error="ignore")
            await asyncio.wait_for(ending, CLOSE_SECONDS)
        await self._client.close(timeout=2)

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _compute(self, name: str, resources: Mapping[str, float], task: str) -> None:
        """Has one task computed, and puts what came of it into the inbox."""
        try:
            self._inbox.put(_Message(name, "answer", await self._answer(name, resources, task)))
        except asyncio.CancelledError:  # the executor is closed
            raise
        except Exception as error:
            self._inbox.put(_Message(name, "error", error))
        finally:
            self._futures.pop(name, None)

    async def _answer(self, name: str, resources: Mapping[str, float], task: str) -> Mapping[str, Any]:
        from distributed import KilledWorker

        for number in range(MOST_SUBMISSIONS):
            self._futures[name] = self._client.submit(
                compute_on_node,
                self._settings,
                name,
                task,
                key=f"{name}-{number}",
                pure=False,
                resources=resources or None,
            )
            try:
                answer: Mapping[str, Any] = json.loads(await self._futures[name])
                return answer
            except KilledWorker:
                continue
        return {
            "outcome": to_json(
                Outcome("failed", f"the machines that computed it were lost {4 * MOST_SUBMISSIONS} times")
            ),
            "output": "",
        }

    def _heard(self, event: tuple[float, Any]) -> None:
        """An event that a machine sent: a task has started, or proceeds."""
        message = event[1]
        self._inbox.put(_Message(message["name"], message["event"], message))

    # What came of it

    def _handle(self, message: _Message) -> None:
        submitted = self._tasks.get(message.name)
        if submitted is None:  # it has ended
            return
        if message.event == "error":
            raise _as_user_error(message.content, submitted.task)
        if "problem" in message.content:
            raise UserError(f"executor dask: {one_line(str(message.content['problem']), 500)}")
        if not submitted.started:
            submitted.started = True
            self._events.append(Started(submitted.task))
        if message.event == "progress":
            done, total = int(message.content["done"]), int(message.content["total"])
            self._events.append(Progress(submitted.task, done, total))
        elif message.event == "answer":
            del self._tasks[message.name]
            self._log_output(submitted.task, message.content["output"])
            self._events.append(Finished(submitted.task, outcome_from_json(message.content["outcome"])))


@dataclass
class _Submitted:
    """A task that Dask has; ``following`` waits for its outcome."""

    task: Task
    started: bool = False
    following: Future[None] | None = None


@dataclass(frozen=True)
class _Message:
    """Something about the task that Dask knows as ``name``: "started", "progress", "answer" or "error"."""

    name: str
    event: str
    content: Any


def require_distributed() -> None:
    """Imports ``distributed``.

    Raises:
        UserError: where it is missing or cannot be imported; says how to get it.
    """
    try:
        import distributed  # noqa: F401
    except Exception as error:  # a half-installed package may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name == "distributed"
        reason = "" if missing else f" ({one_line(f'{type(error).__name__}: {error}', 200)})"
        raise UserError(
            f"executor dask needs distributed{reason}: pip install 'cfbench-core[dask]'"
        ) from error


def _as_user_error(error: BaseException, task: Task) -> UserError:
    from distributed.client import FutureCancelledError

    if isinstance(error, FutureCancelledError):
        return UserError(
            "executor dask: the connection to the scheduler was lost; run the same command again to go on "
            f"with what is missing ({one_line(str(error), 150)})"
        )
    reason = one_line(f"{type(error).__name__}: {error}", 300)
    return UserError(
        f"executor dask: a Dask worker could not take {task.kind} {one_line(task.label, 100)}: {reason}; "
        "install the same versions of cfbench and distributed on every machine"
    )
