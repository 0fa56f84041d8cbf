"""``cfbench report``: the report of a run in another format."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.group import subcommand

FORMATS = ("table", "markdown", "csv", "latex", "html")


@subcommand(
    "report",
    examples=(
        "cfbench report runs/study                                    the tables, on the terminal",
        "cfbench report runs/study --format latex --output table.tex  for a paper",
        "cfbench report runs/study --format html                      writes runs/study/report.html",
    ),
)
@options.run_directory()
@options.output_format(*FORMATS, default=None)
@options.output_file()
def command(directory: Path, form: str | None, file: Path | None) -> None:
    """Show the tables of a run, or write its report in another format."""
    from cfbench_core.cli.run_end import verbalization_of
    from cfbench_core.reports import print_tables, render
    from cfbench_core.run_directory import Run

    run = Run(directory)
    form = form or options.format_of(file, FORMATS)
    if form == "table" and file is None:
        print_tables(run, output.stdout_console())
        return
    if form == "html":
        file = file or directory / "report.html"
    text = render(run, form, file, verbalization_of(run) if form == "html" else "")
    click.echo(f"wrote {file}" if file else text, nl=bool(file))
