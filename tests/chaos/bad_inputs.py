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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import studies
import yaml
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

SUITES: dict[str, Callable[[Path], dict[str, object]]] = {
    "recsys": studies.recsys,
    "tabular": studies.tabular,
    "text": studies.text,
}
HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    10**6,
    10**12,
    2**31,
    2**63 - 1,
    2**63,
    10**25,
    -(10**30),
    0.0,
    -0.0,
    0.5,
    1e-300,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "x",
    "3",
    "1e400",
    "१२",
    "yes",
    "null",
    "~",
    "name",
    "digits\n2",
    "a" * 200,
    "b" * 20_000,
    "\u202eabc",
    "\ud83d",
    "\0",
    "\x1b[31m",
    "👩\u200d🔬",
    "../../etc/passwd",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/mem",
    "~nobody/x",
    "C:\\x",
    "file:///etc/passwd",
    "http://127.0.0.1:9/v1",
    "import:os:system",
    "os:system",
    "subprocess:check_output",
    "sklearn.svm:SVC",
    "sklearn.utils:shuffle",
    "torch.hub:load",
    "package:os",
    "!!python/name:os.system",
    "AWS_SECRET_ACCESS_KEY",
    "{a: 1}",
    "[1, 2",
    [],
    [[]],
    [None],
    [1, 1],
    ["a", "a"],
    [0.1, 0.1],
    ["x"] * 500,
    {},
    {"a": 1},
    {"name": "x"},
    {"name": ["x"]},
    {"import": "os:O_RDONLY"},
    {"import": "antigravity:X"},
    {"name": "random", "label": ""},
    {"name": "random", "label": "x\ny"},
    {"name": "random", "import": "a:B"},
    {"name": "random", "preset": "none"},
    {"": 1},
    {" ": {" ": {" ": 1}}},
)
HOSTILE_TEXTS = (
    "seed: !foo 3\n",
    "x: &a [*a]\n",
    "columns: &a {b: *a}\n",
    "---\nsuite: recsys\n",
    "%YAML 9.9\n---\n",
    "\tseed: 3\n",
    "seed: 3\nseed: 4\n",
    "k: [3, 3]\n",
    "<<: {seed: 3}\n",
    "? [a]\n: b\n",
    "? {a: b}\n: c\n",
    "[" * 200_000,
    "{a: " * 100_000,
    "- " * 100_000,
    "a:\n" * 50_000,
    'x: "\\ud800"\n',
    "x: '\x07'\n",
    "x: \x00\n",
    "\ufeff\ufeff",
    "x: !!python/object/apply:os.system ['touch hacked']\n",
    "x: !!binary aGk=\n",
    "x: 1" + "0" * 10_000 + "\n",
    "x: 2026-13-45\n",
    "x: " + "9" * 30 + ":59\n",
    "*a : b\n",
    "&a a: *b\n",
    "x: |\n" + "  y\n" * 3000,
    "#" * 3_000_000,
    "x: " + "y" * 1_000_000 + "\n",
    "".join(f"k{n}: 1\n" for n in range(20_000)),
    "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    "...\n",
    "@\n",
    "`\n",
    "%\n",
    ": \n",
    "- a\n",
    "}\n",
)
DATA_TEXTS = (
    b"",
    b"\n",
    b"\0" * 2000,
    b"\xff\xfe" * 50,
    b"\x1f\x8b" + b"\0" * 30,
    b"PK\3\4" + b"\0" * 30,
    b"<!DOCTYPE html><html>login</html>",
    b"[" * 100_000,
    b'{"user": ' * 50_000,
    b"," * 100_000,
    b'"' * 10_001,
    b"a,b\n1\n",
    b"\xef\xbb\xbf",
    b"1e999",
    b"NaN",
    b"\r\r\r",
    b'{"a": 1}\n[1]\n',
)


def trials(budget: Budget) -> Iterator[Trial]:
    reader = _Reader(budget.folder)
    try:
        for number in range(budget.trials):
            suite = (*SUITES,)[number % 3]
            folder = budget.folder / f"{suite}-{number}"
            folder.mkdir()
            seed = budget.seed * 1_000_003 + number
            make = _bad_data if number % 5 == 4 else _bad_configuration
            case = make(random.Random(seed), suite, folder)
            problem = reader.problem(folder, read_data=number % 5 == 4)
            if not problem and number % COMMAND_EVERY == 0:
                problem = _problem_of_command(folder, reader.last)
            yield Trial(f"{case} ({suite}, trial {number})", problem)
    finally:
        reader.close()


# Bad configurations


def _bad_configuration(draw: random.Random, suite: str, folder: Path) -> str:
    """Writes ``study.yaml`` and what it reads; returns what is wrong with it."""
    document = _valid(draw, suite, folder)
    how = draw.choice(
        ("value",) * 8 + ("key", "missing", "append", "text", "text", "bytes", "deep", "set-like")
    )
    if how == "text":
        wrong = draw.choice(HOSTILE_TEXTS)
        text = yaml.safe_dump(document, sort_keys=False)
        text = draw.choice((wrong + text, text + wrong, wrong))
        _write(folder, text.encode("utf-8", "surrogatepass"))
        return f"text {wrong[:40]!r}"
    if how == "bytes":
        return _broken_bytes(draw, folder, yaml.safe_dump(document, sort_keys=False))
    holder, key, place = draw.choice([*_places(document)])
    value = draw.choice(HOSTILE_VALUES)
    case = f"{how} at {place}"
    if how == "value":
        holder[key] = value
        case += f": {str(value)[:40]!r}"
    elif how == "key" and isinstance(holder, dict):
        holder[
            draw.choice((f"{key}x", str(key)[:-1], str(key).upper(), "name", "import", "label", "1", "é"))
        ] = value
    elif how == "missing" and isinstance(holder, dict):
        del holder[key]
    elif how == "deep":
        inner: Any = value
        for _ in range(draw.choice((3, 30, 60, 300))):
            inner = draw.choice(([inner], {"a": inner}))
        holder[key] = inner
    elif isinstance(holder[key], list):
        holder[key].append(draw.choice((value, *holder[key], *holder[key])))
    else:
        holder[key] = [holder[key], holder[key]]
    _write(
        folder,
        yaml.safe_dump(document, sort_keys=False, allow_unicode=draw.random() < 0.5).encode(
            "utf-8", "replace"
        ),
    )
    return case


def _valid(draw: random.Random, suite: str, folder: Path) -> dict[str, Any]:
    """A configuration that can be planned, with all options of some components written out."""
    from cfbench_core.config.component import with_defaults
    from cfbench_core.registry import installed

    document: dict[str, Any] = json.loads(json.dumps(SUITES[suite](folder)))
    kinds = {"recommenders": "recommender", "classifiers": "classifier", "generators": "generator", "judges": "judge",
             "explainers": "explainer", "metrics": "metric", "data": "dataset", "extractor": "extractor"}  # fmt: skip
    known = [key for key, kind in kinds.items() if installed().components(kind, suite)]
    for key in draw.sample(known, min(2, len(known))):
        component = draw.choice(installed().components(kinds[key], suite))
        try:
            options = with_defaults(component).document()
        except (TypeError, ValueError):  # an option has no default, or none that is usable here
            options = component.spec.name
        if key == "extractor" or (key == "data" and draw.random() < 0.5):
            document[key] = options
        else:
            document[key] = [*document.get(key, []), options]
    protocol = document.setdefault("protocol", {})
    if suite == "recsys":
        protocol.update(
            {"level": ["item", "list"], "format": ["implicit"], "scope": ["user-only"], "users": 3}
        )
    document.update(
        seed=draw.choice((0, 7)), limits={"seconds": 60.0, "memory_gb": 4.0}, workers=1, threads=1
    )
    return json.loads(json.dumps(document))  # no value stands in it twice


def _places(value: Any, place: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every value of a document: what holds it, under which key, and where."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in list(entries):
        yield value, key, f"{place}.{key}"
        yield from _places(inner, f"{place}.{key}")


def _broken_bytes(draw: random.Random, folder: Path, text: str) -> str:
    data = bytearray(text.encode())
    how = draw.choice(("flip", "cut", "utf-16", "latin-1", "insert", "swap", "directory", "pipe", "empty"))
    if how == "flip":
        for _ in range(draw.choice((1, 5))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        data = data[: draw.randrange(len(data))]
    elif how == "utf-16":
        data = bytearray(text.encode("utf-16"))
    elif how == "latin-1":
        data += "label: Nóbrega\n".encode("latin-1")
    elif how == "insert":
        at = draw.randrange(len(data))
        data[at:at] = draw.choice(
            (b"\t", b"\0", b"\xff", b"*", b"&", b"!", b"[", b"}", b"\n---\n", b"\xef\xbb\xbf", b"\x85", b'"')
        )
    elif how == "swap":
        lines = text.splitlines(keepends=True)
        draw.shuffle(lines)
        data = bytearray("".join(lines).encode())
    if how == "directory":
        (folder / "study.yaml").mkdir()
    elif how == "pipe" and hasattr(os, "mkfifo"):
        os.mkfifo(folder / "study.yaml")
    else:
        _write(folder, b"" if how == "empty" else bytes(data))
    return f"bytes: {how}"


def _write(folder: Path, data: bytes) -> None:
    (folder / "study.yaml").write_bytes(data)


# Bad data files


def _bad_data(draw: random.Random, suite: str, folder: Path) -> str:
    document = SUITES[suite](folder)
    _write(folder, yaml.safe_dump(document, sort_keys=False).encode())
    (path,) = [path for path in folder.iterdir() if path.name != "study.yaml"]
    data = bytearray(path.read_bytes())
    how = draw.choice(
        ("replace", "flip", "cut", "insert", "repeat", "column", "value", "value", "gone", "directory")
    )
    if how == "replace":
        data = bytearray(draw.choice(DATA_TEXTS))
    elif how == "flip":
        for _ in range(draw.choice((1, 20))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        data = data[: draw.randrange(len(data))]
    elif how == "insert":
        at = draw.randrange(len(data))
        data[at:at] = draw.choice(DATA_TEXTS)
    elif how == "repeat":
        data = data + data
    elif how == "column":
        first = data.split(b"\n", 1)[0]
        data = data.replace(first, first + b"," + first.split(b",")[0], 1)
    elif how == "value":
        values = re.findall(rb"[A-Za-z0-9.]+", bytes(data))
        wrong = draw.choice(
            (
                b"",
                b"null",
                b"1e999",
                b"NaN",
                b"-1",
                b"x" * 100_000,
                b"\xf0\x9f\x91\xa9",
                b"\x1b[31m",
                b"{}",
                b"[]",
                b"true",
                b"0",
            )
        )
        data = bytearray(bytes(data).replace(draw.choice(values), wrong, draw.choice((1, 1, 1000))))
    path.unlink()
    if how == "directory":
        path.mkdir()
    elif how != "gone":
        path.write_bytes(data)
    return f"data: {how}"


# Reading


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
    command = ["plan"] if lines is None else ["run", "--offline", "--out", str(folder / "out")]
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
