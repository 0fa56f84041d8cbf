"""``cfbench run``: fits, explains, scores and reports."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import options
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.options import StudyOptions


@subcommand(
    "run",
    examples=(
        "cfbench run                                 a small, real default study over everything installed",
        "cfbench run study.yaml --output runs/study  called again, it resumes",
        "cfbench run study.yaml --set protocol.users=50 --set seed=1",
        "cfbench run study.yaml --workers 2 --offline",
        "cfbench run study.yaml --dry-run            only show the plan",
    ),
)
@options.configuration(required=False)
@options.study
@click.option("--dry-run", is_flag=True, help="Show the plan and compute nothing.")
def command(
    config: Path | None,
    study: StudyOptions,
    dry_run: bool,
) -> int:
    """Run a configuration: fit, explain, score, and report.

    CONFIG is a YAML file; without it, a small default study over everything that is installed. Results are cached, so
    a run that was stopped resumes, and runs share what they have in common.

    Exit codes: 0 success, 1 some cells failed, 2 the configuration or the call is wrong,
    3 nothing to run, 130 stopped with Ctrl-C.
    """
    from cfbench_core.cli.running import execute_and_show, plan_study, show_dry_run

    planned = plan_study(config, study)
    if dry_run:
        return show_dry_run(planned)
    return execute_and_show(planned, study)
