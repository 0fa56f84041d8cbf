"""``cfbench describe``: one component in full, without importing its implementation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import yaml

from cfbench_core.cli import completions, options, output
from cfbench_core.cli.capabilities import Axes, axes_of, needed, values
from cfbench_core.cli.group import subcommand
from cfbench_core.component_documentation import (
    describe,
    docstring_of,
    example_of,
    find_component,
    option_fields,
    partners,
)
from cfbench_core.config import FieldInfo
from cfbench_core.papers import papers_for, short_references
from cfbench_core.presets import Preset, presets_of
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.reproduction_levels import level_or_problem
from cfbench_core.specs import ComponentSpec, plural


@subcommand(
    "describe",
    examples=(
        "cfbench describe lime-rs",
        "cfbench describe recsys/explainer/cosine   the full id of an ambiguous name",
        "cfbench describe tabular                   a suite: the keys of its configuration",
    ),
)
@click.argument("id", shell_complete=completions.component_ids)
@options.output_format("table", "json")
def command(id: str, form: str) -> None:
    """Describe a component: its options, what it is compatible with, and an example.

    ID is its name, or its full id (suite/kind/name) if the name is ambiguous. For a suite, describe the keys of
    a whole configuration.
    """
    registry = installed()
    if form == "json":
        output.as_json(describe(id, registry))
    else:
        _show(find_component(id, registry), registry)


def _reproduced(spec: ComponentSpec) -> str:
    """The level of reproduction with its evidence, in lines; or why it cannot be read."""
    found, problem = level_or_problem(spec)
    if found is None:
        return f"cannot be read: {problem}" if problem else ""
    of = f" ({found.variant})" if found.variant else ""
    return f"{found.level}{of}\n{click.wrap_text(found.evidence, 90)}"


def _show(component: Component, registry: Registry) -> None:
    spec = component.spec
    axes = axes_of(spec.suite, registry)
    control = {
        "certified": "  (certified: it proves how far each answer is optimal; a control, not a competitor)",
        "reference": "  (reference: a strong search without proof; a control, not a competitor)",
        "baseline": "  (baseline: what every method should beat; a control, not a competitor)",
    }
    output.heading(spec.id)
    click.echo(f"{spec.summary}{control.get(spec.role, '')}\n")
    facts = {
        "certificate": spec.certificate,
        "papers": _references(spec),
        "reproduction": _reproduced(spec),
        **{
            axis: values(spec.provides, axis, axes)
            for axis in [*axes, *spec.provides]
            if axis in spec.provides
        },
        "needs": needed(spec, axes) if spec.needs else "",
        "from": component.owner,
        "code": spec.target,
    }
    output.pairs({name: fact for name, fact in facts.items() if fact})
    _show_partners(component, registry, axes)
    _show_keys(spec)
    _show_presets(spec)
    snippet = example_of(spec, registry)
    if snippet:
        output.heading("\nExample")
        click.echo(_indented(snippet))
    text = docstring_of(spec.target)
    if text:
        output.heading("\nDocumentation")
        click.echo(_indented(text))


def _references(spec: ComponentSpec) -> str:
    """A line for each paper: "Barkan et al. 2024  doi:10.1145/..."."""
    try:
        return "\n".join(f"{paper.short()}  {paper.identifier}".rstrip() for paper in papers_for(spec))
    except ValueError:
        return short_references(spec)


def _show_keys(spec: ComponentSpec) -> None:
    keys = option_fields(spec)
    if not keys:
        if spec.kind not in ("metric", "executor", "store"):
            click.echo("\nIt has no options.")
        return
    output.heading("\nConfiguration")
    rows = [[key.name, _type(key), key.default, key.help] for key in keys]
    output.table(["key", "type", "default", "meaning"], rows, indent="  ")


def _show_presets(spec: ComponentSpec) -> None:
    presets = presets_of(spec)
    if not presets:
        return
    output.heading("\nPresets")
    for preset in presets.values():
        options = yaml.safe_dump(dict(preset.options), default_flow_style=True, sort_keys=False, width=1000)
        click.echo(f"  preset: {preset.name}   # {options.strip()[1:-1]}")  # without the outer braces
        for line in _found_by(preset):
            click.echo(output.hanging("      ", line))


def _found_by(preset: Preset) -> list[str]:
    """What matters of the search, in lines: its result, that on held-out data, then the command, or the source of options
    that were published; ``--format json`` has all."""
    search = preset.search
    names = ("trials", "version", "hardware", "date")
    facts = [
        f"{search[name]} trials" if name == "trials" else str(search[name])
        for name in names
        if name in search
    ]
    result = " · ".join([*_gain(search), *facts])
    held_out = " · ".join(_gain(search.get("held_out") or {}))
    lines = (result, held_out, search.get("command", ""), search.get("source", ""))
    return [str(line) for line in lines if line]


def _gain(found: Mapping[str, Any]) -> list[str]:
    """ "validation NDCG@10 0.07", "0.06 before": of the options that were found, and of those as configured."""
    value = f"{found.get('metric', '')} {found.get('value', '')}".strip()
    before = f"{found['as_configured']} before" if "as_configured" in found else ""
    return [fact for fact in (value, before) if fact]


def _type(key: FieldInfo) -> str:
    """ "whole number >= 2 or none"."""
    first, *others = key.type.split(" or ")
    return " or ".join([f"{first} {key.range}".rstrip(), *others])


def _show_partners(component: Component, registry: Registry, axes: Axes) -> None:
    found = [*partners(component, registry)]
    if not found:
        return
    output.heading("\nCompatible with")
    for kind, fitting, reasons in found:
        names = ", ".join(partner.spec.name for partner in fitting) or "none that is installed"
        click.echo(click.wrap_text(names, 100, f"  {plural(kind)}: ", "    "))
        for reason in sorted(set(reasons.values())):
            left_out = ", ".join(name for name, why in reasons.items() if why == reason)
            click.echo(click.wrap_text(f"{left_out} ({reason})", 100, "    not: ", "      "))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())
