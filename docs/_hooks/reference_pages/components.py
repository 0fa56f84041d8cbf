"""An index of all components, and a page for each: source, options, example, partners, and the text of its author."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from cfbench_core.component_documentation import docstring_of, example_of, option_fields, partners
from cfbench_core.papers import Paper, papers_for
from cfbench_core.presets import presets_of
from cfbench_core.registry import Component, Registry
from cfbench_core.reproduction_levels import level_of
from cfbench_core.specs import ROLES, ComponentSpec, plural
from reference_pages.formulas import formula
from reference_pages.tables import keys, markdown_table

KIND_TITLES = {
    "suite": "Suites",
    "dataset": "Data sets",
    "recommender": "Recommenders",
    "classifier": "Classifiers",
    "generator": "Generators",
    "extractor": "Extractors",
    "judge": "Judges",
    "explainer": "Explainers",
    "metric": "Metrics",
    "analysis": "Analyses",
    "labelset": "Label sets",
    "replication": "Replications of papers",
    "viewer": "Viewers",
    "executor": "Executors",
    "store": "Stores",
}

ROLE_MEANINGS = dict(
    zip(
        ROLES,
        (
            "a control that proves how far each answer is optimal",
            "a control: a strong search without proof",
            "a control that every method should beat",
        ),
        strict=True,
    )
)


def index(registry: Registry) -> str:
    """A table for each suite and kind, each name linked to its page."""
    parts = ["# Components", "", "All components that the distributions of this project register.", ""]
    for suite in sorted({component.spec.suite for component in registry.components()}):
        parts += [f"## `{suite}`", ""]
        for kind in kinds(registry):
            found = registry.components(kind, suite)
            if found:
                parts += [f"### {title_of(kind)} of {suite}", "", _table(found), ""]
    return "\n".join(parts)


def kinds(registry: Registry) -> Iterator[str]:
    """All kinds, those with a title first, in its order."""
    used = {component.spec.kind for component in registry.components()}
    yield from (kind for kind in KIND_TITLES if kind in used)
    yield from sorted(used - KIND_TITLES.keys())


def title_of(kind: str) -> str:
    return KIND_TITLES.get(kind, plural(kind).capitalize())


def path_of(component: Component) -> str:
    return f"components/{component.spec.id}.md"


def page(component: Component, registry: Registry) -> str:
    """Everything that ``cfbench describe`` shows, as a page."""
    spec = component.spec
    parts = [f"# {spec.name}", "", f"{spec.summary}.", "", _facts(component), ""]
    shown = formula(spec.id)
    if shown:
        parts += ["## Formula", "", shown, ""]
    text = docstring_of(spec.target)
    if text:
        parts += ["## Description", "", as_markdown(text), ""]
    parts += _sections(spec, registry)
    parts += _partners(component, registry)
    return "\n".join(parts)


def _facts(component: Component) -> str:
    spec = component.spec
    level = level_of(spec)
    of = f" (`{level.variant}`)" if level and level.variant else ""
    facts = {
        "Kind": f"{spec.kind} of the suite `{spec.suite}`",
        "Role": f"{spec.role}, {ROLE_MEANINGS[spec.role]}" if spec.role else "",
        "Certificate": spec.certificate,
        "Papers": "; ".join(reference(paper) for paper in papers_for(spec)),
        "Reproduction": f"{level.level}{of}: {level.evidence}" if level else "",
        "Capabilities": axes(spec.provides),
        "Requirements": "; ".join(f"{kind}: {axes(values)}" for kind, values in spec.needs.items()),
        "Distribution": f"`{component.distribution}`",
        "Implementation": f"`{spec.target.replace(':', '.')}`",
    }
    return "\n".join(f"- **{name}:** {fact}" for name, fact in facts.items() if fact)


def _sections(spec: ComponentSpec, registry: Registry) -> Iterator[str]:
    options = option_fields(spec)
    if options:
        yield from ("## Options", "", keys(options), "")
    presets = presets_of(spec)
    if presets:
        rows = [
            (f"`{one.name}`", f"`{yaml.safe_dump(dict(one.options), default_flow_style=True, width=1000).strip()}`")
            for one in presets.values()
        ]  # fmt: skip
        yield from ("## Presets", "", markdown_table(("preset", "options"), rows), "")
    example = example_of(spec, registry)
    if example:
        language = "sh" if example.startswith("cfbench ") else "yaml"
        yield from ("## Example", "", f"```{language}", example, "```", "")


def _partners(component: Component, registry: Registry) -> Iterator[str]:
    found = [(kind, fitting) for kind, fitting, _ in partners(component, registry)]
    if not found:
        return
    yield from ("## Compatible with", "")
    for kind, fitting in found:
        names = ", ".join(
            f"[{one.spec.name}](../../{one.spec.suite}/{one.spec.kind}/{one.spec.name}.md)".replace(
                f"../../{component.spec.suite}/", "../"
            )
            for one in fitting
        )
        yield f"- {title_of(kind)}: {names or 'none that is installed'}"
    yield ""


def _table(components: list[Component]) -> str:
    rows = [
        {
            "name": f"[{c.spec.name}]({path_of(c)})" + (f" ({c.spec.role})" if c.spec.role else ""),
            "summary": c.spec.summary,
            "papers": "; ".join(reference(paper) for paper in papers_for(c.spec)),
            "reproduction": _level(c.spec),
            "distribution": f"`{c.distribution}`",
        }
        for c in components
    ]
    shown = [key for key in rows[0] if any(row[key] for row in rows)]
    return markdown_table(shown, [[row[key] for key in shown] for row in rows])


def _level(spec: ComponentSpec) -> str:
    found = level_of(spec)
    return found.level if found else ""


def reference(paper: Paper) -> str:
    """ "Nóbrega & Marinho 2019", linked to its page where its identifier is known."""
    return f"[{paper.short()}]({paper.url})" if paper.url else paper.short()


def axes(capabilities: object) -> str:
    assert hasattr(capabilities, "items")
    return "; ".join(f"{axis} {', '.join(sorted(values))}" for axis, values in capabilities.items())


ROLE = re.compile(r":\w+:`~?([^`<]*?)(?: *<[^`]*>)?`")
"""A cross-reference of reStructuredText, ``:func:`name``` or ``:mod:`text <module>```."""


def as_markdown(text: str) -> str:
    """A docstring as Markdown: cross-references and double backticks become code; equations are indented, hence code."""
    return ROLE.sub(r"`\1`", text).replace("``", "`")
