"""Pages made from the registry when the site is built: components, configuration, commands. They are not stored."""

from __future__ import annotations

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from tabulate import tabulate

from cfbench_core.config import fields_of
from cfbench_core.papers import Paper, papers_for
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.reproduction_levels import level_of
from cfbench_core.specs import CORE, resolve

KIND_TITLES = {
    "dataset": "Data sets",
    "recommender": "Recommenders",
    "classifier": "Classifiers",
    "explainer": "Explainers",
    "metric": "Metrics",
    "analysis": "Analyses",
    "replication": "Replications of papers",
    "executor": "Executors",
    "generator": "Generators",
    "extractor": "Extractors",
    "judge": "Judges",
    "labelset": "Label sets",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """mkdocs calls this once the files of docs/ are known."""
    registry = installed()
    problems = registry.problems()
    if problems:
        raise RuntimeError("the registry has problems: " + "; ".join(problems))
    pages = {
        "reference/components.md": components_page(registry),
        "reference/configuration.md": configuration_page(registry),
        "reference/commands.md": commands_page(),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def components_page(registry: Registry) -> str:
    """A table for each suite and kind."""
    parts = ["# Components", "", "Everything that the distributions of this project register.", ""]
    for suite in sorted({component.spec.suite for component in registry.components()}):
        parts += [f"## `{suite}`", ""]
        for kind, title in KIND_TITLES.items():
            found = registry.components(kind, suite)
            if found:
                parts += [f"### {title} of {suite}", "", table(found), ""]
    return "\n".join(parts)


def table(components: list[Component]) -> str:
    rows = [
        {
            "name": f"`{c.spec.name}`" + (f" ({c.spec.role})" if c.spec.role else ""),
            "what": c.spec.summary,
            "provides": axes(c.spec.provides),
            "needs": "; ".join(f"{kind}: {axes(values)}" for kind, values in c.spec.needs.items()),
            "papers": "; ".join(reference(paper) for paper in papers_for(c.spec)),
            "reproduced": reproduced(c),
            "from": f"`{c.distribution}`",
        }
        for c in components
    ]
    shown = [key for key in rows[0] if any(row[key] for row in rows)]
    return tabulate([[row[key] for key in shown] for row in rows], headers=shown, tablefmt="github")


def reproduced(component: Component) -> str:
    """ "agrees with the code (variant: paper): the same answers as ..."."""
    found = level_of(component.spec)
    if found is None:
        return ""
    return f"{found.level}{f' ({found.variant})' if found.variant else ''}: {found.evidence}"


def reference(paper: Paper) -> str:
    """ "Nóbrega & Marinho 2019", linked to its page where its identifier is known."""
    return f"[{paper.short()}]({paper.url})" if paper.url else paper.short()


def axes(capabilities: object) -> str:
    assert hasattr(capabilities, "items")
    return "; ".join(f"{axis} {', '.join(sorted(values))}" for axis, values in capabilities.items())


def configuration_page(registry: Registry) -> str:
    """The keys of each suite and of each component that has any."""
    parts = [
        "# Configuration",
        "",
        "One YAML document. `cfbench describe NAME` shows the same on the command line.",
        "",
    ]
    executors = [one.spec for one in registry.components("executor", CORE) if one.spec.config]
    parts += [
        "## Executors",
        "",
        "`executor: {name: NAME, key: value}` in the configuration of every suite.",
        "",
    ]
    for spec in executors:
        parts += [f"### `{spec.name}` (executor)", "", keys(resolve(spec.config)), ""]
    for component in registry.components("suite"):
        suite = resolve(component.spec.target)
        parts += [f"## Suite `{component.spec.name}`", "", keys(suite.config), ""]
        for inner in registry.components(suite=component.spec.name):
            if inner.spec.config:
                parts += [
                    f"### `{inner.spec.name}` ({inner.spec.kind})",
                    "",
                    keys(resolve(inner.spec.config)),
                    "",
                ]
    return "\n".join(parts)


def keys(config: type) -> str:
    rows = [(f"`{f.name}`", f.type, f.range, f"`{f.default}`", f.help) for f in fields_of(config)]
    return tabulate(rows, headers=("key", "type", "range", "default", "what"), tablefmt="github")


def commands_page() -> str:
    """``--help`` of every command."""
    from cfbench_core.cli.root import cli

    parts = ["# Commands", ""]
    context = click.Context(cli, info_name="cfbench")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        help_text = command.get_help(click.Context(command, info_name=name, parent=context))
        parts += [f"## cfbench {name}", "", "```text", help_text, "```", ""]
    return "\n".join(parts)
