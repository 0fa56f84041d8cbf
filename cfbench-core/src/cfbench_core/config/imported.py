"""A spec for a class of the user's own, that no plugin announces: ``import: my_lab.explainers:Ours``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.specs import Capabilities, ComponentSpec


def imported_spec(target: str, kind: str, suite_name: str, suite: Any) -> ComponentSpec:
    """The spec of the class that ``target`` (``"module:Class"``) names, as a component of a suite.

    Its attributes ``provides`` and ``needs``, or a ``SPEC`` in its module, state its capabilities; otherwise they
    follow from its methods, as the suite's contract for the kind says.

    Raises:
        UserError: if it cannot be imported, or lacks a method that the contract requires; names the method.
    """
    if target.count(":") != 1:
        raise UserError(f"{target!r} must be 'package.module:Class'")
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the user's own module: whatever it raises is the user's to see
        raise UserError(f"cannot import {module_name}: {type(error).__name__}: {error}") from error
    implementation = getattr(module, class_name, None)
    if implementation is None:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise UserError(f"{module_name} has no {class_name!r}.{did_you_mean(class_name, names)}")
    provides, needs = _capabilities(implementation, target, kind, suite)
    declared = _declared(module, target)
    if declared is not None:
        provides, needs = declared.provides, declared.needs
    return ComponentSpec(
        id=f"{suite_name}/{kind}/{_kebab(class_name)}",
        summary=(implementation.__doc__ or target).strip().splitlines()[0],
        target=target,
        config=f"{module_name}:Config" if hasattr(module, "Config") else None,
        papers=declared.papers if declared is not None else (),
        provides=getattr(implementation, "provides", provides),
        needs=getattr(implementation, "needs", needs),
    )


def _declared(module: Any, target: str) -> ComponentSpec | None:
    """The spec that the module declares for the class, if it does."""
    specs = [getattr(module, "SPEC", None), *getattr(module, "SPECS", ())]
    return next((spec for spec in specs if isinstance(spec, ComponentSpec) and spec.target == target), None)


def _capabilities(
    implementation: type, target: str, kind: str, suite: Any
) -> tuple[Capabilities, Mapping[str, Capabilities]]:
    """What a class provides and needs, derived from its methods by the suite's contract for its kind.

    A suite with rules of its own has a method ``imported(kind, implementation)`` that returns both.
    """
    contract = getattr(suite, "contracts", {}).get(kind)
    problem = contract.problem(implementation, kind) if contract is not None else ""
    if problem:
        raise UserError(f"{target}: {problem}")
    if hasattr(suite, "imported"):
        provides, needs = suite.imported(kind, implementation)
        return provides, needs
    return (contract.capabilities(implementation), contract.needs) if contract is not None else ({}, {})


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()
