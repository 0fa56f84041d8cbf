"""``cfbench analyse``: analyses of finished runs, across their cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core import analyses
from cfbench_core.cli import completions, options, output
from cfbench_core.cli.group import subcommand
from cfbench_core.config import Document
from cfbench_core.config.code_references import add_module_folder
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.registry import installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfbench_core.run_directory import Run

FORMATS = ("table", "csv", "markdown", "html", "latex", "json")


@subcommand(
    "analyse",
    examples=(
        "cfbench analyse runs/study                         which analyses apply to this run",
        "cfbench analyse positions runs/study               the result, on the terminal",
        "cfbench analyse positions runs/study --format csv  unrounded, for programs",
        "cfbench analyse positions runs/a runs/b --output positions.html",
        "cfbench analyse positions runs/study --output positions.tex",
        "cfbench analyse my_lab.analyses:Ours runs/study    your own class, found from this folder",
    ),
)
@click.argument(
    "arguments", metavar="[NAME] RUN...", nargs=-1, required=True, shell_complete=completions.analyses
)
@click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    help="An option of the analysis: cfbench describe NAME.",
)
@options.output_format(*FORMATS, default=None)
@options.output_file()
def command(
    arguments: tuple[str, ...], changes: tuple[str, ...], form: str | None, file: Path | None
) -> None:
    """Run an analysis of finished runs, across their cells.

    Without NAME, list the analyses of their suite and which of them apply to these runs. With NAME, show the result
    as text and as a table. Several runs of one suite are analysed together.
    """
    name, directories = _name_and_runs(arguments)
    if name is not None and ":" in name:  # a module of your own is found in the working directory
        add_module_folder(str(Path.cwd()))
    runs = analyses.opened(directories)
    form = form or options.format_of(file, FORMATS)
    if name is None:
        if changes or file is not None:
            raise click.UsageError("--set and --output need the NAME of an analysis")
        _list(runs, form)
    else:
        show_answer(name, runs, changes, form, file)


def _name_and_runs(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The first argument is a name unless it is a run."""
    first, *others = arguments
    if (Path(first) / "plan.json").is_file():
        return None, [*arguments]
    if others:
        return first, others
    names = sorted({component.spec.name for component in installed().components("analysis")})
    if not Path(first).exists() and (first in names or did_you_mean(first, names)):
        raise UserError(f"{first}: say of which run: cfbench analyse {first} RUN")
    return None, [first]


def _list(runs: Sequence[Run], form: str) -> None:
    found = analyses.applicable(runs, installed())
    if form == "json":
        output.as_json(
            [
                {
                    "analysis": c.spec.name,
                    "question": c.spec.summary,
                    "applies": not incompatibility,
                    "incompatibility": incompatibility,
                }
                for c, incompatibility in found
            ]
        )
        return
    if form != "table":
        raise click.UsageError(f"--format {form} needs the NAME of an analysis")
    if not found:
        click.echo(f"No analysis is installed for the suite {runs[0].suite} (cfbench list analyses).")
        return
    for component, incompatibility in found:
        click.secho(component.spec.name, bold=not incompatibility, dim=bool(incompatibility))
        click.echo(output.hanging("  ", component.spec.summary))
        if incompatibility:
            click.secho(
                output.hanging(
                    "  ",
                    f"does not apply to {'this run' if len(runs) == 1 else 'these runs'}: {incompatibility}",
                ),
                dim=True,
            )
    click.echo(f"\nRun one: cfbench analyse NAME {' '.join(str(run.directory) for run in runs)}")


def show_answer(name: str, runs: Sequence[Run], changes: Sequence[str], form: str, file: Path | None) -> None:
    """Shows the result of an analysis on the terminal, or writes it to a file.

    Raises:
        UserError: for an unknown name, wrong options, or runs to which it does not apply.
    """
    from cfbench_core.files import write_atomically
    from cfbench_core.reports.analysis import render, show

    registry = installed()
    component = analyses.find(name, runs, registry)
    options = Document.of({}, name)
    options.set(changes)
    answer = analyses.run_analysis(component, runs, registry, options)
    answer.required_table(runs)
    if file is not None:
        write_atomically(file, render(answer, runs, form))
        click.echo(f"wrote {file}")
    elif form == "table":
        show(answer, output.stdout_console())
    else:
        click.echo(render(answer, runs, form), nl=False)
