"""Signals to the main process and to workers, at moments spread over the whole run; then the same command resumes.

A study is killed again and again until it comes to its end. Its tables must then be those of an undisturbed run, byte
for byte; no process may survive its run, and neither the cache nor the run directory may hold what a dead one left.
"""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from studies import SECONDS, command, difference, left_over, orphans, tables, variables, write_study
from trial import Budget, Trial

NAME = "kills"
MINIMUM = 200

SIGNALS = tuple(getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"))
SUITES = ("tabular", "text", "tabular", "recsys")
"""In turn. Those that start fast more often: a signal during the imports says little."""
START_SECONDS = 1.5
"""An interpreter that starts or ends shows a traceback for Ctrl-C; cfbench is not running then."""


@dataclass
class Undisturbed:
    """A run to the end: its tables, and how long such a run takes at present."""

    tables: dict[str, bytes]
    seconds: float


def trials(budget: Budget) -> Iterator[Trial]:
    """A trial for each signal that met its process; studies of all suites in turn."""
    done = 0
    known: dict[str, Undisturbed] = {}
    for number in itertools.count():
        suite = SUITES[number % len(SUITES)]
        folder = budget.folder / f"{number}"
        if suite not in known:
            known[suite] = _undisturbed(budget.folder / f"undisturbed-{suite}", suite)
        for trial in _until_it_ends(budget, folder, suite, known[suite]):
            yield trial
            done += 1
            if done == budget.trials:
                return
        shutil.rmtree(folder)


def _undisturbed(folder: Path, suite: str) -> Undisturbed:
    study = write_study(folder, suite, executor="process", workers=2)
    began = time.monotonic()
    done = subprocess.run(
        command("run", study, "--output", folder / "run"), env=variables(folder / "cache"), cwd=folder,
        capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"the undisturbed {suite} study fails: {done.stderr[-1000:]}")
    return Undisturbed(tables(folder / "run"), time.monotonic() - began)


def _until_it_ends(budget: Budget, folder: Path, suite: str, undisturbed: Undisturbed) -> Iterator[Trial]:
    """Kills one study until a run of it ends undisturbed; the last trial has what is wrong at the end."""
    study = write_study(folder, suite, executor="process", workers=2)
    pending: Trial | None = None
    while True:
        # What is cached makes a run shorter, and so does a machine with less to do: a signal may come too late.
        after = budget.random.uniform(0.0, undisturbed.seconds)
        at_worker = budget.random.random() < 0.35
        number = budget.random.choice(SIGNALS)
        began = time.monotonic()
        case, code, problem = _run_and_signal(folder, study, after, at_worker, number)
        if not case:
            undisturbed.seconds = (undisturbed.seconds + time.monotonic() - began) / 2
        if case:
            if pending:
                yield pending
            pending = Trial(f"{suite}: {case}", problem)
        if code == 0:
            break
    problems = [
        pending.problem if pending else "",
        difference(folder / "run", undisturbed.tables),
        *left_over(folder / "cache", folder / "run"),
    ]
    if pending:
        yield Trial(pending.case, "; ".join(filter(None, problems)))


def _run_and_signal(
    folder: Path, study: Path, after: float, at_worker: bool, number: int
) -> tuple[str, int, str]:
    """What was signalled (nothing if the run was over before), the exit code, and what was wrong."""
    cache, errors = folder / "cache", folder / "errors.txt"
    before = left_over(cache)  # by a run that was killed; one that is stopped soon does not come to remove it
    with errors.open("w") as to:
        run = subprocess.Popen(
            command("run", study, "--output", folder / "run"), env=variables(cache), cwd=folder,
            stdout=subprocess.DEVNULL, stderr=to, stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=_default_signals,
        )  # fmt: skip
    try:
        case = _signalled(run, after, at_worker, number)
        try:
            code = run.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return case, -1, f"does not end within {SECONDS:.0f} s"
    finally:
        run.kill()
        run.wait()
    problems = [orphans(cache)]
    said = errors.read_text(encoding="utf-8", errors="replace")
    starting = number == signal.SIGINT and after < START_SECONDS
    if "Traceback" in said and not starting:
        problems.append(f"a traceback: {said[-300:]}")
    main_was_hit = bool(case) and not at_worker
    expected = {0, 1} if not main_was_hit else {0, -number, 128 + number, *((1,) if starting else ())}
    if code not in expected:
        problems.append(f"exit code {code}: {said[-300:]}")
    if main_was_hit and code == 128 + number:  # it had the time to clean up
        problems += [*(left_over(cache) - before)]
    return case, code, "; ".join(filter(None, problems))


def _signalled(run: subprocess.Popen[bytes], after: float, at_worker: bool, number: int) -> str:
    """Sends the signal when its moment has come; says what was done, or nothing if it was too late."""
    try:
        run.wait(timeout=after)
        return ""
    except subprocess.TimeoutExpired:
        pass
    name = f"{signal.Signals(number).name} after {after:.2f} s"
    if not at_worker:
        run.send_signal(number)
        return f"{name} to the main process"
    try:
        workers = psutil.Process(run.pid).children()
        if not workers:
            return ""
        workers[int(after * 1000) % len(workers)].send_signal(number)
    except psutil.Error:
        return ""
    return f"{name} to a worker"


def _default_signals() -> None:
    """A background job of a shell, or a child of ``nohup``, would ignore some of them."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
