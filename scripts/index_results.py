"""Writes docs/results/index.json: each stored result with its tables, their columns and checksums, and how it was measured.

    python scripts/index_results.py            # after a result was stored

``index.schema.json`` in the same folder is the JSON Schema of the index. Needs no other package.

``components`` has the version of each component that the rows name, at the commit of the result ("" if it is not known).
It is read from the git history; without it, that of the index that exists is used. ``outdated`` lists the components that
have another version today, which needs no history.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from component_versions import has_history, today, versions_in

RESULTS = Path(__file__).parent.parent / "docs" / "results"
OWN = ("index", "index.schema")
FORMAT = 2


def main() -> None:
    (RESULTS / "index.json").write_text(text_of_index(RESULTS, has_history()), encoding="utf-8")


def text_of_index(folder: Path, history: bool) -> str:
    """The index of the results in a folder, as JSON.

    Args:
        folder: of the results.
        history: read the versions at the commits from git; else take them from the index that exists.
    """
    names = sorted(path.stem for path in folder.glob("*.json") if path.stem not in OWN)
    results = [result(folder, name, names) for name in names]
    now, stored = today(), {} if history else _stored_versions(folder)
    results = [{**one, **state_of(folder, one, now, stored.get(one["name"]))} for one in results]
    return json.dumps({"format": FORMAT, "results": results}, indent=1, ensure_ascii=False) + "\n"


def result(folder: Path, name: str, names: list[str]) -> dict[str, Any]:
    """One stored result: NAME.json, NAME.csv, and further tables NAME-*.csv that have no .json of their own."""
    origin = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    tables = [
        path
        for path in sorted(folder.glob("*.csv"))
        if path.stem == name or (path.stem not in names and _owner(path.stem, names) == name)
    ]
    return {
        "name": name,
        "command": origin.get("command", ""),
        "commit": commit_of(origin) or commits_of_rows(tables),
        "hardware": origin.get("hardware", ""),
        "note": origin.get("note", ""),
        "origin": file_of(folder / f"{name}.json"),
        "tables": [{**file_of(path), **shape_of(path)} for path in tables],
    }


def state_of(
    folder: Path, result: Mapping[str, Any], now: Mapping[str, str], stored: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Whether the components of a result have today's versions.

    Args:
        folder: of the tables.
        result: with command, commit and tables. Without a command it holds numbers that others published.
        now: today's versions.
        stored: the versions at its commit, if they need not be read from the history.
    """
    tables = [folder / table["file"] for table in result["tables"]] if result["command"] else []
    then = versions_in(tables, result["commit"], now) if stored is None else stored
    outdated = [
        {"component": name, "then": version, "now": now.get(name, "")}
        for name, version in then.items()
        if version and version != now.get(name)
    ]
    unknown = "unknown" if "" in then.values() else "current"
    state = "outdated" if outdated else unknown if then else "no components"
    return {"state": state, "outdated": outdated, "components": then}


def commit_of(origin: dict[str, Any]) -> str:
    """Of the sources that computed it, all of them where runs differ; of those that stored it where the run did not know;
    empty if neither is recorded."""
    if by_run := origin.get("commits_by_run"):
        return ", ".join(sorted({*map(str, by_run.values())}))
    for key in ("commit_of_the_run", "commit", "commit_after", "commit_when_stored"):
        found = origin.get(key)
        if isinstance(found, dict):
            found = found.get("commit")
        if found:
            return str(found)
    return ""


def commits_of_rows(tables: Iterable[Path]) -> str:
    """The commits that the rows of tables name, each once and in alphabetical order; empty if no row names one."""
    found = set()
    for path in tables:
        with path.open(encoding="utf-8", newline="") as opened:
            found |= {row["commit"] for row in csv.DictReader(opened) if row.get("commit")}
    return ", ".join(sorted(found))


def file_of(path: Path) -> dict[str, Any]:
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def shape_of(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8", newline="") as opened:
        rows = csv.reader(opened)
        columns = next(rows)
        return {"columns": columns, "rows": sum(1 for _ in rows)}


def _stored_versions(folder: Path) -> dict[str, Any]:
    """The components of each result in the index that exists."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return {one["name"]: one["components"] for one in index["results"]}


def _owner(table: str, names: list[str]) -> str:
    """The longest name that a table's name begins with; empty if there is none."""
    return max((name for name in names if table.startswith(f"{name}-")), key=len, default="")


if __name__ == "__main__":
    main()
