"""Stores what a run found as a small table under docs/results/, with the command, commit and hardware that made it.

    python scripts/store_results.py runs/study docs/results/amazon-and-movies "cfbench run examples/amazon-and-movies.yaml"

Writes NAME.csv (a row per cell and metric: mean, half the width of the 95% interval, units) and NAME.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from cfbench_core.run_directory import Run

LABELS = ["dataset", "model", "explainer", "level", "format", "scope", "edit", "k"]


def main(directory: str, name: str, command: str) -> None:
    run = Run(directory)
    summary = run.summary
    table = summary[[*(label for label in LABELS if label in summary), "metric"]].copy()
    table["mean"] = summary["mean"].map("{:.4g}".format)
    table["interval"] = ((summary["ci_high"] - summary["ci_low"]) / 2).map("{:.2g}".format)
    table["n"] = summary["n"]
    table.to_csv(f"{name}.csv", index=False)
    environment = run.environment
    about = {
        "command": command,
        "commit_of_the_run": environment["git"],
        "commit_when_stored": commit(),
        "hardware": environment["hardware"],
        "versions": environment["distributions"],
        "quality": run.quality.round(4).to_dict("records"),
        "elapsed_seconds": round(elapsed_seconds(run), 1),
    }
    Path(f"{name}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def commit() -> str:
    """Of the source tree that this script stands in. A run started elsewhere does not know its own."""
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    return found.stdout.strip()


def elapsed_seconds(run: Run) -> float:
    """Wall time of all tasks, summed over workers; each task once, however often the run was resumed."""
    lines = map(json.loads, (run.directory / "outcomes.jsonl").read_text(encoding="utf-8").splitlines())
    return float(sum({line["key"]: line["elapsed_seconds"] for line in lines}.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
