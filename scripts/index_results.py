"""Writes docs/results/index.json: each stored result with its tables, their columns and checksums, and how it was measured.

    python scripts/index_results.py            # after a result was stored

``index.schema.json`` in the same folder is the JSON Schema of the index. Needs no other package.
"""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "docs" / "results"
OWN = ("index", "index.schema")
FORMAT = 1


def main() -> None:
    (RESULTS / "index.json").write_text(text_of_index(RESULTS), encoding="utf-8")


def text_of_index(folder: Path) -> str:
    """The index of the results in a folder, as JSON."""
    names = sorted(path.stem for path in folder.glob("*.json") if path.stem not in OWN)
    results = [result(folder, name, names) for name in names]
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
        "commit": commit_of(origin),
        "hardware": origin.get("hardware", ""),
        "note": origin.get("note", ""),
        "origin": file_of(folder / f"{name}.json"),
        "tables": [{**file_of(path), **shape_of(path)} for path in tables],
    }


def commit_of(origin: dict[str, Any]) -> str:
    """Of the sources that computed it; of those that stored it where the run did not know; empty if neither is recorded."""
    for key in ("commit_of_the_run", "commit", "commit_after", "commit_when_stored"):
        found = origin.get(key)
        if isinstance(found, dict):
            found = found.get("commit")
        if found:
            return str(found)
    return ""


def file_of(path: Path) -> dict[str, Any]:
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def shape_of(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8", newline="") as opened:
        rows = csv.reader(opened)
        columns = next(rows)
        return {"columns": columns, "rows": sum(1 for _ in rows)}


def _owner(table: str, names: list[str]) -> str:
    """The longest name that a table's name begins with; empty if there is none."""
    return max((name for name in names if table.startswith(f"{name}-")), key=len, default="")


if __name__ == "__main__":
    main()
