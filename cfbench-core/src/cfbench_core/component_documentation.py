"""What a component documents about itself: its options, an example, its docstring and its partners.

Read without importing the implementation. ``cfbench describe`` and the pages of the documentation show it;
:func:`describe` is all of it at once.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from cfbench_core.config import ConfiguredComponent, FieldInfo, OfKind, fields_of, options_class
from cfbench_core.config.fields import hints_of, unwrap
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.presets import presets_of
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.reproduction_levels import level_or_problem
from cfbench_core.specs import CORE_KINDS, KINDS, Capabilities, ComponentSpec, lacking, resolve


def describe(id: str, registry: Registry | None = None) -> dict[str, Any]:
    """All that is known of a component: its specification, options, presets, partners and level of reproduction.

    Args:
        id: its name, or its full id (suite/kind/name) if the name is ambiguous.

    Raises:
        UserError: if there is no such component, or several.
    """
    registry = registry or installed()
    component = find_component(id, registry)
    level, _ = level_or_problem(component.spec)
    return {
        **vars(component.spec),
        "distribution": component.distribution,
        "distribution_version": component.distribution_version,
        "configuration": [dataclasses.asdict(key) for key in option_fields(component.spec)],
        "presets": {name: dataclasses.asdict(preset) for name, preset in presets_of(component.spec).items()},
        "compatible_with": {
            kind: [p.spec.name for p in fitting] for kind, fitting, _ in partners(component, registry)
        },
        "reproduction": dataclasses.asdict(level) if level else None,
        "text": docstring_of(component.spec.target),
    }


def find_component(id: str, registry: Registry) -> Component:
    """The component of this name or full id; of several with a name the suite.

    Raises:
        UserError: if there is none, or several.
    """
    found = registry.by_id(id)
    suites = [component for component in found if component.spec.kind == "suite"]
    if len(suites) == 1:
        return suites[0]  # some of its components, such as its viewer, may have its name
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(component.spec.id for component in found)
        raise UserError(f"{id!r} is ambiguous; it may be {ids}")
    if id in registry.conflicts():
        raise UserError(next(line for line in registry.problems() if line.startswith(id)))
    specs = [component.spec for component in registry.components()]
    known = [spec.id for spec in specs] if "/" in id else [spec.name for spec in specs]
    raise UserError(f"no component {id!r}.{did_you_mean(id, known)}  (cfbench list)")


def option_fields(spec: ComponentSpec) -> list[FieldInfo]:
    """The keys of its configuration; of a suite those of the whole document."""
    if spec.kind == "suite":
        return fields_of(resolve(spec.target).config)
    return fields_of(options_class(spec, "")) if spec.config else []


def partners(
    component: Component, registry: Registry
) -> Iterator[tuple[str, list[Component], dict[str, str]]]:
    """By kind: the compatible components, and why the others are not.

    Whoever states a need decides; kinds between which nobody needs anything are left out. On an axis along which
    both provide something (the scope of a recommender and of an explainer) they must have a value in common.
    """
    spec = component.spec
    kinds: dict[str, tuple[list[Component], dict[str, str]]] = {}
    for other in registry.components(suite=spec.suite):
        needs, needed_by = spec.needs.get(other.spec.kind), other.spec.needs.get(spec.kind)
        if needs is None and needed_by is None:
            continue
        fitting, reasons = kinds.setdefault(other.spec.kind, ([], {}))
        gap = (
            lacking(needs or {}, other.spec.provides)
            or lacking(needed_by or {}, spec.provides)
            or _nothing_in_common(spec.provides, other.spec.provides)
        )
        if gap:
            reasons[other.spec.name] = gap
        else:
            fitting.append(other)
    for kind in sorted(kinds, key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS)):
        yield kind, *kinds[kind]


def _nothing_in_common(ours: Capabilities, theirs: Capabilities) -> str:
    for axis in ours.keys() & theirs.keys():
        if not ours[axis] & theirs[axis]:
            return f"{axis} {', '.join(sorted(ours[axis]))}"
    return ""


def example_of(spec: ComponentSpec, registry: Registry) -> str:
    """The component in a configuration, every default written out."""
    if spec.kind == "suite":
        return f"suite: {spec.name}      # a whole example: cfbench init --suite {spec.name}"
    if spec.kind == "analysis":
        return f"cfbench analyse {spec.name} RUN"
    core = spec.kind in CORE_KINDS
    place, several = (spec.kind, False) if core else _configuration_key(spec, registry)
    if not place:
        return ""
    if not spec.config:
        return f"{place}: [{spec.name}]" if several else f"{place}: {spec.name}"
    options = [f"name: {spec.name}", *map(_key_line, dataclasses.fields(options_class(spec, "")))]
    starts = ("  - ", "    ") if several else ("  ", "  ")
    lines = [f"{starts[number > 0]}{option}" for number, option in enumerate(options)]
    return "\n".join([f"{place}:", *lines])


def _key_line(field: dataclasses.Field[Any]) -> str:
    """``samples: 500``, or a comment where there is no default."""
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return f"{field.name}:      # required"
    plain = (
        dataclasses.asdict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else value
    )
    plain = [*plain] if isinstance(plain, tuple) else plain
    text = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=1000)
    return f"{field.name}: {text.removesuffix('...' + chr(10)).strip()}"


def _configuration_key(spec: ComponentSpec, registry: Registry) -> tuple[str, bool]:
    """The key of the suite's configuration under which components of this kind stand, "explainers", and whether
    there may be several of them; "" where there is none."""
    if spec.suite not in registry.suites():
        return "", False
    config = resolve(registry.find(spec.suite, "suite", spec.suite).spec.target).config
    for name, hint in hints_of(config).items():
        plain, notes = unwrap(hint)
        if OfKind in notes and notes[OfKind].kind == spec.kind:
            return str(name), plain is not ConfiguredComponent
    return "", False


def docstring_of(target: str) -> str:
    """The text on top of the implementation's file, read and not imported."""
    try:
        found = importlib.util.find_spec(target.partition(":")[0])
    except ImportError:
        return ""
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return ""
    return ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8"))) or ""
