"""Hostile names through every output: terminal, HTML in Chromium, CSV, LaTeX, Markdown, JSON.

Labels of explainers and data sets, identifiers of users, names of items, columns, levels and texts of reviews are
commands of terminals, markup, formulas, LaTeX, or very long. What cannot be a name must be refused in one line.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from trial import Budget, Trial

NAME = "hostile names"
MINIMUM = 60

NAMES = (
    "<script>document.title='HACK'+'ED'</script>",
    "<img src=x onerror=\"document.title='HACK'+'ED'\">",
    "</table></body><h1>HACKED",
    "&lt;b&gt; &amp; {{ 7*7 }} {% raw %}",
    "\x1b[31mred\x1b[0m \x1b]0;HACKED\x07",
    "\u202eright to left",
    '=HYPERLINK("http://127.0.0.1")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "[0.5cm] first in a row",
    "* starred",
    r"\input{/etc/passwd} \end{tabular} $x^2_3$ 50% #1 ~ ^ \\",
    "a|b `code` **bold** [link](javascript:alert(1))",
    "日本語の名前",
    "שם בעברית",
    "👩\u200d🔬 scientist",
    "e\u0301 combining " + "\u0301" * 30,
    "a/b\\c:d",
    "../../up",
    "con",
    "nul.txt ",
    "x" * 900,
    "x" * 100_000,
    "two\nlines",
    "tab\tseparated",
    "nul\x00byte",
    "half \ud83d",
    "",
    " ",
    "null",
    "NaN",
    "%s %d {0} {name}",
    "'; DROP TABLE users; --",
    'cell,with,"commas"',
)
COMMANDS = """
import contextlib, io, json, sys
from cfbench_core.cli import main
done = []
for command in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command)
    done.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(done))
"""
AFTERWARDS = (
    ["report", "run"],
    *(["report", "run", "--format", format] for format in ("markdown", "csv", "latex", "html")),
    ["status", "run", "--format", "json"],
    ["explain", "run"],
)
SECONDS = 120.0


def trials(budget: Budget) -> Iterator[Trial]:
    """Each name in a role of one of the suites; the outputs of the runs that succeed are checked."""
    names = [*NAMES]
    budget.random.shuffle(names)
    done = 0
    while done < budget.trials:
        for number, name in enumerate(names):
            if done >= budget.trials:
                return
            role = ROLES[(number + done // len(names)) % len(ROLES)]
            yield _trial(budget.folder / f"{done}", role, name)
            done += 1


def _trial(folder: Path, role: str, name: str) -> Trial:
    case = f"{role} {name[:40]!r}{f' ({len(name):,} characters)' if len(name) > 40 else ''}"
    folder.mkdir()
    try:
        problems = [*_problems(folder, role, name)]
    except subprocess.TimeoutExpired as late:
        problems = [f"no end within {late.timeout:.0f} s"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Trial(case, "; ".join(problems))


def _problems(folder: Path, role: str, name: str) -> Iterator[str]:
    study = WRITERS[role](folder, name)
    (folder / "study.yaml").write_text(
        yaml.safe_dump(study, allow_unicode=True), encoding="utf-8", errors="surrogatepass"
    )
    done = _cfbench(folder, ["run", "study.yaml", "--output", "run"], *AFTERWARDS)
    ran = done["run study.yaml --output run"]
    yield from _bad_output("run", ran)
    if ran.code == 2:
        lines = ran.errors.strip().splitlines()
        if not lines or len(lines) > 3:
            yield f"refused in {len(lines)} lines"
        return
    if ran.code not in (0, 1):
        yield f"run exits with {ran.code}: {ran.errors[-300:]}"
        return
    for command, result in done.items():
        yield from _bad_output(command, result)
        if result.code not in (0, ran.code) and command.startswith(("report", "status")):
            yield f"{command} exits with {result.code}: {result.errors[-300:]}"
    if ran.code == 0:
        for command, check in CHECKS.items():
            yield from check(done[command].output, folder)


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    output: str
    errors: str


def _cfbench(folder: Path, *commands: list[str]) -> dict[str, Done]:
    """Commands, one after the other, in one process; by their text."""
    variables = {**os.environ, "CFBENCH_CACHE_DIR": str(folder / "cache"), "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=folder, env=variables, capture_output=True, encoding="utf-8",
        timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    found = [Done(*each) for each in json.loads(done.stdout)]
    return {" ".join(command): each for command, each in zip(commands, found, strict=True)}


def _bad_output(command: str, done: Done) -> Iterator[str]:
    """What must not be in the output of any command: tracebacks, and control characters that reach the terminal."""
    both = done.output + done.errors
    if "Traceback (most recent call last)" in both:
        yield f"{command}: a traceback"
    hidden = re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", both)
    if hidden:
        yield f"{command}: control characters {sorted(set(hidden))!r}"


def _check_csv(text: str, folder: Path) -> Iterator[str]:
    rows = list(csv.reader(io.StringIO(text)))
    if len({len(row) for row in rows}) != 1:
        yield "CSV: rows of unequal length"
    for cell in (cell for row in rows for cell in row):
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not _is_number(cell):
            yield f"CSV: the cell {cell[:40]!r} is a formula"


def _check_json(text: str, folder: Path) -> Iterator[str]:
    try:
        json.loads(text)
    except ValueError as error:
        yield f"JSON: {error}"


def _check_latex(text: str, folder: Path) -> Iterator[str]:
    """Compiles the tables, where there is a LaTeX."""
    latin = all(ord(character) < 0x180 for character in text)
    engine = shutil.which("pdflatex" if latin else "lualatex")
    if engine is None:
        return
    document = (
        "\\documentclass{article}\\usepackage{booktabs}\\usepackage{graphicx}\\begin{document}\n"
        f"{text}\n\\end{{document}}\n"
    )
    (folder / "tables.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        [engine, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=folder, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0 or not (folder / "tables.pdf").exists():
        errors = [line for line in done.stdout.splitlines() if line.startswith("!")]
        yield f"LaTeX: {errors[:1] or done.stdout[-200:]}"


def _check_html(text: str, folder: Path) -> Iterator[str]:
    """Opens the report in Chromium, where there is one: no name may run as a script or become markup."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    page = folder / "run" / "report.html"
    if browser is None or not page.exists():
        return
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run", f"--user-data-dir={folder / 'profile'}",
         "--virtual-time-budget=3000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)
    if title is None:
        yield f"HTML: Chromium shows no page: {done.stderr[-200:]}"
    elif "HACKED" in title[1]:
        yield "HTML: a name ran as a script"
    if re.search(r"<h1[^>]*>\s*HACKED", done.stdout):
        yield "HTML: a name became markup"


CHECKS = {
    "report run --format csv": _check_csv,
    "report run --format latex": _check_latex,
    "report run --format html": _check_html,
    "status run --format json": _check_json,
}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _ratings(folder: Path, user: str = "", item: str = "", title: str = "") -> None:
    """Twelve users and ten items; the first of each may have a name of its own."""
    rows = []
    for number in range(12):
        for place in range(10):
            if (number * 7 + place * 3) % 4:
                rows.append(
                    {
                        "user": user if user and number == 0 else f"u{number}",
                        "item": item if item and place == 0 else f"i{place}",
                        "title": title if title and place == 0 else f"Item {place}",
                    }
                )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "ratings.jsonl").write_text(lines, encoding="utf-8")


def _recsys(data: object, explainers: list[object]) -> dict[str, object]:
    return {
        "suite": "recsys",
        "executor": "inline",
        "data": data,
        "recommenders": ["ease"],
        "explainers": explainers,
        "protocol": {"k": 3, "users": 12},
    }


def _label_of_explainer(folder: Path, name: str) -> dict[str, object]:
    _ratings(folder)
    return _recsys(
        [{"name": "file", "path": "ratings.jsonl"}], [{"name": "random", "label": name}, "popularity"]
    )


def _label_of_dataset(folder: Path, name: str) -> dict[str, object]:
    _ratings(folder)
    return _recsys([{"name": "file", "path": "ratings.jsonl", "label": name}], ["random", "popularity"])


def _user(folder: Path, name: str) -> dict[str, object]:
    _ratings(folder, user=name)
    return _recsys([{"name": "file", "path": "ratings.jsonl"}], ["random", "popularity"])


def _item(folder: Path, name: str) -> dict[str, object]:
    _ratings(folder, item=name)
    return _recsys([{"name": "file", "path": "ratings.jsonl"}], ["random", "popularity"])


def _title_of_item(folder: Path, name: str) -> dict[str, object]:
    _ratings(folder, title=name)
    return _recsys(
        [{"name": "file", "path": "ratings.jsonl", "item_name": "title"}], ["random", "popularity"]
    )


def _table(folder: Path, column: str = "color", level: str = "red", class_name: str = "yes") -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["size", column, "class"])
    for number in range(60):
        high = number % 7 > 3
        writer.writerow([number % 7, level if high else "blue", class_name if high else "no"])
    content = text.getvalue().encode("utf-8", "surrogatepass")
    (folder / "table.csv").write_bytes(content)


def _tabular() -> dict[str, object]:
    return {
        "suite": "tabular",
        "executor": "inline",
        "data": [{"name": "csv", "file": "table.csv"}],
        "classifiers": ["logistic-regression"],
        "explainers": ["nearest-enemy", "random"],
        "protocol": {"factuals": 6},
    }


def _column(folder: Path, name: str) -> dict[str, object]:
    _table(folder, column=name)
    return _tabular()


def _level(folder: Path, name: str) -> dict[str, object]:
    _table(folder, level=name)
    return _tabular()


def _class(folder: Path, name: str) -> dict[str, object]:
    _table(folder, class_name=name)
    return _tabular()


def _reviews(folder: Path, user: str = "", text: str = "") -> dict[str, object]:
    said = ("The bass is excellent.", "The price is a ridiculous joke.", "The hinge is strong.")
    rows = []
    for number in range(8):
        for time in range(5):
            own = text if text and number == 0 and time == 4 else said[(number + time) % 3]
            name = user if user and number == 0 else f"u{number}"
            rows.append({"user": name, "item": f"i{(number + time) % 5}", "text": own, "time": time})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "reviews.jsonl").write_text(lines, encoding="utf-8")
    return {
        "suite": "text",
        "executor": "inline",
        "data": [{"name": "reviews", "path": "reviews.jsonl", "domain": "toy-reviews"}],
        "extractor": "rules",
        "generators": ["item-review", "reference"],
        "judges": ["overlap"],
    }


def _reviewer(folder: Path, name: str) -> dict[str, object]:
    return _reviews(folder, user=name)


def _review(folder: Path, name: str) -> dict[str, object]:
    return _reviews(folder, text=f"The bass is excellent. {name}")


WRITERS = {
    "label of an explainer": _label_of_explainer,
    "label of a data set": _label_of_dataset,
    "user": _user,
    "item": _item,
    "title of an item": _title_of_item,
    "column": _column,
    "level": _level,
    "class": _class,
    "user of a review": _reviewer,
    "review": _review,
}
ROLES = tuple(WRITERS)
