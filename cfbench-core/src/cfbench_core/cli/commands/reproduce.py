"""``cfbench reproduce``: the tables and figures of a paper, printed and measured, each with a verdict."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cfbench_core.cli import completions, options, output
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.options import StudyOptions
from cfbench_core.errors import UserError
from cfbench_core.registry import Component, installed
from cfbench_core.replications import (
    SCALES,
    SMALL,
    Replication,
    ReplicationStudy,
    check_changes,
    compared,
    find_replication,
    loaded_replication,
    prepare_study,
    run_folder,
)
from cfbench_core.study_changes import changes_of_studies

if TYPE_CHECKING:
    from cfbench_core.api import Prepared
    from cfbench_core.run_directory import Run

TEXT_FORMATS = ("table", "csv", "markdown", "html", "latex", "json")


@subcommand(
    "reproduce",
    examples=(
        "cfbench reproduce                                 papers, and what of them is reproduced",
        "cfbench reproduce cf-tabular --list               its tables and figures, with the cost of each",
        "cfbench reproduce cf-tabular table-4              a small version, minutes",
        "cfbench reproduce cf-tabular --scale paper        everything, at the size of the paper",
        "cfbench reproduce refined-fidelity --data debian-python   on other data",
        "cfbench reproduce cfexprec claims --seeds 0,1,2           every study with three seeds",
        "cfbench reproduce cf-tabular table-4 --format latex > table-4.tex",
    ),
)
@click.argument("paper", required=False, shell_complete=completions.replications)
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option(
    "--scale", type=click.Choice(SCALES), default=SMALL, show_default=True, help="Size of the study."
)
@click.option(
    "--data",
    metavar="NAME",
    multiple=True,
    help="Other data sets in place of those of the studies; may be repeated.",
)
@click.option(
    "--seeds",
    metavar="N,N,...",
    default="",
    callback=lambda context, parameter, text: _seeds(text),
    help="Run each study once for each of these seeds, and decide claims by all of them.",
)
@click.option("--list", "listing", is_flag=True, help="List tables and figures; compute nothing.")
@options.output_format(*TEXT_FORMATS)
@options.studies_of_paper
def command(
    paper: str | None,
    items: tuple[str, ...],
    scale: str,
    data: tuple[str, ...],
    seeds: tuple[int, ...],
    listing: bool,
    form: str,
    study: StudyOptions,
) -> int:
    """Reproduce tables and figures of a PAPER: run what they need, and compare with the printed numbers.

    ITEM is a table or figure such as table-3; without it, all that can be reproduced. Each number and each claim gets
    a verdict with its reason: confirmed or refuted (a claim also in part, where something was not run), undecided, not
    reproducible or not comparable. Without PAPER, or with --list, nothing is computed. Runs are stored below
    reproductions/PAPER/SCALE, or in the folder given by --output; a command that was stopped resumes when it is called
    again.
    """
    if study.suite is not None:
        raise UserError("--suite does not apply to reproduce: the paper determines the suite")
    papers = installed().components("replication")
    study = dataclasses.replace(study, changes=changes_of_studies(study.changes, data))
    if paper is None:
        if study.changes or seeds:
            raise UserError(
                "--data, --set and --seeds change the studies of one paper: cfbench reproduce PAPER"
            )
        _list(papers, form)
        return OK
    component, replication = find_replication(paper)
    for item in {*items} & {found.spec.name for found in papers}:
        raise UserError(f"{item} is another paper: reproduce one at a time")
    if listing:
        _check_changes(_of_items(replication, items), scale, study)
        _list([component], form, items, whole=True)
        return OK
    chosen = replication.chosen(items, scale)
    folder = run_folder(paper, scale, study.out)
    needed = replication.with_seeds(replication.studies_of(chosen, scale), seeds, study.all_changes)
    for one in needed[1:]:
        _planned(replication, one, scale, study, planning=True)
    runs = [_run(replication, one, scale, folder / one.name, study) for one in needed]
    found = compared(component, replication, chosen, scale, runs, changes=study.all_changes)
    _show(found.answer, runs, form)
    return FAILED if any(run.exit_code for run in runs) else OK


def _seeds(text: str) -> tuple[int, ...]:
    """(0, 1, 2) of "0,1,2"."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() for part in parts):
        raise UserError(f"--seeds {text}: must be whole numbers separated by commas, such as 0,1,2")
    return tuple(map(int, parts))


def _check_changes(replication: Replication, scale: str, study: StudyOptions) -> None:
    """What is listed with changes could be run with them; without changes, whatever ships is listed."""
    for one in replication.studies:
        if study.changes and scale in one.changes:
            check_changes(one, scale, study.all_changes, study.allow_env)


def _run(
    replication: Replication, chosen: ReplicationStudy, scale: str, out: Path, study: StudyOptions
) -> Run:
    """Runs one study, with its progress on stderr."""
    from cfbench_core.cli.running import execute_shown

    if not study.quiet:
        click.echo(f"study {chosen.name} of {replication.title}, scale {scale}: {out}", err=True)
    planned = _planned(replication, chosen, scale, study)
    return execute_shown(planned, dataclasses.replace(study, out=out))


def _planned(
    replication: Replication,
    chosen: ReplicationStudy,
    scale: str,
    study: StudyOptions,
    planning: bool = False,
) -> Prepared:
    """The plan of a study. With ``planning``, nothing is downloaded for it: what cannot run is known before others do.

    Raises:
        UserError: if it has nothing to run, with the first reason.
    """
    from cfbench_core.cli.prepare import prepared

    def preparing(file: Path, *, set: Any, **more: Any) -> Any:
        return prepared(
            file,
            changes=set,
            suite=None,
            data_dir=study.data_dir,
            allow_env=study.allow_env,
            offline=study.offline,
            quiet=study.quiet or planning,
            planning=planning,
            **more,
        )

    found = prepare_study(
        chosen, scale, study.all_changes, preparing, executor=study.executor, workers=study.workers
    )
    if not found.plan.to_run:
        reason = next((cell.skipped for cell in found.plan.skipped), "")
        raise UserError(
            f"the study {chosen.name} of {replication.title} has nothing to run here{reason and ': ' + reason}"
        )
    return found


def _show(answer: Any, runs: list[Run], form: str) -> None:
    from cfbench_core.reports.analysis import render, show

    answer.required_table(runs)
    if form == "table":
        show(answer, output.stdout_console())
        click.echo("\n" + "\n".join(f"Report: {run.directory / 'report.html'}" for run in runs))
    else:
        click.echo(render(answer, runs, form), nl=False)


def _list(found: list[Component], form: str, names: tuple[str, ...] = (), whole: bool = False) -> None:
    """Papers with their tables and figures (all, or those of these ``names``), and what it costs to reproduce them."""
    if form not in ("table", "json"):
        raise click.UsageError("a list is shown with --format table or json")
    loaded: list[tuple[Component, Replication]] = []
    unreadable: list[str] = []
    for component in found:
        try:
            loaded.append((component, _of_items(loaded_replication(component), names)))
        except UserError as error:  # a broken plugin costs its own papers only
            if len(found) == 1:
                raise
            unreadable.extend(error.lines)
    _show_list(loaded, form, whole)
    for line in unreadable:
        click.secho(line, fg="yellow", err=True)


def _show_list(loaded: list[tuple[Component, Replication]], form: str, whole: bool) -> None:
    if form == "json":
        output.as_json([_described(component, replication) for component, replication in loaded])
        return
    if not loaded:
        click.echo("No installed suite brings a replication of a paper.")
    for place, (component, replication) in enumerate(loaded):
        if place:
            click.echo()
        output.heading(f"{component.spec.name}: {replication.title}")
        rows = [
            [
                item.name,
                item.caption,
                *(_cost(replication, item.name, scale) for scale in SCALES),
                item.stored or "-",
                item.reason,
            ]
            for item in replication.items
        ]
        output.table(
            ["item", "shows", *SCALES, "stored", "remark"], rows, indent="  ", spare=["shows", "remark"]
        )
        if whole:
            _studies(replication)
    if loaded:
        click.echo(
            "\nTimes are those of all tasks added up, as measured; stored: the size of the result in the documentation."
            "\nReproduce one: cfbench reproduce PAPER [ITEM]..."
        )


def _of_items(replication: Replication, names: tuple[str, ...]) -> Replication:
    """With these items and what measures them; with all if there are no ``names``."""
    if not names:
        return replication
    items = tuple(replication.named(names))
    needed = {study for item in items for study in item.studies}
    studies = tuple(study for study in replication.studies if study.name in needed)
    return dataclasses.replace(replication, items=items, studies=studies)


def _studies(replication: Replication) -> None:
    click.echo()
    output.heading("studies")
    rows = [
        [
            study.name,
            ", ".join(item.name for item in replication.items if study.name in item.studies),
            _needs(study),
        ]
        for study in replication.studies
    ]
    output.table(["study", "measures", "needs"], rows, indent="  ", spare=["needs"])


def _needs(study: ReplicationStudy) -> str:
    """What a study needs, at which scale; once if it is the same at all scales."""
    texts = list(study.needs.values())
    if len(texts) == len(SCALES) and len({*texts}) == 1:
        return texts[0]
    return "; ".join(f"{scale}: {text}" for scale, text in study.needs.items())


def _cost(replication: Replication, item: str, scale: str) -> str:
    """ "12 min" of the studies of an item; "-" where there is none at this scale."""
    (wanted,) = (one for one in replication.items if one.name == item)
    studies = [one for one in replication.studies if one.name in wanted.studies and scale in one.changes]
    studies = studies if scale in wanted.scales else []
    if not studies:
        return "-"
    if any(scale not in one.minutes for one in studies):
        return "not measured"
    minutes = sum(one.minutes[scale] for one in studies)
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def _described(component: Component, replication: Replication) -> dict[str, Any]:
    return {
        "paper": component.spec.name,
        "suite": component.spec.suite,
        "title": replication.title,
        "stored": replication.stored,
        "items": [
            {
                "item": item.name,
                "caption": item.caption,
                "studies": item.studies,
                "scales": item.scales,
                "reason": item.reason,
                "stored": item.stored,
            }
            for item in replication.items
        ],
        "studies": [
            {
                "study": one.name,
                "config": one.config,
                "changes": one.changes,
                "minutes": one.minutes,
                "needs": one.needs,
            }
            for one in replication.studies
        ],
    }
