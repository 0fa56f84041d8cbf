"""Stores what a run found as a small table under docs/results/, with the command, commit and hardware that made it.

    python scripts/store_results.py runs/study docs/results/amazon-and-movies "cfbench run examples/amazon-and-movies.yaml"

Writes NAME.csv (a row per cell and metric: mean, half the width of the 95% interval, units) and NAME.json. With
``--agreement`` NAME-agreement.csv has the shares of identical answers of each pair of explainers. With ``--analysis``
NAME.csv is the table of an analysis instead, of this run and of those given by ``--also``. With ``--merge`` the rows of the
cells that did not run are left in the tables that exist, and each row has its commit; with ``--only EXPLAINER`` those of the
other explainers that ran are left, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from index_results import commit_of

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
    parser.add_argument(
        "--merge", action="store_true", help="replace only the rows of the cells that this run has"
    )
    parser.add_argument(
        "--only", action="append", default=[], help="with --merge: take the rows of this explainer alone"
    )
    options = parser.parse_args()
    if options.only and not options.merge:
        parser.error("--only: needs --merge")
    run = Run(options.directory)
    if options.analysis:
        runs = [run, *map(Run, options.also)]
        given = {
            name: yaml.safe_load(value) for name, _, value in (one.partition("=") for one in options.set)
        }
        analyse(options.analysis, runs, **given).round(6).to_csv(f"{options.name}.csv", index=False)
        write_origin(runs, options.name, options.command, commit_of_run=options.commit)
        return
    before = read_origin(options.name) if options.merge else None
    store(run, options.name, options.command, options.commit, before, options.only)
    if options.agreement:
        store_agreement(run, options.name, before, options.only)


def read_origin(name: str) -> dict[str, Any]:
    """What NAME.json says of the tables that exist."""
    found: dict[str, Any] = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
    return found


def store(
    run: Run,
    name: str,
    command: str,
    commit_of_run: str | None = None,
    before: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
) -> None:
    """The means, and what they were measured with; ``before``: the origin of a table whose other rows are left."""
    summary = run.summary
    if only:
        summary = summary[summary["explainer"].isin(only)]
    table = summary[[*(label for label in LABELS if label in summary), "metric"]].copy()
    table.insert(table.columns.get_loc("metric"), "role", summary["cell"].map(roles(run)))
    table["mean"] = summary["mean"].map("{:.4g}".format)
    table["interval"] = ((summary["ci_high"] - summary["ci_low"]) / 2).map("{:.2g}".format)
    table["n"] = summary["n"]
    more: dict[str, Any] = {"quality": run.quality.round(4).to_dict("records")}
    if before is not None:
        cells = [label for label in LABELS if label in table]
        table["commit"] = commit_of({"commit_of_the_run": source_of(run, commit_of_run)})
        table = merged(table, f"{name}.csv", cells, commit_of(dict(before)))
        more["merged_into"] = {"command": before["command"], "note": before.get("note", "")}
    table.to_csv(f"{name}.csv", index=False)
    write_origin([run], name, command, more, commit_of_run=commit_of_run)


def merged(new: pd.DataFrame, path: str, cells: list[str], commit_before: str) -> pd.DataFrame:
    """The table that exists, with new rows for these cells; those without a commit get ``commit_before``."""
    old = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "commit" in new and "commit" not in old:
        old["commit"] = commit_before
    new = new.astype(object).where(new.notna(), "").astype(str)
    measured = set(_names(new[cells]))
    both = pd.concat([new, old[[name not in measured for name in _names(old[cells])]]], ignore_index=True)
    places = {name: place for place, name in enumerate(dict.fromkeys(_names(old[cells])))}
    order = [places.get(name, len(places)) for name in _names(both[cells])]
    return both.iloc[pd.Series(order).sort_values(kind="stable").index]


def _names(cells: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(cells.itertuples(index=False, name=None))


def write_origin(
    runs: Sequence[Run],
    name: str,
    command: str,
    more: Mapping[str, Any] | None = None,
    commit_of_run: str | None = None,
) -> None:
    """NAME.json: how the table was made. Hardware, versions, and the commit if all have one, are those of the first run."""
    environment = runs[0].environment
    about = {
        "command": command,
        "commit_of_the_run": source_of(runs[0], commit_of_run),
        "commit_when_stored": commit(),
        "hardware": environment["hardware"],
        "versions": environment["distributions"],
        **(more or {}),
        "elapsed_seconds": round(sum(map(elapsed_seconds, runs)), 1),
    }
    if len(runs) > 1:
        names = names_of(runs)
        seconds = [round(elapsed_seconds(run), 1) for run in runs]
        about["elapsed_seconds_by_run"] = dict(zip(names, seconds, strict=True))
        commits = [commit_of({"commit_of_the_run": source_of(run, commit_of_run)}) for run in runs]
        if len({*commits}) > 1:
            about["commits_by_run"] = dict(zip(names, commits, strict=True))
    Path(f"{name}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def names_of(runs: Sequence[Run]) -> list[str]:
    """Their folders' names, of which a second one is called "table-5 (2)"."""
    names: list[str] = []
    for run in runs:
        name, count = run.directory.name, 1
        while name in names:
            count += 1
            name = f"{run.directory.name} ({count})"
        names.append(name)
    return names


def source_of(run: Run, commit_of_run: str | None) -> dict[str, Any] | None:
    """The commit that a run recorded; where it recorded none, the one that is given."""
    recorded: dict[str, Any] | None = run.environment["git"]
    given = {"commit": commit_of_run} if commit_of_run else None
    return recorded or given


def roles(run: Run) -> dict[str, str]:
    """Of each cell: baseline, reference or certified; empty for a method that competes."""
    return {cell.id: cell.role for cell in run.cells()}


def store_agreement(
    run: Run, name: str, before: Mapping[str, Any] | None = None, only: Sequence[str] = ()
) -> None:
    """Of each pair of explainers in each setting, the share of identical answers and the mean overlap."""
    found = analyse("agreement", run)
    if only:
        found = found[found["explainer"].isin(only) | found["other"].isin(only)]
    pairs = [*(label for label in LABELS if label in found and label != "explainer"), "explainer", "other"]
    found["metric"] = found["metric"].str.replace(" answers", "")
    wide = found.pivot_table(index=[*pairs, "n"], columns="metric", values="mean", sort=False).reset_index()
    wide = wide.round(4)
    if before is not None:
        wide = merged(wide, f"{name}-agreement.csv", pairs, "")
    wide.to_csv(f"{name}-agreement.csv", index=False)


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
