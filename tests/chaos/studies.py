"""Small studies of the three suites, and ways to run them and to compare their results."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import yaml

SECONDS = 300.0
"""After which a command counts as one that does not end."""
COMPARED = ("scores.parquet", "explanations.parquet", "quality.csv")
"""Tables of a run directory that are equal, byte for byte, however the run came about; times differ."""
MARK = "CFBENCH_CHAOS"
COMMANDS = """
import contextlib, io, json, sys
from cfbench_core.cli import main
for command in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command)
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""

Study = dict[str, object]


def recsys(folder: Path) -> Study:
    rows = [
        {"user": f"u{number}", "item": f"i{place}"}
        for number in range(12)
        for place in range(10)
        if (number * 7 + place * 3) % 4
    ]
    (folder / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {
        "suite": "recsys",
        "data": [{"name": "file", "path": "ratings.jsonl"}],
        "recommenders": ["ease"],
        "explainers": ["random", "popularity"],
        "protocol": {"k": 3, "users": 12},
        "chunk": 3,
    }


def tabular(folder: Path) -> Study:
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "color", "class"])
        for number in range(60):
            high = number % 7 > 3
            writer.writerow([number % 7, "red" if high else "blue", "yes" if high else "no"])
    return {
        "suite": "tabular",
        "data": [{"name": "csv", "file": "table.csv"}],
        "classifiers": ["logistic-regression"],
        "explainers": ["nearest-enemy", "random"],
        "protocol": {"factuals": 8},
        "chunk": 2,
    }


def text(folder: Path) -> Study:
    words = ("battery", "screen", "sound", "price")
    rows = [
        {
            "user": f"u{number % 6}",
            "item": f"i{number % 5}",
            "text": f"The {words[number % 4]} is {'great' if number % 3 else 'poor'}. I like the {words[(number + 1) % 4]}.",
            "rating": 1 + number % 5,
        }
        for number in range(30)
    ]
    (folder / "reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {
        "suite": "text",
        "data": [{"name": "reviews", "path": "reviews.jsonl", "domain": "toy-reviews"}],
        "extractor": "rules",
        "generators": ["item-review", "reference"],
        "judges": ["overlap"],
        "chunk": 4,
    }


STUDIES: Mapping[str, Callable[[Path], Study]] = {"tabular": tabular, "recsys": recsys, "text": text}


def write_study(folder: Path, suite: str, **changes: object) -> Path:
    """``folder/study.yaml`` with its data; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**STUDIES[suite](folder), **changes}), encoding="utf-8")
    return path


def variables(cache: Path, **more: str) -> dict[str, str]:
    """The environment of a command with a cache of its own; its processes are found by a mark in it."""
    return {**os.environ, "CFBENCH_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1", MARK: str(cache), **more}


def command(*arguments: str | Path) -> list[str]:
    """``cfbench`` with this interpreter."""
    code = "import sys; from cfbench_core.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, *map(str, arguments)]


def in_one_process(
    folder: Path, cache: Path, commands: Sequence[Sequence[str]]
) -> Iterator[tuple[int, str, str]]:
    """Exit code, output and errors of each command; the imports are paid for once."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps([list(one) for one in commands])],
        cwd=folder, env=variables(cache, COLUMNS="120"), capture_output=True, text=True, errors="replace",
        timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    for line in lines:
        code, out, err = json.loads(line)
        yield code, out, err
    if len(lines) < len(commands):
        yield done.returncode, "", f"no end of {' '.join(commands[len(lines)])}: {done.stderr[-500:]}"


def tables(directory: Path) -> dict[str, bytes]:
    """The content of the tables that must be equal."""
    return {name: (directory / name).read_bytes() for name in COMPARED if (directory / name).exists()}


def difference(directory: Path, expected: Mapping[str, bytes]) -> str:
    """Which tables of a run directory are not as expected; nothing if all are."""
    found = tables(directory)
    wrong = [name for name in expected if found.get(name) != expected[name]]
    return f"{', '.join(wrong)}: not the numbers of the undisturbed run" if wrong else ""


def left_over(cache: Path, directory: Path | None = None) -> set[str]:
    """What no finished run may leave behind, a line each."""
    found = {*(cache / "artifacts" / "tmp").glob("*"), *cache.rglob("*.tmp")}
    if directory is not None:
        found |= {*directory.rglob("*.tmp"), *directory.glob(".lock*")}
    return {f"left over: {path.name}" for path in found}


def orphans(cache: Path, seconds: float = 10.0) -> str:
    """The processes that still run after so long, though their parent has ended; they are killed."""
    deadline = time.monotonic() + seconds
    while (found := [*_marked(cache)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in found:
        process.kill()
    return f"{len(found)} processes survive" if found else ""


def _marked(cache: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(cache) and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except psutil.Error:
            continue
