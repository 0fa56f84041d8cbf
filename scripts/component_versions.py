"""The components that stored results name in their rows: their versions at the commit of a result, and today.

A component raises its ``version`` when its answers change. Versions are read from the source files of a commit or of the
working tree; nothing is imported. They are evidence of one kind only: a component with its old version may have changed
without notice, and so may data, models and metrics that a table does not name.
"""

from __future__ import annotations

import ast
import csv
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = re.compile(r"cfbench-[a-z-]+/src/.*\.py")
ID = re.compile(r"\bid=\"([a-z-]+/[a-z-]+/[\w-]+)\"")
FIRST_VERSION = "1"
KINDS = {
    "dataset": ("dataset",),
    "explainer": ("explainer",),
    "other": ("explainer",),
    "method": ("explainer",),
    "model": ("recommender", "classifier", "generator"),
    "generator": ("generator",),
    "extractor": ("extractor",),
    "judge": ("judge",),
    "metric": ("metric",),
}
"""The kinds of the components whose names stand in a column."""

Key = tuple[str, str]
"""Kind and name."""


def has_history() -> bool:
    """Whether this is a git repository with all its commits."""
    return (ROOT / ".git").exists() and _git("rev-parse", "--is-shallow-repository").strip() == "false"


def today() -> dict[str, str]:
    """The version of each component of the working tree, by id."""
    files = ROOT.glob("cfbench-*/src/**/*.py")
    return {
        key: value for path in files for key, value in _declared(path.read_text(encoding="utf-8")).items()
    }


@cache
def at_commit(commit: str) -> Mapping[str, str]:
    """The same of a commit; empty if the repository does not have it."""
    if not _git("rev-parse", "--verify", "-q", f"{commit}^{{commit}}"):
        return {}
    listed = _git(
        "grep", "-l", "-E", ID.pattern.replace(r"\b", "").replace(r"\w", "a-z0-9_"), commit, "--", "*.py"
    )
    names = [name for name in listed.split() if SOURCE.fullmatch(name.partition(":")[2])]
    contents = _git("cat-file", "--batch", given="\n".join(names))
    found: dict[str, str] = {}
    for part in re.split(r"^[0-9a-f]{40} blob \d+$", contents, flags=re.MULTILINE):
        found |= _declared(part)
    return found


def versions_in(tables: Iterable[Path], commit: str, now: Mapping[str, str]) -> dict[str, str]:
    """The components that rows name, with their version at the commit of these rows; "" where it is not known.

    Of a component that several commits measured it is today's version, if one of them had that.

    Args:
        tables: CSV files. A row may have a commit of its own.
        commit: of the other rows; may name several.
        now: today's versions by id. Where two suites have a name, that with most of the other names is meant.
    """
    by_name: dict[Key, list[str]] = {}
    for one in now:
        _, kind, name = one.split("/")
        by_name.setdefault((kind, name), []).append(one)
    named = _named(tables, commit, frozenset(by_name))
    suites = Counter(one.split("/")[0] for key in named for one in by_name[key])
    found = {}
    for key, commits in named.items():
        component = max(by_name[key], key=lambda one: suites[one.split("/")[0]])
        then = {at_commit(one).get(component, "") for one in commits}
        found[component] = now[component] if now[component] in then else max(then, key=_order, default="")
    return dict(sorted(found.items()))


def _order(version: str) -> tuple[int, str]:
    return len(version), version


def _named(tables: Iterable[Path], commit: str, known: frozenset[Key]) -> dict[Key, set[str]]:
    """The names in rows, with the commits of these rows."""
    cells: set[tuple[str, str, str]] = set()
    for path in tables:
        with path.open(encoding="utf-8", newline="") as opened:
            rows = csv.DictReader(opened)
            columns = KINDS.keys() & set(rows.fieldnames or ())
            for row in rows:
                cells |= {(column, row[column], row.get("commit") or commit) for column in columns}
    found: dict[Key, set[str]] = {}
    for column, label, words in cells:
        for kind in KINDS[column]:
            name = _name_in(label, {name for one, name in known if one == kind})
            if name:
                found.setdefault((kind, name), set()).update(re.findall(r"\b[0-9a-f]{7,40}\b", words))
    return found


def _name_in(label: str, names: set[str]) -> str:
    """The longest name that a label begins with: "lxr" of "lxr-paper", "lightgcn" of "lightgcn@50%"; "" if none."""
    ends = [len(label), *(one.start() for one in re.finditer(r"[-@\[(, ]", label))]
    return max((label[:end] for end in ends if label[:end] in names), key=len, default="")


@cache
def _declared(text: str) -> Mapping[str, str]:
    """The version of each component that a source file declares."""
    found = dict.fromkeys(ID.findall(text), FIRST_VERSION)
    if found and "version=" in text:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                given = {
                    one.arg: one.value.value for one in node.keywords if isinstance(one.value, ast.Constant)
                }
                if given.get("id") in found and "version" in given:
                    found[str(given["id"])] = str(given["version"])
    return found


def _git(*arguments: str, given: str = "") -> str:
    """What a git command prints; empty if it fails or there is no git."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, encoding="utf-8", check=False, input=given
        )
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
