"""The suite that a command means: the one that was named, or the first that is installed."""

from __future__ import annotations

from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.registry import Registry, installation_advice
from cfbench_core.specs import resolve


def the_suite(name: str | None, registry: Registry) -> Any:
    """The implementation of a suite.

    Raises:
        UserError: when none is installed, or none of that name; it says what to install.
    """
    if name is None:
        suites = registry.suites()
        if not suites:
            raise UserError(f"no suite is installed. Try: {installation_advice()}")
        name = next(iter(registry.suites_to_run()), suites[0])
    return resolve(registry.find(name, "suite", name).spec.target)()
