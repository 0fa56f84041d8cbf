"""``cfbench init``: a commented configuration to start from."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import completions
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.suites import the_suite
from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.registry import installed


@subcommand(
    "init",
    examples=(
        "cfbench init                              writes study.yaml",
        "cfbench init --suite tabular iris.yaml",
        "cfbench init - | less                     only look at it",
    ),
)
@click.argument("file", default="study.yaml")
@click.option("--suite", metavar="S", shell_complete=completions.suites, help="recsys, tabular, ...")
@click.option("--force", is_flag=True, help="Write over a file that exists.")
def command(file: str, suite: str | None, force: bool) -> None:
    """Write a commented configuration to start from.

    FILE is study.yaml unless it is given; "-" is the terminal.
    """
    registry = installed()
    document = the_suite(suite, registry).example_document(registry)
    if file == "-":
        click.echo(document, nl=False)
        return
    path = Path(file)
    if path.exists() and not force:
        raise UserError(f"{path}: exists already; give another name, or --force to write over it")
    write_atomically(path, document)
    click.echo(f"wrote {path}. What it would compute: cfbench plan {path}    Compute it: cfbench run {path}")
