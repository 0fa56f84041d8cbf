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
from cfbench_core.wording import count_of

if TYPE_CHECKING:
    from rich.console import Console

    from cfbench_core.reports.table_data import Table
    from cfbench_core.run_directory import Run

LINES = 40
"""The end of a run takes at most so many lines, unless something failed."""
LEGEND = "± 95% interval; bold: best or statistically tied; *: fewer units"


def show_end(run: Run) -> None:
    """Writes to stdout: the answer, the tables or their summary, what failed, an example, and where to look next."""
    from cfbench_core.reports.answer import answer_of, primary_leads
    from cfbench_core.reports.tables import tables

    console, found = stdout_console(), tables(run)
    answer = hanging("Answer: ", text) if (text := answer_of(primary_leads(found))) else ""
    words = verbalization_of(run)
    example, where = hanging("Example: ", words) if words else "", _where(run)
    around = sum(part.count("\n") + 2 for part in (answer, example) if part) + where.count("\n") + 2
    click.echo()
    if answer:
        click.echo(f"{answer}\n")
    _show_tables(run, found, console, LINES - around)
    show_problems(run)
    if example:
        click.echo(f"\n{example}")
    click.echo(where)


def _where(run: Run) -> str:
    """On one line if it fits."""
    parts = [
        f"Report: {run.directory / 'report.html'}",
        f"All tables: cfbench report {run.directory}",
        f"Explanations: cfbench view {run.directory}",
    ]
    line = "      ".join(parts)
    return line if len(line) <= shutil.get_terminal_size((120, 24)).columns else "\n".join(parts)


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


def _show_tables(run: Run, found: Sequence[Table], console: Console, room: int) -> None:
    """All tables if they fit, else a small table for each model."""
    from cfbench_core.reports.terminal import show

    with console.capture() as captured:
        show(found, console)
    if captured.get().count("\n") <= room:
        show(found, console)
    else:
        _show_summary(run, found, console, room)


def _show_summary(run: Run, found: Sequence[Table], console: Console, room: int) -> None:
    from rich.text import Text

    from cfbench_core.reports import terminal_summary as summary

    groups = summary.by_model(found)
    legend = [LEGEND, *summary.definitions(groups)]
    room -= len(legend) + 1
    each = summary.OWN_LINES + 1 + summary.FEWEST_ROWS + 2  # with two controls
    shown = groups[: max(1, room // each)]
    rows = summary.rows_for(len(shown), room)
    several = len({str(table.labels.get("dataset")) for table in found}) > 1
    for group in shown:
        head = summary.title(group, several)
        if left := summary.hidden(group, rows):
            head.append(f"  and {count_of(left, 'more explainer')}", style="dim not bold")
        console.print(head)
        console.print(summary.small_table(group, rows, console.width))
        console.print()
    if left := len(groups) - len(shown):
        click.echo(f"{count_of(left, 'more model')}: cfbench report {run.directory}")
    for line in legend:
        console.print(Text(line, style="dim"), overflow="ellipsis", no_wrap=True)
