"""The end of a run: tables, failures, one explanation as a sentence, and the path of the report."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cfbench_core.cli.output import hanging, stdout_console
from cfbench_core.cli.problems import show_problems
from cfbench_core.registry import installed
from cfbench_core.reports.saved import saved_words
from cfbench_core.specs import resolve

if TYPE_CHECKING:
    from rich.console import Console

    from cfbench_core.reports.table_data import Table
    from cfbench_core.run_directory import Run

BELOW = 10
"""Lines of the screen that are reserved for what follows the tables."""


def show_end(run: Run) -> None:
    """Writes to stdout."""
    console = stdout_console()
    click.echo()
    _show_tables(run, console)
    show_problems(run)
    words = verbalization_of(run)
    if words:
        click.echo()
        click.echo(hanging("Example: ", words))
    click.echo(_where(run))


def _where(run: Run) -> str:
    """On one line if it fits."""
    report = f"Report: {run.directory / 'report.html'}"
    reprint = f"Reprint without recomputing: cfbench report {run.directory}"
    line = f"{report}      {reprint}"
    return line if len(line) <= shutil.get_terminal_size((120, 24)).columns else f"{report}\n{reprint}"


def verbalization_of(run: Run) -> str:
    """One explanation of a run as its suite says it, the one that is saved with its tables if there is one."""
    found = saved_words(run)
    return verbalized(run) if found is None else found


def verbalized(run: Run) -> str:
    """One explanation of a run as its suite says it; nothing when the suite is not installed any more."""
    registry = installed()
    if run.suite not in registry.suites():
        return ""
    words: str = resolve(registry.find(run.suite, "suite", run.suite).spec.target)().verbalize(run)
    return words


def _show_tables(run: Run, console: Console) -> None:
    """As many tables as fit on the screen; all of them where there is no screen."""
    from cfbench_core.reports.tables import tables
    from cfbench_core.reports.terminal import show

    found = tables(run)
    fitting = _fitting(found, console) if console.is_terminal else found
    show(fitting, console)
    left = len(found) - len(fitting)
    if left:
        click.echo(f"{left} more {'table' if left == 1 else 'tables'}: cfbench report {run.directory}")


def _fitting(found: Sequence[Table], console: Console) -> Sequence[Table]:
    """The first tables that fit, one at least."""
    from cfbench_core.reports.terminal import definitions, show_one

    room = console.height - BELOW - len(definitions(found, console.width))
    for number, table in enumerate(found):
        with console.capture() as captured:
            show_one(table, console)
        room -= captured.get().count("\n")
        if room < 0 and number:
            return found[:number]
    return found
