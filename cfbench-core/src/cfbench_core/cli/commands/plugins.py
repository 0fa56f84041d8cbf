"""``cfbench plugins``: the distributions that provide components, and why one could not be loaded."""

from __future__ import annotations

from collections import Counter

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.group import subcommand
from cfbench_core.registry import Plugin, Registry, installed
from cfbench_core.wording import count_of


@subcommand(
    "plugins",
    examples=(
        "cfbench plugins               distributions, their components and problems",
        "cfbench plugins --tracebacks  with the tracebacks of broken plugins",
    ),
)
@click.option("--tracebacks", is_flag=True, help="Show where a broken plugin failed.")
@options.output_format("table", "json")
def command(tracebacks: bool, form: str) -> None:
    """List the plugins, and why one could not be loaded."""
    registry = installed()
    if form == "json":
        output.as_json([_described(plugin) for plugin in registry.plugins])
        return
    rows = [
        [plugin.distribution, plugin.version, plugin.module, _brings(plugin)] for plugin in registry.plugins
    ]
    output.table(["plugin", "version", "module", "components"], rows, spare=["module"])
    _conflicts(registry)
    if tracebacks:
        for plugin in registry.plugins:
            if plugin.traceback:
                output.heading(f"\n{plugin.distribution} {plugin.version}")
                click.echo(plugin.traceback.rstrip())


def _brings(plugin: Plugin) -> str:
    """ "12 explainers, 1 suite", or the problem."""
    if plugin.problem:
        return f"could not be loaded: {plugin.problem}"
    kinds = Counter(component.spec.kind for component in plugin.components)
    return ", ".join(count_of(number, kind) for kind, number in sorted(kinds.items())) or "nothing"


def _conflicts(registry: Registry) -> None:
    for id, owners in registry.conflicts().items():
        names = " and ".join(component.owner for component in owners)
        click.secho(f"\n{id} is defined by {names}: neither is used. Uninstall one of them.", fg="yellow")


def _described(plugin: Plugin) -> dict[str, object]:
    return {
        "distribution": plugin.distribution,
        "version": plugin.version,
        "module": plugin.module,
        "components": [component.spec.id for component in plugin.components],
        "problem": plugin.problem,
    }
