"""Damage to files of artifacts and of run directories; no command may crash on it, or show other numbers.

Most damages are done and judged in one process, by the store and by the reader of run directories. The others go
through the command line: ``run`` must compute what is damaged again and come to the same tables, and ``cache verify``,
``ls`` and ``gc``, ``report``, ``status``, ``explain`` and ``compare`` must end in their results or in one line.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from studies import (
    SECONDS,
    STUDIES,
    command,
    difference,
    in_one_process,
    left_over,
    tables,
    variables,
    write_study,
)
from trial import Budget, Trial

from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run
from cfbench_core.store import Entry, Store

NAME = "damages"
MINIMUM = 2000

BY_COMMANDS = 0.15
"""The share of damages that go through the command line."""
AT_ONCE = 8
"""Damages before the commands are called."""
COMMANDS = (
    ["cache", "ls"],
    ["cache", "ls", "scores"],
    ["cache", "ls", "--format", "json"],
    ["cache", "gc", "--older-than", "30", "--dry-run"],
    ["cache", "gc", "--older-than", "30"],
    ["cache", "verify"],
    ["status", "run"],
    ["report", "run"],
    ["report", "run", "--format", "csv"],
    ["explain", "run"],
    ["compare", "run", "../{copy}/whole-run"],
    ["analyse", "significance", "run"],
    ["cite", "run"],
)
READ = (
    "plan",
    "config",
    "environment",
    "scores",
    "explanations",
    "costs",
    "details",
    "quality",
    "summary",
    "outcomes",
)

Damage = Callable[[Path, random.Random, list[Path]], str]


def flip_bit(path: Path, source: random.Random, others: list[Path]) -> str:
    content = bytearray(path.read_bytes())
    place, bit = source.randrange(max(len(content), 1)), source.randrange(8)
    content[place : place + 1] = bytes([content[place] ^ (1 << bit)]) if content else b"\x01"
    path.write_bytes(content)
    return f"bit {bit} of byte {place} flipped"


def flip_bit_unnoticed(path: Path, source: random.Random, others: list[Path]) -> str:
    """The times of the file stay, as after an error of the disk."""
    times = path.stat()
    done = flip_bit(path, source, others)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return f"{done}, its times unchanged"


def cut(path: Path, source: random.Random, others: list[Path]) -> str:
    content = path.read_bytes()
    length = source.choice(
        (0, len(content) // 2, max(len(content) - 1, 0), source.randrange(max(len(content), 1)))
    )
    path.write_bytes(content[:length])
    return f"cut to {length} of {len(content)} bytes"


def zeros(path: Path, source: random.Random, others: list[Path]) -> str:
    """A block that was never written, as after a power failure."""
    content = bytearray(path.read_bytes())
    start = source.randrange(max(len(content), 1))
    content[start : start + 512] = bytes(len(content[start : start + 512]))
    path.write_bytes(content)
    return f"zeros from byte {start}"


def append(path: Path, source: random.Random, others: list[Path]) -> str:
    with path.open("ab") as file:
        file.write(source.randbytes(source.choice((1, 100))))
    return "bytes appended"


def swap(path: Path, source: random.Random, others: list[Path]) -> str:
    other = source.choice([each for each in others if each.name == path.name] or others)
    ours, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(ours)
    return f"swapped with {other.parent.name[:8]}/{other.name}"


def delete(path: Path, source: random.Random, others: list[Path]) -> str:
    path.unlink()
    return "deleted"


def folder_in_place(path: Path, source: random.Random, others: list[Path]) -> str:
    path.unlink()
    path.mkdir()
    return "a folder in its place"


def link_in_place(path: Path, source: random.Random, others: list[Path]) -> str:
    path.unlink()
    path.symlink_to(source.choice((path.name, "nowhere", os.devnull)))
    return "a link in its place"


def junk(path: Path, source: random.Random, others: list[Path]) -> str:
    path.write_bytes(
        source.choice((b"{}", b"[]", b"null", b"\xff\xfe\x00", b"[" * 50_000, b"NaN", source.randbytes(200)))
    )
    return "junk in its place"


def lose_parent(path: Path, source: random.Random, others: list[Path]) -> str:
    shutil.rmtree(path.parent)
    if source.random() < 0.5:
        path.parent.write_bytes(b"")
        return "a file in place of its folder"
    return "its folder deleted"


DAMAGES: tuple[Damage, ...] = (
    *(flip_bit, flip_bit, flip_bit_unnoticed, flip_bit_unnoticed, cut, zeros, append, swap),
    *(delete, folder_in_place, link_in_place, junk),
)


@dataclass(frozen=True)
class Whole:
    """An undisturbed study: its folder, a copy of it, the tables of its run, and what is read from them.

    Keys name the files of the data, so damaged copies are made in the folder itself.
    """

    folder: Path
    copy: Path
    tables: dict[str, bytes]
    values: dict[str, Any]

    @property
    def store(self) -> Path:
        return self.folder / "cache" / "artifacts"


def trials(budget: Budget) -> Iterator[Trial]:
    """A trial for each damage; studies of all suites in turn."""
    whole = [_whole(budget.folder / suite, suite) for suite in STUDIES]
    for number in range(round(budget.trials * (1 - BY_COMMANDS))):
        study = whole[number % len(whole)]
        yield _in_store(study, budget) if number % 4 else _in_run(study, budget)
    left = budget.trials - round(budget.trials * (1 - BY_COMMANDS))
    number = 0
    while left > 0:
        for trial in _by_commands(whole[number % len(whole)], budget, min(left, AT_ONCE)):
            yield trial
            left -= 1
        number += 1


def _whole(folder: Path, suite: str) -> Whole:
    study = write_study(folder, suite, executor="inline")
    done = subprocess.run(
        command("run", study, "--output", folder / "whole-run"), env=variables(folder / "cache"), cwd=folder,
        capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"the undisturbed {suite} study fails: {done.stderr[-1000:]}")
    run, copy = folder / "whole-run", folder.with_name(f"{folder.name}-copy")
    shutil.copytree(folder, copy)
    return Whole(folder, copy, tables(run), _values(Run(run)))


# In one process


def _in_store(whole: Whole, budget: Budget) -> Trial:
    """Damages one file of an artifact. The store must not call it intact, and must be able to remove it."""
    source, store = budget.random, Store(whole.store)
    entry = source.choice(store.entries())
    backup = whole.folder / "backup"
    shutil.copytree(entry.path, backup)
    path = source.choice(_files(entry.path))
    damage = source.choice((*DAMAGES, lose_parent))
    others = [each for each in _files(entry.path) if each != path] or [path]
    before = path.read_bytes()
    if source.random() < 0.5:
        store.has(entry.kind, entry.key)  # what was verified once must be verified again
    done = damage(path, source, others)
    try:
        same = path.is_file() and not path.is_symlink() and path.read_bytes() == before
        problem = "" if same else _judged(store, entry)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    finally:
        if entry.path.is_file():
            entry.path.unlink()
        shutil.rmtree(entry.path, ignore_errors=True)
        backup.rename(entry.path)
    return Trial(f"{entry.kind}/{path.name}: {done}", problem)


def _judged(store: Store, entry: Entry) -> str:
    fresh = Store(store.root)
    if store.has(entry.kind, entry.key) or fresh.has(entry.kind, entry.key):
        return "the store takes it for intact"
    for found in fresh.entries():
        if found.key == entry.key and (not fresh.verify(found) or found.bytes < 0 or found.used < 0):
            return "verify finds nothing"
    there = os.path.lexists(entry.path)
    said = fresh.remove_if_damaged(entry.kind, entry.key)
    if there != bool(said) or "\n" in said or os.path.lexists(entry.path):
        return f"remove_if_damaged: {said!r}"
    return ""


def _in_run(whole: Whole, budget: Budget) -> Trial:
    """Damages one file of a run directory. What is read is as before, or reading ends in one line."""
    source = budget.random
    directory = whole.folder / "damaged-run"
    shutil.copytree(whole.folder / "whole-run", directory)
    path = source.choice([each for each in _files(directory) if each.suffix != ".html"])
    others = [each for each in _files(directory) if each != path and each.suffix == path.suffix] or [path]
    done = source.choice(DAMAGES)(path, source, others)
    try:
        problem = _read_as_before(directory, whole)
    finally:
        shutil.rmtree(directory)
    return Trial(f"run directory, {path.name}: {done}", problem)


def _read_as_before(directory: Path, whole: Whole) -> str:
    try:
        values = _values(Run(directory))
    except UserError as error:
        return "" if len(error.lines) == 1 and "\n" not in error.lines[0] else f"several lines: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    other = [name for name, value in values.items() if not _equal(value, whole.values[name])]
    return f"other values: {', '.join(other)}" if other else ""


def _values(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in READ}


def _equal(first: Any, second: Any) -> bool:
    return first.equals(second) if isinstance(first, pd.DataFrame) else bool(first == second)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


# Through the command line


def _by_commands(whole: Whole, budget: Budget, count: int) -> Iterator[Trial]:
    """Several damages of a copy of the cache and the run directory; then all commands, and the run again."""
    source, folder = budget.random, whole.folder
    (folder / "whole-run").rename(folder / "run")
    places = [
        *_files(folder / "cache" / "artifacts"),
        *(p for p in _files(folder / "run") if p.suffix != ".html"),
    ]
    cases = []
    for path in source.sample(places, count):
        if path.is_file():  # an earlier damage may have removed it
            damage = source.choice((*DAMAGES, lose_parent) if "artifacts" in path.parts else DAMAGES)
            around = [each for each in _files(path.parent) if each != path] or [path]
            name = path.relative_to(folder).as_posix()
            cases.append(f"{name}: {damage(path, source, around)}")
    try:
        problem = _after_damage(folder, whole)
    finally:
        shutil.rmtree(folder)
        shutil.copytree(whole.copy, folder)
    yield from (Trial(case) for case in cases[:-1])
    yield Trial(cases[-1] if not problem else "; ".join(cases), problem)


def _after_damage(folder: Path, whole: Whole) -> str:
    """A new run from the damaged cache is as before, whatever the damaged run directory looks like."""
    compared = [[part.format(copy=whole.copy.name) for part in one] for one in COMMANDS]
    commands = [*compared, ["run", "study.yaml", "--output", "new"], ["cache", "verify"]]
    again = ["run", "study.yaml", "--output", "run"]
    results = zip(
        [*commands, again, [*again, "--fresh"], ["status", "run"], ["report", "run"]],
        in_one_process(
            folder,
            folder / "cache",
            [*commands, again, [*again, "--fresh"], ["status", "run"], ["report", "run"]],
        ),
        strict=False,
    )
    problems = []
    for number, (one, (code, output, errors)) in enumerate(results):
        text = " ".join(one)
        healed = number >= len(commands) + 1 or (one[:1] == ["run"] and "new" in one)
        if "Traceback" in errors or code not in (0, 1, 2, 3):
            problems.append(f"{text} exits with {code}: {errors[-400:]}")
        elif code == 2 and len(errors.strip().splitlines()) > 1:
            problems.append(f"{text}: several lines: {errors[-400:]}")
        elif healed and code != 0:
            problems.append(f"{text} exits with {code}: {errors[-400:]}")
        elif number == len(commands) - 1 and code != 0:
            problems.append(f"cache verify finds damage after the run: {output[-400:]}")
    problems += [difference(folder / name, whole.tables) for name in ("new", "run")]
    problems += left_over(folder / "cache", folder / "run")
    return "; ".join(filter(None, problems))
