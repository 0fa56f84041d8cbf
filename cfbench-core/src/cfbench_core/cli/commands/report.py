"""``cfbench report``: the report of a run in another format."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.group import subcommand

FORMATS = ("html", "md", "latex", "csv")


@subcommand(
    "report",
    examples=(
        "cfbench report runs/study                                    the tables, on the terminal",
        "cfbench report runs/study --format latex --output table.tex  for a paper",
        "cfbench report runs/study --format html                      writes runs/study/report.html",
    ),
)
@options.run_directory()
@click.option("--format", "form", type=click.Choice(FORMATS), help="Without it the tables are shown here.")
@click.option(
    "--output",
    "-o",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to FILE.",
)
def command(directory: Path, form: str | None, file: Path | None) -> None:
    """Show the tables of a run, or write its report in another format."""
    from cfbench_core.cli.run_end import verbalization_of
    from cfbench_core.reports import print_tables, render
    from cfbench_core.run_directory import Run

    run = Run(directory)
    if form is None and file is None:
        print_tables(run, output.stdout_console())
        return
    form = form or _format_of(file)
    if form == "html":
        file = file or directory / "report.html"
    text = render(run, form, file, verbalization_of(run) if form == "html" else "")
    click.echo(f"wrote {file}" if file else text, nl=bool(file))


def _format_of(file: Path | None) -> str:
    """The format that a file's name implies."""
    suffixes = {".html": "html", ".htm": "html", ".md": "md", ".tex": "latex", ".csv": "csv"}
    form = suffixes.get(file.suffix.lower()) if file else None
    if form is None:
        raise click.UsageError(
            f"say --format, one of {', '.join(FORMATS)}: the name {file} does not determine it"
        )
    return form
