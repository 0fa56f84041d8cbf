"""Checks a component of a test file with the suite's conformance kit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import Report, check_component
from cfbench_recsys.testing import checks


def check(
    kind: str, cls: type, provides: Mapping[str, Any], needs: Mapping[str, Any] | None = None
) -> Report:
    spec = ComponentSpec(
        id=f"recsys/{kind}/{cls.__name__.lower()}",
        summary="An example",
        target=f"{cls.__module__}:{cls.__name__}",
        provides={axis: frozenset(values) for axis, values in provides.items()},
        needs=needs or {},
    )
    return check_component(spec, checks=checks[kind])


def result(report: Report, name: str) -> tuple[str, str]:
    (found,) = [one for one in report.results if one.check == name]
    return found.result, found.reason
