"""``cfbench explain``: the explanations of one unit as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.options import StudyOptions
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.explained_units import explained_units
from cfbench_core.registry import installed
from cfbench_core.run_directory import Run, RunCell
from cfbench_core.run_parts import parts
from cfbench_core.specs import resolve


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
@click.option("--unit", metavar="UNIT", help="One of --list, or its part before a slash.")
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
    return OK if _show(run, _units(run, unit) if unit is not None else _chosen(run), form) else FAILED


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


def _chosen(run: Run) -> frozenset[str]:
    """Of the units of which most cells have something to say, the one with the median number of rows: neither a trivial
    one nor one with very many edits. Where the suite does not know, or no cell has anything to say: of the units that
    most cells explain. Nothing where no unit has an explanation."""
    found, suite = explained_units(run), _suite_of(run)
    if hasattr(suite, "units_in_words") and (in_words := suite.units_in_words(run)):
        known = [replace(one, cells=in_words[one.unit]) for one in found if one.unit in in_words]
        found = sorted(known, key=lambda one: (-one.cells, one.rows, one.unit))
    most = [one.unit for one in found if one.cells == found[0].cells]
    return frozenset(most[(len(most) - 1) // 2 : (len(most) - 1) // 2 + 1])


def _units(run: Run, wanted: str) -> frozenset[str]:
    """The units that an id stands for: itself, or all that begin with it and a slash."""
    known = [str(unit) for unit in run.scores["unit"].dropna().unique()]
    found = frozenset(unit for unit in known if unit == wanted or unit.startswith(f"{wanted}/"))
    if not found:
        if reason := _why_left_out(run, wanted):
            raise UserError(f"{wanted!r} was not explained in {run.directory}: {reason}")
        beginnings = {unit.partition("/")[0] for unit in known}
        hint = did_you_mean(wanted, sorted({*known, *beginnings}))
        raise UserError(
            f"{wanted!r} was not explained in {run.directory}.{hint}  (cfbench explain {run.directory} --list)"
        )
    return found


def _why_left_out(run: Run, unit: str) -> str:
    """Why the suite left a unit out of the data; "" if it did not, or is not installed any more."""
    suite = _suite_of(run)
    return str(suite.left_out(run, unit)) if hasattr(suite, "left_out") else ""


def _why_silent(run: Run, units: frozenset[str]) -> str:
    """Why the suite says nothing of these units."""
    suite = _suite_of(run)
    reason = str(suite.why_not_in_words(run, units)) if hasattr(suite, "why_not_in_words") else ""
    return reason or "No valid counterfactual: no explanation changes the model's output."


def _show(run: Run, units: frozenset[str], form: str) -> bool:
    """Whether there was any explanation to show."""
    from cfbench_core.reports.labels import label_texts

    found = [*_sentences(run, units)] if units else []
    if form == "json":
        output.as_json(
            [
                {"cell": cell.id, **cell.labels, "units": sorted(units), "sentence": words}
                for cell, words in found
            ]
        )
        return bool(found)
    groups: dict[str, list[tuple[str, str]]] = {}
    for cell, words in found:
        labels = {name: cell.labels[name] for name in run.layout.by}
        title = " · ".join(label_texts(labels, run.layout.label_formats))
        groups.setdefault(title, []).append((str(cell.labels[run.layout.row]), words))
    for title, sentences in groups.items():
        output.heading(title if title == next(iter(groups)) else f"\n{title}")
        for names, words in same_sentences(sentences):
            click.echo(output.hanging("  ", f"{', '.join(names)}:"))
            click.echo(output.hanging("    ", words))
    if found:
        click.echo(f"\nOther units: cfbench explain {run.directory} --list")
    else:
        click.echo(_why_silent(run, units))
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


def _sentences(run: Run, units: frozenset[str]) -> Iterator[tuple[RunCell, str]]:
    """What the suite says of each cell, where it has something to say."""
    suite = _suite_of(run)
    for part in parts(run, units) if suite is not None else ():
        if words := str(suite.verbalize(part)):
            yield part.cells()[0], words


def _suite_of(run: Run) -> Any:
    """The suite of a run; None when it is not installed any more."""
    registry = installed()
    if run.suite not in registry.suites():
        return None
    return resolve(registry.find(run.suite, "suite", run.suite).spec.target)()
