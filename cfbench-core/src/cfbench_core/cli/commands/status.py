"""``cfbench status``: the progress of a run, also while another process computes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.problems import ended_badly, show_problems
from cfbench_core.locks import is_locked
from cfbench_core.run_directory import Run


@subcommand(
    "status",
    examples=(
        "cfbench status runs/study                a run in progress, or a finished run",
        "watch -n 5 cfbench status runs/study     watch it",
    ),
)
@options.run_directory()
@options.output_format("table", "json")
def command(directory: Path, form: str) -> int:
    """Show the progress of a run. Exits as the run did: 0 success, 1 some cells failed, 3 nothing to run."""
    run = Run(directory)
    ended = _outcomes(run)
    if form == "json":
        output.as_json(_described(run, ended))
    else:
        _show(run, ended)
    return run.exit_code


def _outcomes(run: Run) -> list[Mapping[str, Any]]:
    """The last outcome of each task; none before the first task has ended."""
    if not (run.directory / "outcomes.jsonl").exists() and is_locked(run.directory):
        return []
    return [*{outcome["key"]: outcome for outcome in run.outcomes}.values()]


def _state(run: Run) -> str:
    if is_locked(run.directory):
        return "running"
    unfinished = any(cell.status == "planned" for cell in run.cells())
    return "stopped; the same command resumes it" if unfinished else "finished"


def _described(run: Run, ended: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "directory": str(run.directory),
        "suite": run.suite,
        "state": _state(run).partition(";")[0],
        "cells": dict(Counter(cell.status for cell in run.cells())),
        "tasks": dict(Counter(outcome["status"] for outcome in ended)),
        "problems": [
            {"cell": c.id, "status": c.status, "reason": c.reason} for c in run.cells() if ended_badly(c)
        ],
    }


def _show(run: Run, ended: Sequence[Mapping[str, Any]]) -> None:
    cells = Counter(cell.status for cell in run.cells())
    task = Counter(outcome["status"] for outcome in ended)
    seconds = sum(outcome["elapsed_seconds"] for outcome in ended if outcome["status"] != "cached")
    output.pairs(
        {
            "run": f"{run.directory} ({run.suite})",
            "state": _state(run),
            "cells": _counts(cells),
            "tasks": f"{_counts(task)}; computing took {output.duration(seconds)} in all"
            if ended
            else "none yet",
        }
    )
    show_problems(run)
    if (run.directory / "report.html").exists():
        click.echo(f"\nReport: {run.directory / 'report.html'}")


def _counts(numbers: Counter[str]) -> str:
    return ", ".join(f"{number:,} {status.replace('_', ' ')}" for status, number in numbers.most_common())
