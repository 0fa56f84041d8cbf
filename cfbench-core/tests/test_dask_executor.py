"""The executor on Dask, with real schedulers and workers in other processes, all of them on 127.0.0.1."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from child_processes import end_all, popen
from dask_commands import MARK, Commands, marked, wait_until
from sample_tasks import task
from toy_runs import SAMPLES, configuration

from cfbench_core.api import execute, prepare
from cfbench_core.errors import UserError
from cfbench_core.executors import Event, Executor, Finished, Progress, Started
from cfbench_core.executors.dask import DaskConfig, DaskExecutor
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.registry import Registry
from cfbench_core.stages import Task
from cfbench_core.store import Store
from cfbench_core.suites import Limits

pytest.importorskip("distributed", reason="needs distributed: pip install 'cfbench-core[dask]'")

LOCAL = DaskConfig(workers=2)


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Every process that a test causes ends, wherever it was started; its mark."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(SAMPLES)
    yield mark
    end_all()
    wait_until(lambda: not marked(mark), seconds=10)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., DaskExecutor]]:
    """Makes executors over one store, and closes them."""
    with contextlib.ExitStack() as stack:

        def make(config: DaskConfig, seconds: float = 30, memory_gb: float = 4, **options: Any) -> Any:
            arguments = {"workers": 1, "threads": 1, "search_path": [], "fresh": False, **options}
            limits = Limits(seconds=seconds, memory_gb=memory_gb)
            executor = DaskExecutor(tmp_path / "store", limits=limits, config=config, **arguments)
            stack.callback(executor.close)
            return executor

        yield make


def finish(executor: Executor, tasks: list[Task]) -> tuple[dict[str, Outcome], list[Event]]:
    """Submits tasks and waits for all: outcomes by label, and all events."""
    for each in tasks:
        executor.submit(each)
    outcomes: dict[str, Outcome] = {}
    events = []
    while len(outcomes) < len(tasks):
        event = executor.wait()
        events.append(event)
        if isinstance(event, Finished):
            outcomes[event.task.label] = event.outcome
    return outcomes, events


@pytest.fixture
def dask(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


# A local cluster


@pytest.mark.slow
def test_a_task_on_a_gpu_ends_the_run_where_a_machine_has_none(make: Callable[..., DaskExecutor]) -> None:
    executor = make(LOCAL)
    executor.submit(replace(task("answer"), device="cuda, no TF32, deterministic"))
    with pytest.raises(
        UserError, match=r"executor dask: .* has no GPU that torch can use, and answer computes on cuda"
    ):
        while True:
            executor.wait()


def test_outcomes_are_those_of_worker_processes(make: Callable[..., DaskExecutor], tmp_path: Path) -> None:
    log = tmp_path / "logs" / "output.txt"
    executor = make(LOCAL, seconds=15, memory_gb=0.5, threads=2, log=log)
    sleeps = task("sleeps", {"seconds": 60})
    functions = [
        "answer",
        "progresses",
        "prints",
        "raises",
        "crashes",
        "eats_memory",
        "is_killed",
        "tells_threads",
    ]
    outcomes, events = finish(executor, [sleeps, *map(task, functions)])
    assert outcomes["answer"].summary == {"answer": 42}
    assert outcomes["raises"].reason == "TypeError: the first line"
    assert "executor_stages.py" in outcomes["raises"].traceback
    assert outcomes["crashes"].reason == "its worker ended by signal 11 (SIGSEGV)"
    assert outcomes["is_killed"].status == "failed"
    assert outcomes["eats_memory"].status == "out_of_memory"
    assert outcomes["eats_memory"].peak_memory_bytes > 0.5e9
    assert outcomes["tells_threads"].summary == {"blas": [2], "variable": "2"}
    assert outcomes["sleeps"].status == "timeout"
    assert outcomes["sleeps"].reason.endswith("(limits.seconds: 15)")
    assert "=== prints (scores " in log.read_text() and "from a child" in log.read_text()
    for label in outcomes:
        own = [event for event in events if event.task.label == label]
        assert isinstance(own[0], Started) and isinstance(own[-1], Finished)
        assert all(isinstance(event, Progress) for event in own[1:-1])
    progress = [event for event in events if isinstance(event, Progress)]
    assert (progress[-1].task.label, progress[-1].done, progress[-1].total) == ("progresses", 3, 3)
    again, _ = finish(executor, [task("answer")])
    assert again["answer"].status == "cached"
    with pytest.raises(RuntimeError, match="nothing was submitted"):
        executor.wait()


@pytest.mark.slow
def test_closing_ends_busy_workers_and_every_server_is_local(
    make: Callable[..., DaskExecutor], tmp_path: Path, nothing_is_left: str
) -> None:
    flag = tmp_path / "flag"
    executor = make(LOCAL)
    executor.submit(task("spins_with_a_child", {"flag": str(flag)}))
    assert isinstance(executor.wait(), Started)
    wait_until(flag.exists)
    processes = marked(nothing_is_left)
    assert len(processes) >= 5  # the cluster, two Dask workers, a worker process and its child
    addresses = {
        connection.laddr.ip
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}
    begin = time.monotonic()
    executor.close()
    assert time.monotonic() - begin < 10
    assert marked(nothing_is_left) == []
    assert list((tmp_path / "store" / "tmp").iterdir()) == []
    executor.close()


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {samples!r})
from sample_tasks import task
from cfbench_core.executors.dask import DaskConfig, DaskExecutor
from cfbench_core.suites import Limits
executor = DaskExecutor(Path({store!r}), 1, 1, Limits(), [], False, config=DaskConfig({config}))
executor.submit(task("sleeps_after_writing", {{"flag": {flag!r}}}))
try:
    while True:
        executor.wait()
finally:
    executor.close()
"""
"""Without ``if __name__ == "__main__"``: a cluster must not import it again."""


@contextlib.contextmanager
def running_script(tmp_path: Path, config: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A script that runs an executor, and the number of the process that computes its task."""
    file, flag = tmp_path / "script.py", tmp_path / "flag"
    text = SCRIPT.format(samples=str(SAMPLES), store=str(tmp_path / "store"), flag=str(flag), config=config)
    file.write_text(text)
    with popen([sys.executable, str(file)], stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: flag.exists() and flag.read_text() != "")
        yield process, int(flag.read_text())


@pytest.mark.slow
def test_ctrl_c_ends_a_script_and_its_cluster(tmp_path: Path, nothing_is_left: str) -> None:
    with running_script(tmp_path, "workers=1") as (process, _):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the whole foreground group
        _, errors = process.communicate(timeout=20)
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert errors.count("Traceback") == 1
    assert marked(nothing_is_left) == []


@pytest.mark.slow
def test_a_local_cluster_does_not_survive_a_script_that_is_killed(
    tmp_path: Path, nothing_is_left: str
) -> None:
    with running_script(tmp_path, "workers=1") as (process, _):
        process.kill()
        process.communicate(timeout=20)
        wait_until(lambda: not marked(nothing_is_left))


@pytest.mark.slow
def test_a_killed_run_ends_its_tasks_on_workers_that_stay(dask: Commands, tmp_path: Path) -> None:
    address = dask.scheduler()
    worker = dask.worker()
    with running_script(tmp_path, f"address={address!r}") as (process, computing):
        assert psutil.pid_exists(computing)
        process.kill()
        process.communicate(timeout=20)
        wait_until(lambda: not psutil.pid_exists(computing))
    assert worker.poll() is None


# Machines that join and leave


class Interruptions:
    """An observer: kills all Dask workers when the number 7 is being explained, and starts another one."""

    def __init__(self, dask: Commands, go: Path) -> None:
        self.dask = dask
        self.go = go
        self.workers = [dask.worker(), dask.worker()]
        self.killed = False

    def started(self, task: Task) -> None:
        if task.kind == "explanations" and task.chunk == (4, 8):
            for worker in self.workers:
                os.killpg(worker.pid, signal.SIGKILL)
            self.killed = True
            self.dask.worker(threads=2)
            self.go.touch()

    def progress(self, task: Task, done: int, total: int) -> None: ...

    def finished(self, task: Task, outcome: Outcome, done: int, total: Total) -> None: ...


@pytest.mark.slow
def test_results_are_identical_though_machines_are_lost_and_others_join(
    dask: Commands, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A scheduler that gives a task up as soon as it has lost one machine: the run submits it again.
    address = dask.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    go = tmp_path / "go"
    chaos = Interruptions(dask, go)
    runs = {}
    for name, executor in {
        "dask": {"name": "dask", "address": address},
        "inline": "inline",
        "process": "process",
    }.items():
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / f"cache-{name}"))
        explainers = [
            {"name": "digits", "misbehave": f"wait:{go}"},
            {"name": "digits", "base": 3, "label": "three"},
        ]
        document = configuration(12, explainers=explainers, chunk=4, executor=executor, workers=2)
        prepared = prepare(document, registry=registry)
        runs[name] = execute(prepared, out=tmp_path / name, observer=chaos if name == "dask" else None)
        assert runs[name].exit_code == 0
    assert chaos.killed
    for table in ("scores.parquet", "explanations.parquet"):
        first, *others = [(run.directory / table).read_bytes() for run in runs.values()]
        assert all(other == first for other in others)
    notes = runs["dask"].directory / "outcomes.jsonl"
    assert {json.loads(line)["status"] for line in notes.read_text().splitlines()} == {"ok"}


@pytest.mark.slow
def test_a_task_that_every_machine_loses_fails_in_the_end(
    dask: Commands, make: Callable[..., DaskExecutor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfbench_core.executors.dask.MOST_SUBMISSIONS", 2)
    address = dask.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    executor = make(DaskConfig(address=address))
    flag = tmp_path / "flag"
    executor.submit(task("sleeps_after_writing", {"flag": str(flag)}))
    for _ in range(2):
        worker = dask.worker()
        wait_until(lambda: flag.exists() and flag.read_text() != "")
        computing = int(flag.read_text())
        os.killpg(worker.pid, signal.SIGKILL)
        wait_until(lambda pid=computing: not psutil.pid_exists(pid))
        flag.unlink()
    assert isinstance(executor.wait(), Started)
    event = executor.wait()
    assert isinstance(event, Finished)
    assert event.outcome.status == "failed" and "were lost" in event.outcome.reason


@pytest.mark.slow
def test_a_scheduler_that_dies_ends_the_run_in_one_line(
    dask: Commands, make: Callable[..., DaskExecutor], tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    executor = make(DaskConfig(address=dask.scheduler(), connect_timeout=2))
    dask.worker()
    executor.submit(task("sleeps_after_writing", {"flag": str(flag)}))
    wait_until(flag.exists)
    assert isinstance(executor.wait(), Started)
    dask.process.kill()
    with pytest.raises(UserError, match="the connection to the scheduler was lost") as found:
        executor.wait()
    assert len(found.value.lines) == 1


@pytest.mark.slow
def test_a_machine_with_other_code_computes_nothing(
    dask: Commands, make: Callable[..., DaskExecutor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, answer in (("here", 1), ("there", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "users_stage.py").write_text(
            f"def stage(task):\n    return {{'answer': {answer}}}\n"
        )
    monkeypatch.syspath_prepend(tmp_path / "here")
    address = dask.scheduler()
    dask.worker(PYTHONPATH=f"{tmp_path / 'there'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    mine = Task(**{**vars(task("answer")), "target": "users_stage:stage"})
    outcomes, _ = finish(make(DaskConfig(address=address)), [mine])
    assert outcomes["answer"].status == "failed"
    assert "other code of cfbench, of a plugin or of your own" in outcomes["answer"].reason
    assert Store(tmp_path / "store").entries() == []


# What can be wrong before the first task


@pytest.mark.parametrize(
    "address",
    ["tcp://127.0.0.1:{free}", "tcp://127.0.0.1:{silent}", "gopher://127.0.0.1:1", "no such host:1"],
)
def test_an_address_without_a_scheduler_is_one_line_soon(
    make: Callable[..., DaskExecutor], tmp_path: Path, address: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = address.format(free=free.getsockname()[1], silent=silent.getsockname()[1])
        begin = time.monotonic()
        with pytest.raises(UserError, match=r"no Dask scheduler answers at .* within 0\.5 s") as found:
            make(DaskConfig(address=address, connect_timeout=0.5))
        assert time.monotonic() - begin < 10
    (line,) = found.value.lines
    assert address in line and "dask scheduler" in line and "\n" not in line
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        (DaskConfig(cluster="dask_there_is_no_such.SLURMCluster", workers=1), "No module named 'dask_there_is_no_such'"),
        (DaskConfig(cluster="distributed.NoSuchCluster", workers=1), "has no attribute 'NoSuchCluster'"),
        (DaskConfig(cluster_options={"no_such_option": 1}, workers=1), "no_such_option"),
    ],
)  # fmt: skip
def test_a_cluster_that_cannot_be_started_is_one_line(
    make: Callable[..., DaskExecutor], cluster: DaskConfig, reason: str
) -> None:
    with pytest.raises(UserError, match=r"executor dask: cluster '.*' cannot be started: ") as found:
        make(cluster)
    (line,) = found.value.lines
    assert reason in line and "\n" not in line


@pytest.mark.slow
def test_a_cluster_is_named_by_its_class_and_may_be_adaptive(make: Callable[..., DaskExecutor]) -> None:
    options = {"n_workers": 0, "host": "127.0.0.1", "dashboard_address": None, "threads_per_worker": 1}
    config = DaskConfig(
        cluster="distributed.LocalCluster", cluster_options=options, adaptive={"minimum": 0, "maximum": 1}
    )
    outcomes, _ = finish(make(config), [task("answer")])
    assert outcomes["answer"].status == "ok"
