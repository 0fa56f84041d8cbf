"""Bad configurations and data files: each ends in one line with its place, or is a plan that can be computed.

Configurations of the three suites, with the options of all their components, are broken in random ways: values of
wrong types and sizes, unknown, missing and repeated keys, bombs, tags, code, secrets, wrong encodings. So are small data
files. Most are read in one process by the functions that the commands call; some by the commands themselves.
"""

from __future__ import annotations

import json
import os
import queue
import random
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import studies
from broken_studies import SUITES, bad_configuration, bad_data
from trial import Budget, Trial

NAME = "bad input"
MINIMUM = 700
SECONDS = 30.0
"""After which a configuration counts as one that is never read to its end."""
COMMAND_EVERY = 20
"""One of so many configurations is also given to the real command."""
SECRET = "marker-0123456789abcdef"
LONGEST_LINE = 2500
_WHOLE_FILE = "is missing; say|is longer than|is a directory|not a regular file|more errors|metric .* needs"
"""Errors that are about a file, not about one of its lines."""


def trials(budget: Budget) -> Iterator[Trial]:
    reader = _Reader(budget.folder)
    try:
        for number in range(budget.trials):
            suite = (*SUITES,)[number % 3]
            folder = budget.folder / f"{suite}-{number}"
            folder.mkdir()
            seed = budget.seed * 1_000_003 + number
            make = bad_data if number % 5 == 4 else bad_configuration
            case = make(random.Random(seed), suite, folder)
            problem = reader.problem(folder, read_data=number % 5 == 4)
            if not problem and number % COMMAND_EVERY == 0:
                problem = _problem_of_command(folder, reader.last)
            yield Trial(f"{case} ({suite}, trial {number})", problem)
    finally:
        reader.close()


class _Reader:
    """A process that reads configurations; a new one where it died or did not come back."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "CFBENCH_CACHE_DIR": str(folder / "cache"),
            "CHAOS_API_KEY": SECRET,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
        self.last: list[str] | None = None
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def problem(self, folder: Path, read_data: bool) -> str:
        """What is wrong with the way in which a configuration was read; ``last`` are the lines of its error."""
        self.last = None
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps([str(folder / "study.yaml"), read_data]) + "\n")
            process.stdin.flush()
            answer = self._answers.get(timeout=SECONDS)
        except (queue.Empty, OSError):
            self.close()
            return f"no end within {SECONDS:g} s"
        if not answer:
            code = process.wait(timeout=10)
            self.close()
            return f"the process ended with {code}"
        found = json.loads(answer)
        self.last = found["lines"]
        return str(found["trace"]) or _problem_of_lines(found["lines"], folder)

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self.environment,
                text=True,
                start_new_session=True,
            )
            assert self._process.stdout is not None
            answers: queue.SimpleQueue[str] = queue.SimpleQueue()
            self._answers = answers
            threading.Thread(target=_forward, args=(self._process.stdout, answers), daemon=True).start()
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _forward(stream: IO[str], answers: queue.SimpleQueue[str]) -> None:
    for line in stream:
        answers.put(line)
    answers.put("")


def _problem_of_lines(lines: list[str] | None, folder: Path) -> str:
    """What is wrong with the lines of an error; None: there was none."""
    for line in lines or ():
        if "\n" in line or len(line) > LONGEST_LINE:
            return f"an error of {len(line)} characters: {line[:200]!r}"
        if not line.isprintable() and re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", line):
            return f"control characters in {line[:200]!r}"
        if SECRET in line:
            return f"a secret in {line[:200]!r}"
        if str(folder) not in line and not line.startswith(" "):  # then it continues the line before it
            return f"no file in {line[:200]!r}"
        whole_file = re.search(_WHOLE_FILE, line)
        if re.match(r"[^:]*study\.yaml: ", line) and not whole_file:
            return f"no line in {line[:200]!r}"
    return ""


def _problem_of_command(folder: Path, lines: list[str] | None) -> str:
    """Whether the command says the same, in one call; None: the configuration can be planned."""
    command = ["plan"] if lines is None else ["run", "--offline", "--output", str(folder / "out")]
    done = subprocess.run(
        studies.command(command[0], folder / "study.yaml", *command[1:]),
        capture_output=True,
        timeout=4 * SECONDS,
        env=studies.variables(folder / "cache", CHAOS_API_KEY=SECRET, AWS_SECRET_ACCESS_KEY=SECRET),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    shown = done.stderr.decode("utf-8", "replace")
    if "Traceback" in shown:
        return f"a traceback: {shown[-300:]}"
    if lines is None:
        return (
            ""
            if done.returncode in (0, 3)
            else f"exit code {done.returncode} of a valid plan: {shown[-300:]}"
        )
    if done.returncode != 2:
        return f"exit code {done.returncode}, not 2: {shown[-300:]}"
    if (folder / "out").exists() or (folder / "cache" / "artifacts").exists():
        return "something was computed"
    return "" if lines[0][:80] in shown else f"another message: {shown[-300:]}"


def _serve() -> None:
    """Reads paths of configurations, one a line, and answers with what came of each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what components print must not look like an answer
    for request in sys.stdin:
        path, read_data = json.loads(request)
        answers.write(json.dumps(_read(Path(path), read_data)) + "\n")
        answers.flush()


def _read(path: Path, read_data: bool) -> dict[str, Any]:
    from cfbench_core import api
    from cfbench_core.data_files import DataAccess
    from cfbench_core.errors import UserError
    from cfbench_core.lifecycle.study import source_of

    try:
        prepared = api.prepare(path, access=DataAccess(planning=True))
        if read_data:
            for dataset in prepared.config.data:
                found = source_of(dataset, DataAccess(offline=True))
                dataset.create().load(*([found["source"]] if found else []))
        else:
            prepared.plan.to_json()
    except UserError as error:
        return {"lines": list(error.lines), "trace": ""}
    except BaseException as error:
        return {"lines": None, "trace": "".join(traceback.format_exception(error))[-1500:]}
    return {"lines": None, "trace": ""}


if __name__ == "__main__":
    _serve()
