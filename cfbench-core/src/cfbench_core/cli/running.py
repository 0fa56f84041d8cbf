"""What ``run`` and ``evaluate`` share: watch it go on, show its end, tell the shell."""

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


def execute_and_show(prepared: Prepared, *, out: Path | None, fresh: bool, quiet: bool) -> int:
    """Runs what was planned and returns the exit code."""
    if not prepared.plan.to_run:
        show_plan(prepared.plan)
        click.echo("\nnothing to run", err=True)
        return NOTHING_TO_RUN
    with shown(prepared, quiet) as observer:
        run = execute(prepared, out=out, fresh=fresh, observer=observer)
    show_end(run)
    return run.exit_code


def show_dry_run(prepared: Prepared) -> int:
    """The plan alone."""
    show_plan(prepared.plan)
    return OK if prepared.plan.to_run else NOTHING_TO_RUN
