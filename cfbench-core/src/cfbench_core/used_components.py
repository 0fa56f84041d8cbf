"""The components that a configuration uses: recorded in the run directory with their papers, and none in vain."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import CodeReference, ConfiguredComponent, Document
from cfbench_core.config.code_references import IMPORT, origin
from cfbench_core.config.fields import hints_of, unwrap
from cfbench_core.errors import UserError
from cfbench_core.papers import Paper, papers_for
from cfbench_core.reproduction_levels import level_of
from cfbench_core.specs import CORE_KINDS, ComponentSpec

if TYPE_CHECKING:
    from cfbench_core.plan import Plan
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run

FILE = "components.json"


def configured(config: Any) -> Iterator[tuple[str, ConfiguredComponent]]:
    """Every component in a decoded configuration with its place: ``("metrics[1]", ...)``."""
    yield from _walk(config, "")


def _of_study(config: Any) -> Iterator[tuple[str, ConfiguredComponent]]:
    """Every component that may change a number; an executor changes none."""
    return (entry for entry in configured(config) if entry[1].kind not in CORE_KINDS)


def _walk(value: Any, place: str) -> Iterator[tuple[str, ConfiguredComponent]]:
    if isinstance(value, ConfiguredComponent):
        yield place, value
        yield from _walk(value.options, place)
        for name, options in value.options_for:
            other = dataclasses.replace(value, options=options, options_for=())
            yield from _walk(other, f"{place}.options_for.{name}")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            yield from _walk(inner, f"{place}.{field.name}" if place else field.name)
    elif isinstance(value, (tuple, list)):
        for number, item in enumerate(value):
            yield from _walk(item, f"{place}[{number}]")


def trust_notes(config: Any) -> list[str]:
    """What a configuration does that its reader should know of: code that it runs, keys that it sends.

    A component whose options send a secret says so in their property ``sends``: "the key in $X_API_KEY to example.org".
    """
    notes: dict[str, None] = {}
    for place, component in configured(config):
        for reference in _code_named_by(component):
            if origin(reference) == "own":
                notes[f"{place} runs your own code: {reference}"] = None
        sends = getattr(component.options, "sends", "")
        if sends:
            notes[f"{place} sends {sends}"] = None
    return list(notes)


def _code_named_by(component: ConfiguredComponent) -> Iterator[str]:
    if not component.distribution:
        yield component.spec.target
    if component.options is None:
        return
    config: type = type(component.options)
    hints = hints_of(config)
    for field in dataclasses.fields(component.options):
        value = getattr(component.options, field.name)
        if isinstance(value, str) and value.startswith(IMPORT):
            yield value.removeprefix(IMPORT)
        elif isinstance(value, str) and CodeReference in unwrap(hints[field.name])[1]:
            yield value


def check_all_contribute(config: Any, plan: Plan, document: Document) -> None:
    """Raises an error for each component that the document names and that no cell uses.

    A component is used if a cell is labelled with it or a stage has it among its parameters. Components that are
    defaults, and configurations of which every cell is skipped, are not checked: the plan gives the reasons.

    Raises:
        UserError: one line for each component without effect.
    """
    if not plan.to_run:
        return
    given = {str(key.value): value for key, value in document.root.value}
    labels = {str(label) for cell in plan.cells for label in cell.labels.values()}
    in_stages = {name for stage in plan.stages() for name in _component_ids(stage.parameters)}
    lines = []
    for place, component in _of_study(config):
        key = place.partition("[")[0].partition(".")[0]
        if key not in given or component.label in labels or component.spec.id in in_stages:
            continue
        where = document.where(given[key])
        lines.append(
            f"{where}: {place}: {component.kind} {component.label!r} applies to no cell of this configuration: "
            f"{_conditions(component)}; remove it or extend the protocol"
        )
    if lines:
        raise UserError(*lines)


def _conditions(component: ConfiguredComponent) -> str:
    """What it needs and provides, in a line."""
    needs = [
        f"{axis} {_listed(values)}" for axes in component.needs.values() for axis, values in axes.items()
    ]
    provides = [f"{axis} {_listed(values)}" for axis, values in component.spec.provides.items()]
    parts = [f"it needs {', '.join(needs)}"] if needs else []
    parts += [f"it provides {', '.join(provides)}"] if provides else []
    return " and ".join(parts) or "no stage uses it"


def _listed(values: Any) -> str:
    return " or ".join(sorted(values))


def _component_ids(value: Any) -> Iterator[str]:
    if isinstance(value, (str, int, float)):  # most values; the check for Mapping is slow
        return
    if isinstance(value, Mapping):
        if isinstance(value.get("component"), str):
            yield value["component"]
        for inner in value.values():
            yield from _component_ids(inner)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _component_ids(inner)


def describe_used(suite: str, config: Any, plan: Plan, registry: Registry) -> list[dict[str, Any]]:
    """The suite and every component that a run uses, each with its papers in full: ``components.json``.

    These are the components of the configuration, and those that only stages name, for example the default metrics.
    """
    used = [(component.label, component.spec, component.distribution) for _, component in _of_study(config)]
    known = {spec.id for _, spec, _ in used}
    in_stages = {id for stage in plan.stages() for id in _component_ids(stage.parameters)}
    for id in [f"{suite}/suite/{suite}", *sorted(in_stages - known)]:
        for found in registry.by_id(id):
            owner = found.owner
            used.append((found.spec.name, found.spec, owner))
    described = [
        {
            "id": spec.id,
            "label": label,
            "distribution": distribution,
            "version": spec.version,
            "papers": _papers(spec),
            "reproduction": _reproduction(spec),
        }
        for label, spec, distribution in used
    ]
    return [entry for place, entry in enumerate(described) if entry not in described[:place]]


def _papers(spec: ComponentSpec) -> list[dict[str, Any]]:
    """A plugin that cites a paper which it does not list costs its reference, not the run."""
    try:
        return [dataclasses.asdict(paper) for paper in papers_for(spec)]
    except ValueError:
        return []


def _reproduction(spec: ComponentSpec) -> dict[str, str] | None:
    """How far the component is the method of its paper; None where its package states nothing that can be read."""
    try:
        found = level_of(spec)
    except ValueError:
        return None
    return dataclasses.asdict(found) if found else None


def cite(run: Run | str | Path) -> list[Paper]:
    """The papers of everything that a run used: data sets, models, explainers, metrics, ...; sorted by key.

    Raises:
        UserError: if it is not a run directory, or does not record its components.
    """
    from cfbench_core.run_directory import Run

    opened = run if isinstance(run, Run) else Run(run)
    path = opened.directory / FILE
    try:
        components = json.loads(path.read_text(encoding="utf-8"))
        papers = [
            Paper(**{**paper, "authors": tuple(paper["authors"])})
            for component in components
            for paper in component["papers"]
        ]
    except FileNotFoundError:
        raise UserError(f"{path}: is missing; run the configuration again into this directory") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); run the configuration again into this directory"
        ) from None
    return sorted({paper.key: paper for paper in papers}.values(), key=lambda paper: paper.key)
