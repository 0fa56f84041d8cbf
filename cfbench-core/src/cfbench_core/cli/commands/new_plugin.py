"""``cfbench new-plugin``: a complete distribution with an explainer of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import completions
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError
from cfbench_core.registry import installed


@subcommand(
    "new-plugin",
    examples=(
        "cfbench new-plugin my-explainer                    writes cfbench-explainer-my-explainer/",
        "cfbench new-plugin lift --summary 'Items that raise the odds' --paper 'Brin et al. 1997'",
        "cfbench new-plugin typical-row --suite tabular --out typical",
    ),
)
@click.argument("name")
@click.option(
    "--suite", metavar="S", shell_complete=completions.suites, help="What it explains: recsys, tabular."
)
@click.option("--summary", metavar="TEXT", help="One line for 'cfbench list'.")
@click.option("--paper", metavar="TEXT", default="", help="Where it comes from: 'Brin et al. 1997'.")
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Where to write it."
)
def command(name: str, suite: str | None, summary: str | None, paper: str, out: Path | None) -> None:
    """Write a plugin: a whole explainer to start from.

    Package, registration, configuration, tests with the conformance kit, and a study; all work as they are
    written. NAME is the explainer's, in lower case with hyphens.
    """
    from cfbench_core.plugin_template import NewPlugin, suites_with_template, write

    registry = installed()
    possible = suites_with_template(registry)
    if suite is None and not possible:
        raise UserError(
            "no suite is installed for which a plugin could be written: 'cfbench list' says what to install"
        )
    plugin = NewPlugin(name, suite or possible[0], summary or _summary(name), paper)
    folder = out or Path(plugin.distribution)
    for path in write(plugin, folder, registry):
        click.echo(path)
    click.echo(
        f"\nIt works as it is. Put your method into {folder / 'src' / plugin.module / plugin.file}.py."
    )
    click.echo(
        f'Try it: pip install -e "{folder}[test]" && cfbench check {name} && cfbench run {folder}/study.yaml'
    )


def _summary(name: str) -> str:
    """ "my-explainer" becomes "My explainer"."""
    return name.replace("-", " ").capitalize()
