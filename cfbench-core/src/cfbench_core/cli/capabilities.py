"""Capabilities for people: which axes a suite has, in which order, and what stands in a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cfbench_core.registry import Component, Registry
from cfbench_core.specs import Capabilities, ComponentSpec

Axes = Mapping[str, Sequence[str]]
"""Axes in the order of columns, each with its values in the order in which people say them."""


def axes_of(suite: str, registry: Registry) -> Axes:
    """The axes that a suite's spec names (``details["axes"]``); else all that its components mention."""
    declared = next((c.spec.details.get("axes") for c in registry.components("suite", suite)), None)
    if declared:
        return {str(axis): tuple(known) for axis, known in declared.items()}
    found: dict[str, set[str]] = {}
    for component in registry.components(suite=suite):
        for axis, known in component.spec.provides.items():
            found.setdefault(axis, set()).update(known)
    return {axis: sorted(known) for axis, known in found.items()}


def values(capabilities: Capabilities, axis: str, axes: Axes) -> str:
    """ "implicit explicit", or "-" where there is nothing."""
    return " ".join(_ordered(capabilities.get(axis, ()), axes.get(axis, ()))) or "-"


def needed(spec: ComponentSpec, axes: Axes) -> str:
    """All that a component needs of its partners, in one column: "gradients"."""
    return (
        " ".join(
            value
            for partner in spec.needs.values()
            for axis, wanted in partner.items()
            for value in _ordered(wanted, axes.get(axis, ()))
        )
        or "-"
    )


def used(components: Iterable[Component], axes: Axes) -> list[str]:
    """The axes along which any of the components says something."""
    mentioned = {axis for component in components for axis in component.spec.provides}
    return [axis for axis in axes if axis in mentioned]


def _ordered(found: Iterable[str], order: Sequence[str]) -> list[str]:
    place = {value: number for number, value in enumerate(order)}
    return sorted(found, key=lambda value: (place.get(value, len(place)), value))
