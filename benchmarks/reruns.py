"""One table of each paper, reproduced twice from an empty cache: are the comparisons and the scores identical?

    python benchmarks/reruns.py [PAPER ...] [--output FOLDER] [--keep docs/results/reruns]

Each run has a cache of its own, and the second computes two tasks at a time where the first computes one. Compared are
the table of the comparison (``cfbench reproduce --format csv``; times of figure 4 and table 6 are not among the items)
and, in each run directory, ``scores.parquet`` and ``explanations.parquet``, all without the columns that hold times.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from results import keep

ITEMS: dict[str, tuple[str, list[str]]] = {  # paper: item, and what makes its study small
    "cfexprec": ("table-3", ["protocol.users=5"]),
    "refined-fidelity": ("figure-1-right", ["protocol.users=20"]),
    "beyond-top-1": (
        "table-1",
        ["protocol.users=10", "explainers=[cosine, jaccard, {name: lime-rs, variant: paper}, lxr]"],
    ),
    "cf-tabular": ("table-a1", ["data=[balance-scale, iris]"]),
    "statement-factuality": (
        "table-iv",
        [
            "generators=[{name: nrt, hidden: 32, vocabulary: 500, length: 15, epochs: 1}, reference]",
            "metrics=[stent, stent-bin, stcoh]",
            "protocol.rows=50",
        ],
    ),
}
TIMES = ("time", "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", nargs="*", default=list(ITEMS), metavar="PAPER", help=", ".join(ITEMS))
    parser.add_argument("--output", type=Path, help="for the runs; a temporary folder unless given")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.papers if name not in ITEMS]:
        parser.error(f"unknown paper {unknown[0]}; known: {', '.join(ITEMS)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.output or Path(temporary)).resolve()
        rows = [compared(paper, folder / paper) for paper in arguments.papers]
    for row in rows:
        print(row)
    if arguments.keep:
        keep(arguments.keep, rows, ["paper", "item"], "python benchmarks/reruns.py")
    if not all(row["identical"] for row in rows):
        sys.exit("the reruns differ")


def compared(paper: str, folder: Path) -> dict[str, Any]:
    """What two runs of a paper's item have in common."""
    item, changes = ITEMS[paper]
    first, second = (reproduced(paper, item, changes, folder / name, workers) for name, workers in
                     (("first", 1), ("second", 2)))  # fmt: skip
    differing = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return {
        "paper": paper,
        "item": item,
        "changes": " ".join(changes),
        "files": len(first),
        "rows": sum(count for count, _ in first.values()),
        "identical": not differing,
        "differing": " ".join(differing),
        "digest": hashlib.sha256(repr(sorted(first.items())).encode()).hexdigest()[:16],
    }


def reproduced(
    paper: str, item: str, changes: list[str], folder: Path, workers: int
) -> dict[str, tuple[int, str]]:
    """By the name of a table: its number of rows and the digest of its values."""
    command = [sys.executable, "-m", "cfbench_core", "reproduce", paper, item, "--format", "csv", "--quiet"]
    command += ["--offline", "--workers", str(workers), "--output", str(folder / "runs")]
    command += [part for change in changes for part in ("--set", change)]
    environment = os.environ | {"CFBENCH_CACHE_DIR": str(folder / "cache")}
    folder.mkdir(parents=True)
    table = folder / "table.csv"
    with table.open("w", encoding="utf-8") as file:
        subprocess.run(command, check=True, stdout=file, env=environment)
    found = {"comparison": digest(pd.read_csv(table))}
    for name in ("scores", "explanations"):
        for path in sorted((folder / "runs").rglob(f"{name}.parquet")):
            found[str(path.relative_to(folder / "runs"))] = digest(pd.read_parquet(path))
    return found


def digest(table: pd.DataFrame) -> tuple[int, str]:
    """The rows of a table and the SHA-256 of its values, without measured times."""
    table = table[[name for name in table if name not in TIMES]]
    if "metric" in table:
        table = table[~table["metric"].astype(str).isin(TIMES)]
    text = table.to_csv(index=False, float_format="%.17g")
    return len(table), hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
