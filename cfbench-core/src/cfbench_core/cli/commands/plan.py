"""``cfbench plan``: every cell of a configuration, to run or skipped with its reason. Computes nothing, and
downloads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import NOTHING_TO_RUN, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.prepare import prepared
from cfbench_core.cli.run_tally import plan_line
from cfbench_core.devices.availability import device_problem
from cfbench_core.wording import count_of

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
@click.option("--all", "whole", is_flag=True, help="Name every cell, also of a large plan.")
@options.output_format("table", "json")
def command(
    config: Path | None,
    changes: tuple[str, ...],
    suite: str | None,
    data_dir: Path | None,
    allow_env: tuple[str, ...],
    offline: bool,
    whole: bool,
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
    show_device_note(study)
    for note in study.notes:
        click.echo(f"note: {note}", err=True)
    if form == "json":
        output.as_json(planned.to_json())
    else:
        show_plan(planned, whole)
        show_estimate(study)
    return OK if planned.to_run else NOTHING_TO_RUN


MOST_TABLES, MOST_REASONS = 20, 10
LINES = 40
"""A longer plan is counted by table; ``--all`` names its cells."""


def show_plan(plan: Plan, whole: bool = True) -> None:
    """The cells by group: those to run, and those that are skipped with the reason; counted in a large plan."""
    from cfbench_core.reports.labels import label_texts

    click.echo(plan_line(plan))
    groups: dict[str, list[Cell]] = {}
    for cell in plan.cells:
        title = " · ".join(
            label_texts({name: cell.labels[name] for name in plan.layout.by}, plan.layout.label_formats)
        )
        groups.setdefault(title, []).append(cell)
    listed = {title: list(_group_lines(plan.layout.row, cells)) for title, cells in groups.items()}
    lines = sum(2 + sum(1 + one.count("\n") for one in own) for own in listed.values())
    if whole or lines <= LINES:
        for title, own in listed.items():
            click.echo()
            output.heading(title)
            for line in own:
                click.echo(line)
    else:
        _show_counts(plan.layout.row, groups)


def _show_counts(row: str, groups: Mapping[str, Sequence[Cell]]) -> None:
    """A line for each table, and one for each reason to skip."""
    rows = []
    for title, cells in groups.items():
        skipped = sum(bool(cell.skipped) for cell in cells)
        rows.append([title, str(len(cells) - skipped), str(skipped)])
    click.echo()
    output.table(["table", "to run", "skipped"], rows[:MOST_TABLES])
    if left := len(rows) - MOST_TABLES:
        click.echo(f"and {count_of(left, 'more table')}" if left > 0 else "", nl=left > 0)
    reasons = Counter(
        cell.skipped.removeprefix(f"{cell.labels[row]} ")
        for cells in groups.values()
        for cell in cells
        if cell.skipped
    )
    if reasons:
        click.echo()
        output.table(
            ["skipped", "why"], [[str(n), reason] for reason, n in reasons.most_common(MOST_REASONS)]
        )
    click.echo("\nNames of all cells: --all")


def show_device_note(study: Prepared) -> None:
    """On stderr, what of a plan this machine cannot compute: it may be planned where no GPU is."""
    problem = device_problem(study.config.executor.options, study.plan.stages())
    if problem:
        click.echo(f"note: {problem}; a run here needs its results in the cache", err=True)


def show_estimate(study: Prepared) -> None:
    """What the study will cost, where its suite can say so: ``estimate(config, plan)`` gives lines."""
    estimate = getattr(study.suite, "estimate", None)
    lines = estimate(study.config, study.plan) if estimate else ()
    if lines:
        click.echo()
        output.heading("Estimate")
    for line in lines:
        click.echo(click.wrap_text(line, 100, "  ", "    "))


def _group_lines(row: str, cells: Sequence[Cell]) -> Iterator[str]:
    to_run = [str(cell.labels[row]) for cell in cells if not cell.skipped]
    if to_run:
        yield _folded("run", to_run)
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        if cell.skipped:
            name = str(cell.labels[row])
            reasons.setdefault(cell.skipped.removeprefix(f"{name} "), []).append(name)
    for reason, names in reasons.items():
        yield _folded("skip", names) + f": {reason}"


def _folded(word: str, names: Sequence[str]) -> str:
    """Names after a word, folded at the terminal's width and aligned."""
    return click.wrap_text(" ".join(names), 100, f"  {word.ljust(6)}", " " * 8)
