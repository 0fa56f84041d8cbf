"""Stores what a run found as a small table under docs/results/, with the command, commit and hardware that made it.

    python scripts/store_results.py runs/study docs/results/amazon-and-movies "cfbench run examples/amazon-and-movies.yaml"

Writes NAME.csv (a row per cell and metric: mean, half the width of the 95% interval, units) and NAME.json. With
``--agreement`` NAME-agreement.csv has the shares of identical answers of each pair of explainers. With ``--analysis``
NAME.csv is the table of an analysis instead, of this run and of those given by ``--also``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cfbench_core.api import analyse
from cfbench_core.run_directory import Run

LABELS = ["dataset", "model", "explainer", "level", "format", "scope", "edit", "max_edits", "k"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", help="of the run")
    parser.add_argument("name", help="of the tables, with their folder, without an ending")
    parser.add_argument("command", help="that made the run")
    parser.add_argument("--agreement", action="store_true", help="store the shares of identical answers, too")
    parser.add_argument("--analysis", help="store the table of this analysis instead of the means")
    parser.add_argument("--set", action="append", default=[], help="an option of the analysis, NAME=VALUE")
    parser.add_argument(
        "--commit", help="of the sources that ran, for runs that were started outside their repository"
    )
    parser.add_argument("--also", action="append", default=[], help="another run for the analysis")
    options = parser.parse_args()
    run = Run(options.directory)
    if options.analysis:
        runs = [run, *map(Run, options.also)]
        given = {
            name: yaml.safe_load(value) for name, _, value in (one.partition("=") for one in options.set)
        }
        analyse(options.analysis, runs, **given).round(4).to_csv(f"{options.name}.csv", index=False)
        write_origin(runs, options.name, options.command, commit_of_run=options.commit)
        return
    store(run, options.name, options.command, options.commit)
    if options.agreement:
        store_agreement(run, options.name)


def store(run: Run, name: str, command: str, commit_of_run: str | None = None) -> None:
    """The means, and what they were measured with."""
    summary = run.summary
    table = summary[[*(label for label in LABELS if label in summary), "metric"]].copy()
    table.insert(table.columns.get_loc("metric"), "role", summary["cell"].map(roles(run)))
    table["mean"] = summary["mean"].map("{:.4g}".format)
    table["interval"] = ((summary["ci_high"] - summary["ci_low"]) / 2).map("{:.2g}".format)
    table["n"] = summary["n"]
    table.to_csv(f"{name}.csv", index=False)
    quality = {"quality": run.quality.round(4).to_dict("records")}
    write_origin([run], name, command, quality, commit_of_run=commit_of_run)


def write_origin(
    runs: Sequence[Run],
    name: str,
    command: str,
    more: Mapping[str, Any] | None = None,
    commit_of_run: str | None = None,
) -> None:
    """NAME.json: how the table was made. Commit, hardware and versions are those of the first run."""
    environment = runs[0].environment
    about = {
        "command": command,
        "commit_of_the_run": environment["git"] or (commit_of_run and {"commit": commit_of_run}),
        "commit_when_stored": commit(),
        "hardware": environment["hardware"],
        "versions": environment["distributions"],
        **(more or {}),
        "elapsed_seconds": round(sum(map(elapsed_seconds, runs)), 1),
    }
    if len(runs) > 1:
        about["elapsed_seconds_by_run"] = {run.directory.name: round(elapsed_seconds(run), 1) for run in runs}
    Path(f"{name}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def roles(run: Run) -> dict[str, str]:
    """Of each cell: baseline, reference or certified; empty for a method that competes."""
    return {cell.id: cell.role for cell in run.cells()}


def store_agreement(run: Run, name: str) -> None:
    """Of each pair of explainers in each setting, the share of identical answers and the mean overlap."""
    found = analyse("agreement", run)
    pairs = [*(label for label in LABELS if label in found and label != "explainer"), "explainer", "other"]
    found["metric"] = found["metric"].str.replace(" answers", "")
    wide = found.pivot_table(index=[*pairs, "n"], columns="metric", values="mean", sort=False).reset_index()
    wide.round(4).to_csv(f"{name}-agreement.csv", index=False)


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
    main()
