"""``cfbench plan``: every cell of a configuration, to run or skipped with its reason. Computes nothing, and
downloads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import NOTHING_TO_RUN, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.prepare import prepared
from cfbench_core.cli.run_tally import plan_line

if TYPE_CHECKING:
    from cfbench_core.api import Prepared
    from cfbench_core.plan import Cell, Plan


@subcommand(
    "plan",
    examples=(
        "cfbench plan                                    of the default",
        "cfbench plan study.yaml --set protocol.k=[3,5]",
        "cfbench plan study.yaml --format json | jq '.[] | select(.reason)'",
    ),
)
@options.configuration(required=False)
@options.reading
@options.output_format("table", "json")
def command(
    config: Path | None,
    changes: tuple[str, ...],
    suite: str | None,
    data_dir: Path | None,
    allow_env: tuple[str, ...],
    offline: bool,
    form: str,
) -> int:
    """Show what would be computed, what is skipped, and why.

    CONFIG is a YAML file; without it, the default study of the installed suites. Downloads nothing; lists the data that
    a run would download.
    """
    study = prepared(
        config,
        changes=changes,
        suite=suite,
        data_dir=data_dir,
        allow_env=allow_env,
        offline=offline,
        planning=True,
    )
    planned = study.plan
    if form == "json":
        output.as_json(planned.to_json())
    else:
        show_plan(planned)
        show_estimate(study)
    return OK if planned.to_run else NOTHING_TO_RUN


def show_plan(plan: Plan) -> None:
    """The cells by group: one line for those to run, and one for each reason to skip."""
    from cfbench_core.reports.labels import label_texts

    click.echo(plan_line(plan))
    groups: dict[str, list[Cell]] = {}
    for cell in plan.cells:
        title = " · ".join(
            label_texts({name: cell.labels[name] for name in plan.layout.by}, plan.layout.label_formats)
        )
        groups.setdefault(title, []).append(cell)
    for title, cells in groups.items():
        click.echo()
        output.heading(title)
        _show_group(plan.layout.row, cells)


def show_estimate(study: Prepared) -> None:
    """What the study will cost, where its suite can say so: ``estimate(config, plan)`` gives lines."""
    estimate = getattr(study.suite, "estimate", None)
    lines = estimate(study.config, study.plan) if estimate else ()
    if lines:
        click.echo()
        output.heading("Estimate")
    for line in lines:
        click.echo(click.wrap_text(line, 100, "  ", "    "))


def _show_group(row: str, cells: Sequence[Cell]) -> None:
    to_run = [str(cell.labels[row]) for cell in cells if not cell.skipped]
    if to_run:
        click.echo(_folded("run", to_run))
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        if cell.skipped:
            name = str(cell.labels[row])
            reasons.setdefault(cell.skipped.removeprefix(f"{name} "), []).append(name)
    for reason, names in reasons.items():
        click.echo(_folded("skip", names) + f": {reason}")


def _folded(word: str, names: Sequence[str]) -> str:
    """Names after a word, folded at the terminal's width and aligned."""
    return click.wrap_text(" ".join(names), 100, f"  {word.ljust(6)}", " " * 8)
