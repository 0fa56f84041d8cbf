"""``cfbench status``: the progress of a run, also while another process computes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.problems import show_problems
from cfbench_core.run_directory import Run
from cfbench_core.run_status import RunStatus, status

STATES = {"stopped": "stopped; the same command resumes it"}


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
    found = status(run)
    if form == "json":
        output.as_json(dataclasses.asdict(found))
    else:
        _show(run, found)
    return run.exit_code


def _show(run: Run, found: RunStatus) -> None:
    computed = f"; computing took {output.duration(found.seconds)} in all"
    output.pairs(
        {
            "run": f"{run.directory} ({run.suite})",
            "state": STATES.get(found.state, found.state),
            "cells": _counts(found.cells),
            "tasks": f"{_counts(found.tasks)}{computed}" if found.tasks else "none yet",
        }
    )
    show_problems(run)
    if (run.directory / "report.html").exists():
        click.echo(f"\nReport: {run.directory / 'report.html'}")


def _counts(numbers: Mapping[str, int]) -> str:
    most_first = sorted(numbers.items(), key=lambda one: -one[1])
    return ", ".join(f"{number:,} {status.replace('_', ' ')}" for status, number in most_first)
