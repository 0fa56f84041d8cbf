"""``cfbench explain``: the explanations of one unit as sentences."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.options import StudyOptions
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.run_directory import Run, RunCell

if TYPE_CHECKING:
    import pandas as pd


@subcommand(
    "explain",
    examples=(
        "cfbench explain runs/study --unit spyder              of a finished run",
        "cfbench explain study.yaml --unit spyder/python3-six  computes what is missing first",
        "cfbench explain runs/study                            the clearest explanation of each explainer",
    ),
)
@click.argument("target", metavar="DIR|CONFIG", type=click.Path(path_type=Path))
@click.option(
    "--unit",
    metavar="ID",
    help="As in the column 'unit' of scores.parquet, or its part before a slash.",
)
@options.study
def command(
    target: Path,
    unit: str | None,
    study: StudyOptions,
) -> int:
    """Show the explanations of one unit as sentences.

    DIR is a run directory; CONFIG is run first, from the cache where it can be.
    Exits with 1 if no explanation is a valid counterfactual.
    """
    if target.is_dir():
        run = Run(target)
    else:
        from cfbench_core.cli.running import execute_shown, plan_study

        planned = plan_study(target, study)
        run = execute_shown(planned, study)
    units = _units(run, unit) if unit is not None else None
    return OK if _show(run, units) else FAILED


class _Part(Run):
    """A run as if it had nothing but one cell, and some of its units (all of them if None)."""

    def __init__(self, run: Run, cell: str, units: frozenset[str] | None) -> None:
        super().__init__(run.directory)
        self._whole, self._cell, self._units = run, cell, units

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        return self._part(self._whole.scores)

    @functools.cached_property
    def explanations(self) -> pd.DataFrame:
        return self._part(self._whole.explanations)

    def explanations_of(self, cell: str) -> pd.DataFrame:
        return self._part(self._whole.explanations_of(cell))

    def rows(self, name: str, **wanted: Sequence[str]) -> pd.DataFrame:
        return self._part(self._whole.rows(name, **wanted))

    def _part(self, table: pd.DataFrame) -> pd.DataFrame:
        here = table["cell"] == self._cell
        if self._units is not None:
            here &= table["unit"].isin(self._units)
        return table[here]


def _units(run: Run, wanted: str) -> frozenset[str]:
    """The units that an id stands for: itself, or all that begin with it and a slash."""
    known = [str(unit) for unit in run.scores["unit"].dropna().unique()]
    found = frozenset(unit for unit in known if unit == wanted or unit.startswith(f"{wanted}/"))
    if not found:
        beginnings = {unit.partition("/")[0] for unit in known}
        hint = did_you_mean(wanted, sorted({*known, *beginnings}))
        raise UserError(
            f"{wanted!r} was not explained in {run.directory}.{hint}  (column 'unit' of scores.parquet)"
        )
    return found


def _show(run: Run, units: frozenset[str] | None) -> bool:
    """Whether there was any explanation to show."""
    from cfbench_core.reports.labels import label_texts

    shown = False
    title = ""
    for cell, words in _sentences(run, units):
        here = " · ".join(
            label_texts({name: cell.labels[name] for name in run.layout.by}, run.layout.label_formats)
        )
        if here != title:
            title = here
            output.heading(f"\n{title}" if shown else title)
        click.echo(output.hanging(f"  {cell.labels[run.layout.row]}: ", words))
        shown = True
    if not shown:
        click.echo("No valid counterfactual: no explanation changes the model's output.")
    return shown


def _sentences(run: Run, units: frozenset[str] | None) -> Iterator[tuple[RunCell, str]]:
    """What the suite says of each cell, where it has something to say."""
    from cfbench_core.cli.run_end import verbalization_of

    for cell in run.cells():
        if cell.done or cell.status == "partial":
            words = verbalization_of(_Part(run, cell.id, units))
            if words:
                yield cell, words
