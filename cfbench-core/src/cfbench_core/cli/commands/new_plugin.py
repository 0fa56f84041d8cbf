"""``cfbench new-plugin``: a complete distribution with a component of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import completions, options
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError
from cfbench_core.registry import installed


@subcommand(
    "new-plugin",
    examples=(
        "cfbench new-plugin my-explainer              writes cfbench-explainer-my-explainer/",
        "cfbench new-plugin edited-share --kind metric --summary 'Share of the history that is edited'",
        "cfbench new-plugin typical-row --suite tabular --output typical",
        "cfbench new-plugin time-series --kind suite  a suite of its own",
    ),
)
@click.argument("name")
@click.option(
    "--kind",
    metavar="KIND",
    default="explainer",
    show_default=True,
    help="explainer, recommender, classifier, dataset, metric, analysis or suite.",
)
@click.option(
    "--suite", metavar="SUITE", shell_complete=completions.suites, help="Suite of the new component."
)
@click.option("--summary", metavar="TEXT", help="One line for 'cfbench list'.")
@options.output_directory("Where to write it.")
def command(name: str, kind: str, suite: str | None, summary: str | None, out: Path | None) -> None:
    """Write a plugin: a complete component to start from.

    It consists of a package, the component with its specification and configuration, tests with the conformance
    checks, and a study; all of it works as written. NAME is the component's, in lower case with hyphens.
    """
    from cfbench_core.plugin_template import NewPlugin, suites_with_template, write

    registry = installed()
    if kind == "suite":
        suite = name
    if suite is None:
        possible = suites_with_template(kind, registry)
        if not possible:
            raise UserError(
                f"no installed suite has a template for the kind {kind!r}  (cfbench list suites; --kind "
                "explainer, recommender, classifier, dataset, metric, analysis or suite)"
            )
        suite = possible[0]
    plugin = NewPlugin(name, suite, summary or _summary(name), kind)
    folder = out or Path(plugin.distribution)
    for path in write(plugin, folder, registry):
        click.echo(path)
    click.echo(f"\nIt works as written. Change {folder / 'src' / plugin.module / plugin.file}.py.")
    click.echo(
        f'Try it: pip install -e "{folder}[test]" && cfbench check {plugin.component} && cfbench run {folder}/study.yaml'
    )


def _summary(name: str) -> str:
    """ "my-explainer" becomes "My explainer"."""
    return name.replace("-", " ").capitalize()
