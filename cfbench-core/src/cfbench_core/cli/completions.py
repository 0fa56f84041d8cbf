"""What a shell offers on Tab: names of components, suites, kinds."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from cfbench_core.registry import installed
from cfbench_core.specs import plural


def component_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Bare names, and full ids once a slash is typed."""
    specs = [component.spec for component in installed().components()]
    offered = [spec.id for spec in specs] if "/" in incomplete else sorted({spec.name for spec in specs})
    return [name for name in offered if name.startswith(incomplete)]


def kinds(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    known = sorted({plural(component.spec.kind) for component in installed().components()})
    return [kind for kind in known if kind.startswith(incomplete)]


def analyses(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str | CompletionItem]:
    """Run directories, and where the first argument stands the names of analyses too."""
    found: list[str | CompletionItem] = [CompletionItem(incomplete, type="dir")]
    if not context.params.get(parameter.name or ""):
        names = {component.spec.name for component in installed().components("analysis")}
        found += sorted(name for name in names if name.startswith(incomplete))
    return found


def runs(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Run directories."""
    return [CompletionItem(incomplete, type="dir")]


def suites(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in installed().suites() if name.startswith(incomplete)]


def executors(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in installed().names("core", "executor") if name.startswith(incomplete)]


def datasets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    found = installed().components("dataset")
    return [component.spec.name for component in found if component.spec.name.startswith(incomplete)]


def replications(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    found = installed().components("replication")
    return [component.spec.name for component in found if component.spec.name.startswith(incomplete)]
