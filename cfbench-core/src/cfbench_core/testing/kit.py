"""Runs the checks of a component: those of every component, of its kind, and of its suite."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from cfbench_core.config.imported import imported_spec
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.registry import Registry, installed
from cfbench_core.specs import ComponentSpec, resolve
from cfbench_core.testing.checks import Check, CheckResult, Misbehaviour, NotApplicable, Report, Subject
from cfbench_core.testing.every_component import CHECKS
from cfbench_core.testing.kinds import KIND_CHECKS, contract_check
from cfbench_core.threads import limited_threads


def check_component(
    component: ComponentSpec | Subject | str,
    *,
    suite: str | None = None,
    kind: str = "explainer",
    options: Any = None,
    waive: Mapping[str, str] | None = None,
    checks: Sequence[Check] | None = None,
    registry: Registry | None = None,
) -> Report:
    """Runs every check that its suite has for a component's kind.

    Args:
        component: a spec, or the id of an installed component ("recsys/explainer/lime-rs", "lime-rs"), or a
            class of
            one's own, "package.module:Class".
        suite, kind: of a class of one's own; the suite may be left out when only one is installed.
        options: its configuration; the defaults when None.
        waive: failing checks to accept, by name, each with a reason.
        checks: in place of those of the suite.
        registry: where ids and suites are looked up; what is installed when None.

    Raises:
        UserError: for an unknown component, a waiver of an unknown check, or a waiver without a reason.
    """
    registry = registry or installed()
    if isinstance(component, str) and ":" in component:
        component = _imported(component, kind, suite, registry)
    subject = _subject(component, options, registry)
    chosen = checks_for(subject, registry=registry) if checks is None else list(checks)
    waivers = _valid_waivers(waive or {}, chosen)
    results = tuple(_run(check, subject, waivers.get(check.name)) for check in chosen)
    return Report(subject.spec.id, results)


def checks_for(component: ComponentSpec | Subject | str, *, registry: Registry | None = None) -> list[Check]:
    """The checks that :func:`check_component` runs: of every component, of its kind, of its suite."""
    spec = _subject(component, None, registry).spec
    contract = contract_check(spec, registry or installed())
    of_kind = KIND_CHECKS.get(spec.kind, ())
    return [*CHECKS, contract, *of_kind, *_suite_checks(spec, registry or installed())]


def verify(
    check: Check,
    component: ComponentSpec | Subject | str,
    *,
    options: Any = None,
    waive: Mapping[str, str] | None = None,
    registry: Registry | None = None,
) -> None:
    """One check, inside a pytest test, which it fails, or skips with the reason (waived, not applicable)."""
    import pytest

    subject = _subject(component, options, registry)
    waivers = waive or {}
    _valid_waivers({name: reason for name, reason in waivers.items() if name == check.name}, [check])
    result = _run(check, subject, waivers.get(check.name))
    if result.result == "failed":
        raise Misbehaviour(f"{subject.spec.id}: {check.name}: {result.reason}\n{result.traceback}")
    if result.result != "passed":
        pytest.skip(f"{result.result}: {result.reason}")


def _subject(component: ComponentSpec | Subject | str, options: Any, registry: Registry | None) -> Subject:
    if isinstance(component, Subject):
        return component
    if isinstance(component, ComponentSpec):
        return Subject(component, options)
    found = (registry or installed()).by_id(component)
    if len(found) != 1:
        every = [known.spec.id for known in (registry or installed()).components()]
        ids = ", ".join(one.spec.id for one in found)
        hint = f"may be {ids}: say which" if found else f"is not installed.{did_you_mean(component, every)}"
        raise UserError(f"component {component!r} {hint}")
    return Subject(found[0].spec, options)


def _imported(target: str, kind: str, suite: str | None, registry: Registry) -> ComponentSpec:
    suites = registry.suites()
    if suite is None and len(suites) != 1:
        raise UserError(f"{target}: say of which suite it is: {' or '.join(suites) or 'none is installed'}")
    name = suite or suites[0]
    return imported_spec(target, kind, name, resolve(registry.find(name, "suite", name).spec.target)())


def _suite_checks(spec: ComponentSpec, registry: Registry) -> Sequence[Check]:
    if spec.suite == "core":
        return ()
    suite = registry.find(spec.suite, "suite", spec.suite).spec
    reference = suite.details.get("conformance")
    return resolve(reference).get(spec.kind, ()) if reference else ()


def _valid_waivers(waive: Mapping[str, str], checks: Sequence[Check]) -> Mapping[str, str]:
    names = [check.name for check in checks]
    for name, reason in waive.items():
        if name not in names:
            raise UserError(f"cannot waive {name!r}: there is no such check.{did_you_mean(name, names)}")
        if not reason.strip():
            raise UserError(f"cannot waive {name!r} without a reason")
    return waive


def _run(check: Check, subject: Subject, waiver: str | None) -> CheckResult:
    try:
        with limited_threads(1):  # as in a run; threads that wait for each other make small tensors slow
            check.run(subject)
    except NotApplicable as reason:
        return CheckResult(check.name, check.question, "not applicable", str(reason))
    except Exception as error:  # the component is somebody else's code: whatever it raises is its answer
        message = str(error) if isinstance(error, Misbehaviour) else f"{type(error).__name__}: {error}"
        if waiver is not None:
            return CheckResult(check.name, check.question, "waived", f"{waiver} ({message})")
        return CheckResult(check.name, check.question, "failed", message, traceback.format_exc())
    return CheckResult(check.name, check.question, "passed")
