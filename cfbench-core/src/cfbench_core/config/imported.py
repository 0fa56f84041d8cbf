"""A spec for a user-defined class that no plugin announces: ``import: my_lab.explainers:Ours``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

from cfbench_core.config.code_references import origin
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plain_text import one_line
from cfbench_core.specs import Capabilities, ComponentSpec


def imported_spec(target: str, kind: str, suite_name: str, suite: Any) -> ComponentSpec:
    """The spec of the class that ``target`` (``"module:Class"``) names, as a component of a suite.

    Its attributes ``provides`` and ``needs``, or a ``SPEC`` in its module, state its capabilities; otherwise they
    follow from its methods, as the suite's contract for the kind says.

    Raises:
        UserError: if it is in the standard library, cannot be imported, is no class, or lacks a method that the
            contract requires; names the method.
    """
    module_name, _, class_name = target.partition(":")
    if target.count(":") != 1 or not module_name or not class_name.isidentifier():
        raise UserError(f"{one_line(target, 100)!r} must be 'package.module:Class'")
    if origin(module_name) == "standard library":
        raise UserError(
            f"{target!r} is in Python's standard library; 'import' takes a class of your own"
            " (a module of your own with such a name must be renamed)"
        )
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's own module: whatever it raises is the user's to see
        reason = one_line(f"{type(error).__name__}: {error}", 500)
        raise UserError(f"cannot import {module_name}: {reason}") from error
    implementation = getattr(module, class_name, None)
    if implementation is None:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise UserError(f"{module_name} has no {class_name!r}.{did_you_mean(class_name, names)}")
    try:
        return _spec(module, implementation, target, kind, suite_name, suite)
    except (TypeError, ValueError, AttributeError) as error:  # what it declares is not what a spec may hold
        raise UserError(f"{target}: what it declares cannot be used: {one_line(str(error), 300)}") from error


def _spec(
    module: Any, implementation: Any, target: str, kind: str, suite_name: str, suite: Any
) -> ComponentSpec:
    provides, needs = _capabilities(implementation, target, kind, suite)
    if not isinstance(implementation, type):
        raise UserError(f"{target} is no class but {type(implementation).__name__}; 'import' takes a class")
    declared = _declared(module, target)
    if declared is not None:
        provides, needs = declared.provides, declared.needs
    return ComponentSpec(
        id=f"{suite_name}/{kind}/{_kebab(target.partition(':')[2])}",
        summary=one_line((implementation.__doc__ or "").strip().partition("\n")[0]) or target,
        target=target,
        config=f"{target.partition(':')[0]}:Config" if hasattr(module, "Config") else None,
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
