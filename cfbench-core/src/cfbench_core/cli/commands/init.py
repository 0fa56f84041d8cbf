"""``cfbench init``: a commented configuration to start from."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import completions
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.initial_configuration import initial_configuration
from cfbench_core.wording import size

LARGE = 1e6
"""Bytes of a CSV file above which the command shows that it is working."""


@subcommand(
    "init",
    examples=(
        "cfbench init                              writes study.yaml",
        "cfbench init --suite tabular iris.yaml",
        "cfbench init - | less                     only show it",
        "cfbench init --csv patients.csv --target outcome    for a table of your own",
    ),
)
@click.argument("file", default="study.yaml")
@click.option("--suite", metavar="SUITE", shell_complete=completions.suites, help="recsys, tabular, ...")
@click.option(
    "--csv",
    "table",
    metavar="CSV",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draft a configuration and a schema for this CSV file.",
)
@click.option(
    "--target", metavar="COLUMN", help="With --csv: the column with the classes (default: the last column)."
)
@click.option("--encoding", metavar="NAME", help="With --csv: the encoding of the file (default: detected).")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(
    file: str, suite: str | None, table: Path | None, target: str | None, encoding: str | None, force: bool
) -> None:
    """Write a commented configuration to start from.

    FILE is study.yaml unless it is given; "-" is the terminal.
    """
    if table is not None and table.is_file() and table.stat().st_size > LARGE:
        click.echo(f"inferring columns from every row of {table} ({size(table.stat().st_size)})", err=True)
    document = initial_configuration(suite, table, target, encoding)
    if file == "-":
        click.echo(document, nl=False)
        return
    path = Path(file)
    if path.exists() and not force:
        raise UserError(f"{path}: exists already; give another name, or --force to overwrite it")
    write_atomically(path, document)
    click.echo(f"wrote {path}. Show the plan: cfbench plan {path}    Run it: cfbench run {path}")
