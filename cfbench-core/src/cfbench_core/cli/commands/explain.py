"""``cfbench explain``: the explanations of one unit as sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.options import StudyOptions
from cfbench_core.explained_units import explained_units
from cfbench_core.run_directory import Run
from cfbench_core.sentences import sentences, units_of, why_silent


@subcommand(
    "explain",
    examples=(
        "cfbench explain runs/study                 a unit that most explainers explain",
        "cfbench explain runs/study --list          the units that were explained",
        "cfbench explain runs/study --unit UNIT     one of them",
        "cfbench explain study.yaml                 computes what is missing first",
    ),
)
@click.argument("target", metavar="DIR|CONFIG", type=click.Path(path_type=Path))
@click.option(
    "--unit", metavar="UNIT", help="A unit that --list shows, or the part of its name before a slash."
)
@click.option("--list", "listing", is_flag=True, help="List the units that have explanations.")
@options.output_format("table", "json")
@options.study
def command(target: Path, unit: str | None, listing: bool, form: str, study: StudyOptions) -> int:
    """Show how each explainer explains one unit, as sentences.

    DIR is a run directory; CONFIG is run first, from the cache where it can be. Without --unit, the unit is one that
    most explainers explain with a valid counterfactual. Exits with 1 if there is no sentence, and says why.
    """
    if listing and unit is not None:
        raise click.UsageError("give --unit or --list, not both")
    if target.is_dir():
        run = Run(target)
    else:
        from cfbench_core.cli.running import execute_shown, plan_study

        planned = plan_study(target, study)
        run = execute_shown(planned, study)
    if listing:
        return OK if _list(run, form) else FAILED
    return OK if _show(run, units_of(run, unit), form) else FAILED


def _list(run: Run, form: str) -> bool:
    """Whether there was any unit to list."""
    found = explained_units(run)
    if form == "json":
        output.as_json([{"unit": one.unit, "cells": one.cells, "rows": one.rows} for one in found])
    elif found:
        output.table(
            ["unit", "explained in cells", "rows"],
            [[one.unit, str(one.cells), str(one.rows)] for one in found],
        )
    else:
        click.echo("No unit has an explanation.")
    return bool(found)


def _show(run: Run, units: frozenset[str], form: str) -> bool:
    """Whether there was any explanation to show."""
    from cfbench_core.reports.labels import label_texts

    found = sentences(run, units)
    if form == "json":
        output.as_json(
            [
                {"cell": one.cell, **one.labels, "units": [*one.units], "sentence": one.sentence}
                for one in found
            ]
        )
        return bool(found)
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in found:
        labels = {name: one.labels[name] for name in run.layout.by}
        title = " · ".join(label_texts(labels, run.layout.label_formats))
        groups.setdefault(title, []).append((str(one.labels[run.layout.row]), one.sentence))
    for title, of_group in groups.items():
        output.heading(title if title == next(iter(groups)) else f"\n{title}")
        for names, words in same_sentences(of_group):
            click.echo(output.hanging("  ", f"{', '.join(names)}:"))
            click.echo(output.hanging("    ", words))
    if found:
        click.echo(f"\nOther units: cfbench explain {run.directory} --list")
    else:
        click.echo(why_silent(run, units))
    return bool(found)


def same_sentences(sentences: Sequence[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """Rows whose sentences are the same but for the row's own name, together, in the order of the first.

    A bracket that names the row at the end, "(mf, explained by lime-rs)", is left out: the row stands in front.

    >>> same_sentences([("a", "It fell (mf, explained by a)."), ("b", "It fell (mf, explained by b).")])
    [(['a', 'b'], 'It fell.')]
    """
    found: dict[str, list[str]] = {}
    for name, words in sentences:
        bare = re.sub(rf" \([^()]*\b{re.escape(name)}\)(?=\.?$)", "", words)
        found.setdefault(bare, []).append(name)
    return [(names, words) for words, names in found.items()]
