"""What ``run``, ``evaluate`` and ``explain`` share: planning, progress, the results at the end and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.api import execute
from cfbench_core.cli.commands.plan import show_plan
from cfbench_core.cli.exit_codes import NOTHING_TO_RUN, OK
from cfbench_core.cli.progress import shown
from cfbench_core.cli.run_end import show_end

if TYPE_CHECKING:
    from cfbench_core.api import Prepared
    from cfbench_core.run_directory import Run


def execute_and_show(prepared: Prepared, *, out: Path | None, fresh: bool, quiet: bool) -> int:
    """Runs what was planned, shows its end, and returns the exit code."""
    if not prepared.plan.to_run:
        show_plan(prepared.plan)
        click.echo("\nnothing to run", err=True)
        return NOTHING_TO_RUN
    run = execute_shown(prepared, out=out, fresh=fresh, quiet=quiet)
    show_end(run)
    return run.exit_code


def execute_shown(prepared: Prepared, *, out: Path | None, fresh: bool, quiet: bool) -> Run:
    """Runs what was planned, with its progress on stderr."""
    with shown(prepared, quiet) as observer:
        return execute(prepared, out=out, fresh=fresh, observer=observer)


def show_dry_run(prepared: Prepared) -> int:
    """The plan alone."""
    show_plan(prepared.plan)
    return OK if prepared.plan.to_run else NOTHING_TO_RUN
