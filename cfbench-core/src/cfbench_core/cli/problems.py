"""The failures of a run, one line for each reason."""

from __future__ import annotations

import click

from cfbench_core.plain_text import one_line
from cfbench_core.run_directory import Run, RunCell
from cfbench_core.run_status import ended_badly
from cfbench_core.wording import count_of

ENOUGH = 10
"""The number of reasons that are shown."""


def show_problems(run: Run) -> None:
    """One line for each reason, with the cells that it cost, and where the tracebacks are."""
    reasons: dict[str, list[RunCell]] = {}
    for cell in run.cells():
        if ended_badly(cell):
            reasons.setdefault(f"{cell.status.replace('_', ' ')}: {cell.reason}", []).append(cell)
    if not reasons:
        return
    click.echo()
    for reason, cells in [*reasons.items()][:ENOUGH]:
        more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
        click.secho(one_line(f"{cells[0].id}{more}: {reason}"), fg="red")
    if len(reasons) > ENOUGH:
        click.echo(
            f"... and {count_of(len(reasons) - ENOUGH, 'more reason')}: cfbench status {run.directory} --format json"
        )
    if (run.directory / "logs").is_dir():
        click.echo(f"Tracebacks: {run.directory / 'logs'}")
