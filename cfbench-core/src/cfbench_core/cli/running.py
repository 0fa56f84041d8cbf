"""What ``run``, ``evaluate`` and ``explain`` share: planning, progress, the results at the end and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.api import execute
from cfbench_core.cli.commands.plan import show_device_note, show_plan
from cfbench_core.cli.exit_codes import NOTHING_TO_RUN, OK
from cfbench_core.cli.options import StudyOptions
from cfbench_core.cli.prepare import prepared
from cfbench_core.cli.progress import shown
from cfbench_core.cli.run_end import show_end

if TYPE_CHECKING:
    from cfbench_core.api import Prepared
    from cfbench_core.run_directory import Run


def plan_study(config: Path | None, study: StudyOptions, explanations: Path | None = None) -> Prepared:
    """Reads and plans a configuration; data that are missing are downloaded, with progress on stderr."""
    return prepared(
        config,
        changes=study.all_changes,
        suite=study.suite,
        data_dir=study.data_dir,
        allow_env=study.allow_env,
        offline=study.offline,
        quiet=study.quiet,
        executor=study.executor,
        workers=study.workers,
        explanations=explanations,
    )


def execute_and_show(planned: Prepared, study: StudyOptions) -> int:
    """Runs what was planned, shows its results, and returns the exit code."""
    if not planned.plan.to_run:
        show_plan(planned.plan)
        click.echo("\nnothing to run", err=True)
        return NOTHING_TO_RUN
    run = execute_shown(planned, study)
    show_end(run)
    return run.exit_code


def execute_shown(planned: Prepared, study: StudyOptions) -> Run:
    """Runs what was planned, with its progress on stderr."""
    with shown(planned, study.quiet) as observer:
        return execute(planned, out=study.out, fresh=study.fresh, observer=observer)


def show_dry_run(planned: Prepared) -> int:
    """Shows the plan alone."""
    show_device_note(planned)
    show_plan(planned.plan)
    return OK if planned.plan.to_run else NOTHING_TO_RUN
