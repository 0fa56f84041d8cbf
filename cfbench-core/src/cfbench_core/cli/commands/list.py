"""``cfbench list``: what is installed, by suite and kind. Reads specs only: no implementation is imported."""

from __future__ import annotations

import dataclasses
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any

import click

from cfbench_core.cli import completions, options, output
from cfbench_core.cli.capabilities import axes_of, needed, used, values
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.papers import short_references
from cfbench_core.registry import Component, Registry, installed, known_extras
from cfbench_core.reproduction_levels import level_or_problem
from cfbench_core.specs import KINDS, plural

CHOSEN_BY_CAPABILITY = {"explainer", "recommender"}
"""Kinds whose rows show what they can do and where they come from; of other kinds the summary is shown."""


@subcommand(
    "list",
    examples=(
        "cfbench list                             the names of all components, by suite and kind",
        "cfbench list explainers --suite recsys   what to compare, and what each needs",
        "cfbench list --all                       every component with a line of its own",
        "cfbench list metrics --format json       for programs",
    ),
)
@click.argument("kind", required=False, shell_complete=completions.kinds)
@click.option(
    "--suite", metavar="SUITE", shell_complete=completions.suites, help="Only what belongs to this suite."
)
@click.option("--all", "every", is_flag=True, help="If KIND is missing, show one line per component.")
@options.output_format("table", "json")
def command(kind: str | None, suite: str | None, every: bool, form: str) -> None:
    """List what is installed, and what it can do.

    KIND is explainers, recommenders, datasets, metrics, ..., in the singular or the plural; with it each component has a
    line that shows what it can do. Without it the names are listed, by suite and kind.
    """
    registry = installed()
    chosen = _kind(kind, registry) if kind else None
    if suite is not None and suite not in ("core", *registry.suites()):
        registry.find(suite, "suite", suite)  # raises, and says what to install
    found = registry.components(chosen, suite)
    if form == "json":
        output.as_json([_described(component) for component in found])
        return
    if chosen is None and not every:
        _names(found)
    else:
        _tables(found, registry)
        _unreadable_levels(found)
    to_run = chosen is None and set(registry.suites_to_run()) & {suite or one for one in registry.suites()}
    if chosen in (None, "explainer") and not to_run and not any(c.spec.kind == "explainer" for c in found):
        if found:
            click.echo()
        _advise(suite)
    _problems(registry)


def _kind(given: str, registry: Registry) -> str:
    known = list(dict.fromkeys([*KINDS, *(component.spec.kind for component in registry.components())]))
    kind = next((name for name in known if given.lower() in (name, plural(name))), "")
    if not kind:
        plurals = [plural(name) for name in known]
        raise UserError(f"no kind {given!r}.{did_you_mean(given, plurals)}  (kinds: {', '.join(plurals)})")
    return kind


def _described(component: Component) -> dict[str, Any]:
    origin = {"distribution": component.distribution, "distribution_version": component.distribution_version}
    found, _ = level_or_problem(component.spec)
    level = {"reproduction": dataclasses.asdict(found)} if found else {}
    return {**vars(component.spec), **origin, **level}


def _names(found: Sequence[Component]) -> None:
    """The names of each suite and kind, on as few lines as they fit; a suite itself is the heading of its components."""
    width = shutil.get_terminal_size((100, 24)).columns
    summaries = {one.spec.suite: one.spec.summary for one in found if one.spec.kind == "suite"}
    groups = _groups([one for one in found if one.spec.kind != "suite"])
    column = max((len(plural(kind)) for _, kind in groups), default=0) + 4
    current = ""
    for (suite, kind), components in groups.items():
        if suite != current:
            click.echo("\n" * bool(current), nl=False)
            output.heading(f"{suite}: {summaries[suite]}" if suite in summaries else suite)
            current = suite
        names = " ".join(component.spec.name for component in components)
        start, rest = f"  {plural(kind)}".ljust(column), " " * column
        filled = textwrap.wrap(names, width - column, break_on_hyphens=False, break_long_words=False)
        click.echo("\n".join(f"{rest if place else start}{line}" for place, line in enumerate(filled)))
    if groups:
        click.echo("\nMore about them: cfbench list KIND, cfbench describe NAME")


def _groups(found: Sequence[Component]) -> dict[tuple[str, str], list[Component]]:
    """The components by suite and kind, in order."""
    groups: dict[tuple[str, str], list[Component]] = {}
    for component in sorted(found, key=_place):
        groups.setdefault((component.spec.suite, component.spec.kind), []).append(component)
    return groups


def _tables(found: Sequence[Component], registry: Registry) -> None:
    """One table for each suite and kind, under a heading where there are several."""
    groups = _groups(found)
    for place, ((suite, kind), components) in enumerate(groups.items()):
        if place:
            click.echo()
        if len(groups) > 1:
            output.heading(f"{suite} · {plural(kind)}")
        _table(suite, kind, components, registry)


def _place(component: Component) -> tuple[bool, str, int]:
    """Suites by name, the core's own last; the kinds in the order in which one thinks of them."""
    suite, kind = component.spec.suite, component.spec.kind
    return suite == "core", suite, KINDS.index(kind) if kind in KINDS else len(KINDS)


def _table(suite: str, kind: str, components: Sequence[Component], registry: Registry) -> None:
    axes = axes_of(suite, registry)
    if kind in CHOSEN_BY_CAPABILITY:
        shown = used(components, axes)
        needs = ["needs"] if any(component.spec.needs for component in components) else []
        levels = {component.spec.name: level_or_problem(component.spec)[0] for component in components}
        reproduced = ["reproduction"] if any(levels.values()) else []
        columns = [kind, *shown, *needs, *reproduced, "from", "papers"]
        rows = [
            [
                component.spec.name,
                *(values(component.spec.provides, axis, axes) for axis in shown),
                *(needed(component.spec, axes) for _ in needs),
                *(found.level if (found := levels[component.spec.name]) else "-" for _ in reproduced),
                component.distribution,
                short_references(component.spec) or "-",
            ]
            for component in components
        ]
        output.table(columns, rows, spare=["reproduction", "needs", "from", "papers"])
        return
    rows = [[component.spec.name, component.distribution, component.spec.summary] for component in components]
    output.table([kind, "from", "summary"], rows, spare=["from"])


def _advise(suite: str | None) -> None:
    """What to install when there is nothing to explain with."""
    known = known_extras()
    wanted = {suite: known[suite]} if suite in known else known
    click.echo("No explainer is installed yet. Install a suite:")
    for name, distributions in wanted.items():
        for distribution in distributions:
            click.echo(f"  pip install {distribution.ljust(27)}  ({name})")
    click.echo("Then call 'cfbench list' again.")


def _unreadable_levels(found: Sequence[Component]) -> None:
    """One line for each file of levels of reproduction that cannot be read."""
    problems = (level_or_problem(one.spec)[1] for one in found if one.spec.kind in CHOSEN_BY_CAPABILITY)
    for line in dict.fromkeys(filter(None, problems)):
        click.secho(f"\nno level of reproduction: {line}", fg="yellow")


def _problems(registry: Registry) -> None:
    """One line for what could not be loaded; ``cfbench plugins`` shows more."""
    problems = registry.problems()
    if not problems:
        return
    subject = (
        "1 plugin could not be loaded"
        if len(problems) == 1
        else f"{len(problems)} plugins could not be loaded"
    )
    click.echo()
    click.secho(f"{subject}: {'; '.join(problems)} (cfbench plugins)", fg="yellow")
