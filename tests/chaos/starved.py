"""Systems that lack something: disk space, inodes, quota, file descriptors, memory, permissions, HOME, a place for
temporary files. A run must end in results or in one line, and with enough of everything the same command completes it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from studies import SECONDS, command, difference, left_over, orphans, tables, variables, write_study
from trial import Budget, Trial

NAME = "starved systems"
MINIMUM = 40

SUITES = ("tabular", "text")
ENOUGH_LINES = 16
"""A run shows a few lines of progress, and problems of cells; more would be a traceback."""

Setup = contextlib.AbstractContextManager[tuple[dict[str, str], Callable[[], None] | None]]


@contextlib.contextmanager
def small_disk(at: Path, options: str) -> Iterator[None]:
    """A file system of its own on an existing folder; nothing where it may not be mounted."""
    at.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], capture_output=True, check=False
    )
    if done.returncode != 0:
        raise NotImplementedError("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=False, capture_output=True)


@contextlib.contextmanager
def disk(folder: Path, place: str, options: str) -> Iterator[tuple[dict[str, str], None]]:
    with small_disk(folder / place, options):
        yield {}, None


@contextlib.contextmanager
def read_only(folder: Path, place: str) -> Iterator[tuple[dict[str, str], None]]:
    """A disk that may only be read: permissions do not bind an administrator."""
    with small_disk(folder / place, "size=1m"):
        subprocess.run(["mount", "-o", "remount,ro", str(folder / place)], check=True)
        yield {}, None


@contextlib.contextmanager
def limit(folder: Path, what: int, amount: int) -> Iterator[tuple[dict[str, str], Callable[[], None]]]:
    yield {}, lambda: resource.setrlimit(what, (amount, amount))


@contextlib.contextmanager
def without(folder: Path, *names: str, **changes: str) -> Iterator[tuple[dict[str, str], None]]:
    yield (
        {
            **dict.fromkeys(names, ""),
            **{name: value.format(folder=folder) for name, value in changes.items()},
        },
        None,
    )


def cases(budget: Budget) -> Iterator[tuple[str, Callable[[Path], Setup]]]:
    """What is lacking, with random amounts, without end."""
    source = budget.random
    while True:
        for place in ("cache", "run"):
            kilobytes, inodes = source.choice((0, 4, 40, 100, 200, 400, 800)) + 4, source.randrange(2, 80)
            yield (
                f"{kilobytes} kB of disk for the {place}",
                lambda at, p=place, k=kilobytes: disk(at, p, f"size={k}k"),
            )
            yield (
                f"{inodes} inodes for the {place}",
                lambda at, p=place, n=inodes: disk(at, p, f"size=50m,nr_inodes={n}"),
            )
            yield f"a {place} that may only be read", lambda at, p=place: read_only(at, p)
        files = source.randrange(5, 60)
        yield f"{files} file descriptors", lambda at, n=files: limit(at, resource.RLIMIT_NOFILE, n)
        size = source.choice((0, 100, 1000, 3000, 10_000, 50_000))
        yield f"files of at most {size} bytes", lambda at, n=size: limit(at, resource.RLIMIT_FSIZE, n)
        megabytes = source.randrange(60, 1500)
        yield f"{megabytes} MB of memory", lambda at, n=megabytes: limit(at, resource.RLIMIT_AS, n * 2**20)
        yield "no HOME", lambda at: without(at, "HOME", "XDG_CACHE_HOME")
        yield "a HOME that does not exist", lambda at: without(at, HOME="{folder}/nowhere")
        yield "no folder for temporary files", lambda at: without(at, TMPDIR="{folder}/nowhere")
        yield "no PATH", lambda at: without(at, "PATH", "LANG", "TERM")


def trials(budget: Budget) -> Iterator[Trial]:
    """A trial for each lack, with studies of two suites in turn."""
    expected = {suite: _undisturbed(budget.folder / f"undisturbed-{suite}", suite) for suite in SUITES}
    lacks = cases(budget)
    for number in range(budget.trials):
        suite = SUITES[number % len(SUITES)]
        case, setup = next(lacks)
        executor = budget.random.choice(("process", "inline"))
        folder = budget.folder / f"{number}"
        study = write_study(folder, suite, executor=executor, workers=2)
        try:
            problem = _starved(folder, study, setup(folder), expected[suite])
        except NotImplementedError as error:
            case, problem = f"{case} (not tried: {error})", ""
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        yield Trial(f"{suite}, {executor}: {case}", problem)


def _undisturbed(folder: Path, suite: str) -> dict[str, bytes]:
    study = write_study(folder, suite, executor="inline")
    code, said = _run(folder, study, {}, None)
    if code != 0:
        raise RuntimeError(f"the undisturbed {suite} study fails: {said[-1000:]}")
    return tables(folder / "run")


def _run(
    folder: Path, study: Path, changes: dict[str, str], before: Callable[[], None] | None
) -> tuple[int, str]:
    changed = {name: value for name, value in variables(folder / "cache", **changes).items() if value}
    done = subprocess.run(
        command("run", study, "--output", folder / "run"), env=changed, cwd=folder, preexec_fn=before,
        capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stderr


def _starved(folder: Path, study: Path, setup: Setup, expected: dict[str, bytes]) -> str:
    problems = []
    with setup as (changes, before):
        code, said = _run(folder, study, changes, before)
        problems.append(orphans(folder / "cache"))
        if _python_itself_failed(said, code):
            problems.clear()
        elif "Traceback" in said or code not in (0, 1, 2) or len(said.splitlines()) > ENOUGH_LINES:
            problems.append(f"exit code {code}: {said[-600:]}")
        elif code == 0:
            problems.append(difference(folder / "run", expected))
        kept = _copied(folder)
    for name, content in kept.items():  # what a small disk held is there again
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.move(content, folder / name)
    code, said = _run(folder, study, {}, None)
    if code != 0:
        problems.append(f"with enough of everything it exits with {code}: {said[-400:]}")
    else:
        problems += [difference(folder / "run", expected), *left_over(folder / "cache", folder / "run")]
    return "; ".join(filter(None, problems))


def _copied(folder: Path) -> dict[str, Path]:
    """The cache and the run directory as they are while a small disk is mounted."""
    found = {}
    for name in ("cache", "run"):
        if (folder / name).exists():
            found[name] = folder / f"copy-of-{name}"
            shutil.copytree(folder / name, found[name], symlinks=True)
    return found


def _python_itself_failed(said: str, code: int) -> bool:
    """Whether there was too little for the interpreter and its libraries, before any line of cfbench could help."""
    words = ("cannot allocate memory", "Cannot allocate memory", "failed to map segment", "Fatal Python error",
             "error while loading shared libraries", "init_import_site", "can't start new thread",
             "OpenBLAS", "Too many open files: '/")  # fmt: skip
    return code != 0 and (code < 0 or not said or any(word in said for word in words) or _in_imports(said))


def _in_imports(said: str) -> bool:
    """A traceback before cfbench's own ``main`` was entered."""
    return "Traceback" in said and " in main\n" not in said and "<frozen importlib" in said


assert os.name == "posix"
