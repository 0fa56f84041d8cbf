"""Machines of a Dask cluster that die every few seconds and are replaced, until the run has come to its end.

A scheduler and workers run by Dask's own command lines in processes of their own, on 127.0.0.1. Every few seconds one of
the workers gets SIGKILL and another one joins. The tables of the run must be those of an undisturbed run with worker
processes, byte for byte; no process of a dead machine may survive it, and nothing may be left behind. A task that dies
with several machines fails in the end: then the same command runs again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from studies import SECONDS, command, difference, left_over, orphans, tables, variables, write_study
from trial import Budget, Trial

NAME = "lost machines"
MINIMUM = 60

SUITES = ("recsys", "tabular", "text")
MACHINES = 2
LIVES = (2.0, 5.0)
"""Seconds between two deaths, at least and at most. A machine needs about two to join."""


class Cluster:
    """A scheduler and its workers, one thread each."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--no-show")
        self.workers = [self._worker() for _ in range(MACHINES)]

    @property
    def address(self) -> str:
        file = self.folder / "scheduler.json"
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                return str(json.loads(file.read_text(encoding="utf-8"))["address"])
            time.sleep(0.05)
        raise RuntimeError("the scheduler does not start")

    def lose(self, number: int) -> None:
        """Kills a worker and starts another one in its place."""
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self._worker()

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGTERM)
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _worker(self) -> subprocess.Popen[bytes]:
        local = self.folder / "local"
        return self._start(
            "worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(local)
        )

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--scheduler-file", str(self.folder / "scheduler.json"))
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", name, *where, *arguments], env=variables(self.cache),
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip


def trials(budget: Budget) -> Iterator[Trial]:
    """A trial for each machine that was lost; studies of all suites in turn."""
    if importlib.util.find_spec("distributed") is None:
        print("lost machines: needs distributed: pip install 'cfbench-core[dask]'", file=sys.stderr)
        return
    done = 0
    known: dict[str, dict[str, bytes]] = {}
    for number in itertools.count():
        suite = SUITES[number % len(SUITES)]
        if suite not in known:
            known[suite] = _undisturbed(budget.folder / f"undisturbed-{suite}", suite)
        folder = budget.folder / f"{number}"
        for trial in _until_it_ends(budget, folder, suite, known[suite]):
            yield trial
            done += 1
            if done == budget.trials:
                return
        shutil.rmtree(folder)


def _undisturbed(folder: Path, suite: str) -> dict[str, bytes]:
    study = write_study(folder, suite, executor="process", workers=2, chunk=1)
    code, said = _ended(_run(folder, study, folder / "cache"), folder)
    if code != 0:
        raise RuntimeError(f"the undisturbed {suite} study fails: {said}")
    return tables(folder / "run")


def _until_it_ends(budget: Budget, folder: Path, suite: str, expected: dict[str, bytes]) -> Iterator[Trial]:
    """Runs one study on machines that die; the first trial has what is wrong at the end."""
    folder.mkdir()
    cache = folder / "cache"
    cluster = Cluster(folder, cache)
    lost: list[str] = []
    problems: list[str] = []
    try:
        executor = {"name": "dask", "address": cluster.address}
        study = write_study(folder, suite, executor=executor, chunk=1)
        code = 1
        while code == 1:
            code = _disturbed(budget, folder, study, cluster, lost, problems)
    finally:
        cluster.close()
    problems += [
        orphans(cache),
        difference(folder / "run", expected),
        *left_over(cache, folder / "run"),
    ]
    for case in lost:
        yield Trial(f"{suite}: {case}", "; ".join(filter(None, problems)))
        problems = []


def _disturbed(
    budget: Budget, folder: Path, study: Path, cluster: Cluster, lost: list[str], problems: list[str]
) -> int:
    """One call of the command; adds the machines that were lost meanwhile. Its exit code, -1 if it does not end."""
    began = time.monotonic()
    run = _run(folder, study, cluster.cache)
    try:
        while run.poll() is None and time.monotonic() - began < SECONDS:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(timeout=budget.random.uniform(*LIVES))
            if run.poll() is None:
                number = budget.random.randrange(MACHINES)
                cluster.lose(number)
                lost.append(f"machine {number} lost after {time.monotonic() - began:.1f} s")
        if run.poll() is None:
            problems.append(f"does not end within {SECONDS:.0f} s")
            return -1
    finally:
        run.kill()
    code, said = _ended(run, folder)
    if code not in (0, 1) or "Traceback" in said:
        problems.append(f"exit code {code}: {said}")
    return code


def _run(folder: Path, study: Path, cache: Path) -> subprocess.Popen[bytes]:
    with (folder / "errors.txt").open("wb") as errors:
        return subprocess.Popen(
            command("run", study, "--output", folder / "run"), env=variables(cache), cwd=folder,
            stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


def _ended(run: subprocess.Popen[bytes], folder: Path) -> tuple[int, str]:
    """The exit code of a run, and the end of what it wrote on stderr."""
    code = run.wait(timeout=SECONDS)
    return code, (folder / "errors.txt").read_text(encoding="utf-8", errors="replace")[-300:]
