"""``cfbench init``: a commented configuration to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cfbench_core.cli import completions
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.suites import the_suite
from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.registry import Registry, installed


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
@click.option("--target", metavar="COLUMN", help="With --csv: the column with the classes; else the last.")
@click.option("--encoding", metavar="NAME", help="With --csv: the encoding of the file; else detected.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(
    file: str, suite: str | None, table: Path | None, target: str | None, encoding: str | None, force: bool
) -> None:
    """Write a commented configuration to start from.

    FILE is study.yaml unless it is given; "-" is the terminal.
    """
    registry = installed()
    if table is not None:
        document = _reader_of_csv(suite, registry).csv_document(table, target, registry, encoding)
    elif target is not None or encoding is not None:
        option = "--target names a column" if target is not None else "--encoding is"
        raise UserError(f"{option} of the file that --csv names; give that as well")
    else:
        document = the_suite(suite, registry).example_document(registry)
    if file == "-":
        click.echo(document, nl=False)
        return
    path = Path(file)
    if path.exists() and not force:
        raise UserError(f"{path}: exists already; give another name, or --force to overwrite it")
    write_atomically(path, document)
    click.echo(f"wrote {path}. Show the plan: cfbench plan {path}    Run it: cfbench run {path}")


def _reader_of_csv(name: str | None, registry: Registry) -> Any:
    """The suite of that name, or the first that is installed, which can draft a configuration for a CSV file."""
    names = [name] if name is not None else registry.suites()
    for suite in (the_suite(name, registry) for name in names):
        if hasattr(suite, "csv_document"):
            return suite
    which = f"the suite {name} does not read" if name is not None else "no installed suite reads"
    raise UserError(f"--csv: {which} CSV files (cfbench list suites)")
