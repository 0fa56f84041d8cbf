"""What cfbench itself costs as a run grows: cells, explained users, workers, and a run that is wholly cached.

    python benchmarks/scale.py cells 100 1000 5000        CPU s of the main process after the last result
    python benchmarks/scale.py users 1000 10000 100000    peak memory of the main process
    python benchmarks/scale.py workers 2 64 256           empty tasks a second, with simulated workers
    python benchmarks/scale.py processes 1 2 4 8          CPU s of the same study with so many real worker processes
    python benchmarks/scale.py interactions 1000000       a study of EASE on synthetic data, 1,000 users explained
    python benchmarks/scale.py cached                     a default study that is wholly cached, and its plan

Each measurement runs in a process of its own with a cache of its own. ``--store NAME`` stores the rows in
docs/results/scale.csv, with NAME in the column ``version``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the suite, also in worker processes

RESULTS = HERE.parent / "docs" / "results" / "scale"
SAME = ("version", "what", "size", "rows", "chunk")


# Measurements, each in a process of its own


class LastResult:
    """An observer that notes when the last result came."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0
        self.tasks = 0

    def started(self, task: Any) -> None: ...

    def progress(self, task: Any, done: int, total: int) -> None: ...

    def finished(self, task: Any, outcome: Any, done: int, total: Any) -> None:
        self.cpu, self.wall, self.tasks = time.process_time(), time.perf_counter(), self.tasks + 1


def prepared(**changes: Any) -> Any:
    """A study of the cheap suite."""
    import scale_suite

    import cfbench_core.plugin
    from cfbench_core.api import prepare
    from cfbench_core.registry import Component, Plugin, Registry

    def plugin(name: str, specs: Any) -> Plugin:
        return Plugin(name, name, "1", name, tuple(Component(spec, name, "1") for spec in specs))

    registry = Registry(
        [plugin("cheap", scale_suite.SPECS), plugin("core", cfbench_core.plugin.cfbench_components())]
    )
    return prepare({"suite": "cheap", **changes}, registry=registry)


def measure_run(out: str, **changes: Any) -> dict[str, float]:
    from cfbench_core.api import execute

    study = prepared(**changes)
    last = LastResult()
    started, began = time.process_time(), time.perf_counter()
    execute(study, out=out, observer=last)
    return {
        "tasks": last.tasks,
        "main_s": round(time.process_time() - started, 2),
        "after_last_result_s": round(time.process_time() - last.cpu, 2),
        "wall_after_last_result_s": round(time.perf_counter() - last.wall, 2),
        "wall_s": round(time.perf_counter() - began, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "report_mb": round((Path(out) / "report.html").stat().st_size / 1e6, 2),
    }


class SimulatedWorker:
    """Takes no time for a task: its result is in the store already. In place of ``WorkerProcess``."""

    _pids = iter(range(1, 1_000_000))

    def __init__(self, settings: Any, threads: int, inbox: Any, first: Any, *further: Any) -> None:
        import threading
        from collections import deque

        self.pool, self.place, self.task, self.given = first.pool, None, None, 0.0
        self.begun, self.verdict = None, None
        self.reported, self.highest_memory, self.loaded = False, 0, deque(maxlen=24)
        self.lock, self.pid, self._inbox = threading.Lock(), next(self._pids), inbox

    def give(self, task: Any) -> bool:
        self.task = task
        self.loaded.extend(key for key in task.inputs.values() if key not in self.loaded)
        outcome = json.dumps({"status": "ok", "summary": {"groups": SimulatedWorker.groups}})
        self._inbox.put((self, {"event": "finished", "outcome": outcome, "unfit": False, "forgot": False}))
        return True

    groups = 0

    def memory(self, look_for_children: bool) -> int:
        return 0

    def take_output(self) -> str:
        return ""

    def is_over(self) -> bool:
        return False

    def nothing(self, *_: Any) -> None: ...

    limit_output = dismiss = wait = end = release = kill = nothing


def measure_workers(workers: int, **changes: Any) -> dict[str, float]:
    """Two runs of the same tasks: one computes them, the other submits them again to simulated workers."""
    from cfbench_core.executors import process
    from cfbench_core.executors.inline import InlineExecutor
    from cfbench_core.runner import run_plan
    from cfbench_core.store import Store

    study, store = prepared(**changes), Store()
    arguments = (store.root, workers, 1, study.config.limits, [str(HERE)], False)
    first = InlineExecutor(*arguments)
    run_plan(study.plan, store, first, study.config.chunk, False, LastResult())
    first.close()
    SimulatedWorker.groups = study.config.users
    process.WorkerProcess = SimulatedWorker  # type: ignore[assignment, misc]
    executor = process.ProcessExecutor(*arguments)
    last = LastResult()
    started, began = time.process_time(), time.perf_counter()
    run_plan(study.plan, store, executor, study.config.chunk, True, last)
    cpu, wall = time.process_time() - started, time.perf_counter() - began
    executor.close()
    return {"tasks": last.tasks, "main_s": round(cpu, 2), "tasks_per_s": round(last.tasks / wall, 1)}


def measure_processes(out: str, workers: int, **changes: Any) -> dict[str, float]:
    """The same study with so many real worker processes: what they cost, on the cores that there are."""
    measured = measure_run(out, executor="process", workers=workers, **changes)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    measured["workers_s"] = round(children.ru_utime + children.ru_stime, 2)
    measured["tasks_per_s"] = round(measured["tasks"] / measured["wall_s"], 1)
    return measured


def measure_command(*arguments: str) -> dict[str, float]:
    """CPU time of a command of cfbench, the median of three."""
    code = "import sys; from cfbench_core.cli import main; sys.exit(main(sys.argv[1:]))"
    taken = []
    for _ in range(3):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        taken.append((cpu, time.perf_counter() - began))
    cpu, wall = sorted(taken)[1]
    return {"main_s": round(cpu, 2), "wall_s": round(wall, 2)}


# What is measured


def one(kind: str, size: int, rows: int, chunk: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as out:
        if kind == "cells":
            # in this process: only what follows the last result is counted
            return measure_run(out, cells=size, rows=rows, users=50, chunk=50, executor="inline")
        if kind == "users":
            return measure_run(out, cells=2, rows=2, users=size, chunk=chunk, executor="process", workers=1)
        if kind == "processes":
            return measure_processes(out, size, cells=100, rows=rows, users=200, chunk=50)
        return measure_workers(size, cells=250, rows=rows, users=4, chunk=2)


def cached() -> list[dict[str, Any]]:
    """The default study, computed once; then again wholly from the cache, and its plan."""
    with tempfile.TemporaryDirectory() as out:
        measured = []
        code = "import sys; from cfbench_core.cli import main; sys.exit(main(sys.argv[1:]))"
        run = ["run", "--suite", "recsys", "--quiet", "--offline", "--output", out]
        subprocess.run([sys.executable, "-c", code, *run], check=True, stdout=subprocess.DEVNULL)
        measured.append({"what": "cached run", **measure_command(*run)})
        again = [*run[:-1], f"{out}/new"]
        measured.append({"what": "cached run, new directory", **measure_command(*again)})
        plan = ["plan", "--suite", "recsys", "--offline"]
        measured.append({"what": "plan", **measure_command(*plan)})
        return measured


INTERACTIONS = """\
suite: recsys
data: {{name: synthetic, users: {users}, items: 2000, interactions: {interactions}}}
recommenders: [ease]
explainers: [exact-contribution, popularity]
protocol: {{k: 5, level: item, format: implicit, users: 1000}}
workers: 1
"""


def interactions(size: int) -> dict[str, Any]:
    """CPU s and peak memory of main and of its workers, for a study of EASE with 40 interactions for each user."""
    code = (
        "import json, resource, sys\n"
        "from cfbench_core.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        "print(json.dumps({'main_s': round(own.ru_utime + own.ru_stime, 2),\n"
        "    'workers_s': round(workers.ru_utime + workers.ru_stime, 2), 'peak_mb': round(own.ru_maxrss / 1024),\n"
        "    'worker_peak_mb': round(workers.ru_maxrss / 1024)}))\n"
        "sys.exit(code)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.yaml"
        study.write_text(INTERACTIONS.format(users=size // 40, interactions=size))
        began = time.perf_counter()
        found = subprocess.run(
            [sys.executable, "-c", code, "run", str(study), "--quiet", "--output", f"{folder}/run"],
            env={**os.environ, "CFBENCH_CACHE_DIR": f"{folder}/cache"},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        taken = round(time.perf_counter() - began, 2)
    return {"wall_s": taken, **json.loads(found.stdout.splitlines()[-1])}


def in_a_process(kind: str, size: int, rows: int, chunk: int) -> dict[str, Any]:
    arguments = ["one", kind, str(size), str(rows), str(chunk)]
    with tempfile.TemporaryDirectory() as cache:
        found = subprocess.run(
            [sys.executable, __file__, *arguments],
            env={**os.environ, "CFBENCH_CACHE_DIR": cache, "PYTHONPATH": _path()},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    measured = json.loads(found.stdout.splitlines()[-1])
    return {"what": kind, "size": size, "rows": rows, "chunk": chunk, **measured}


def _path() -> str:
    return os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["one"]:
        kind, *numbers = arguments[1:]
        print(json.dumps(one(kind, *map(int, numbers))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cells", "users", "workers", "processes", "interactions", "cached"))
    parser.add_argument("sizes", nargs="*", type=int)
    parser.add_argument("--rows", type=int, default=20, help="cells of one table")
    parser.add_argument("--chunk", type=int, default=1000, help="users of one task, for users")
    parser.add_argument("--store", metavar="NAME", help="store the rows as those of this version")
    given = parser.parse_args(arguments)
    if given.what == "cached":
        rows = [{"size": 1, "rows": 0, "chunk": 0, **row} for row in cached()]
    elif given.what == "interactions":
        rows = [
            {"what": "interactions", "size": size, "rows": 2, "chunk": 0, **interactions(size)}
            for size in given.sizes
        ]
    else:
        rows = [in_a_process(given.what, size, given.rows, given.chunk) for size in given.sizes]
    for row in rows:
        print(json.dumps(row))
    if given.store:
        from results import keep

        keep(
            RESULTS,
            [{"version": given.store, **row} for row in rows],
            SAME,
            "python benchmarks/scale.py {cells,users,workers,processes,cached} SIZES --store NAME",
        )


if __name__ == "__main__":
    main(sys.argv[1:])
