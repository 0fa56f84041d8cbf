"""Which top-level packages belong to the project, and which to other distributions."""

from __future__ import annotations

import functools
import re
from importlib import metadata

from packaging.requirements import Requirement


@functools.cache
def own_packages() -> frozenset[str]:
    """The packages of cfbench-core, of the distributions that its extras name, and of those that these require."""
    found: set[str] = set()
    waiting = ["cfbench-core"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _required(name)
    return frozenset(re.sub(r"[-.]+", "_", name) for name in found)


def _required(distribution: str) -> list[str]:
    """The distributions of cfbench that another one requires or names in an extra; none if it is not installed."""
    try:
        lines = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    return [name for line in lines if (name := Requirement(line).name).startswith("cfbench-")]


def foreign_package(reference: str) -> str:
    """The top-level package of ``"package.module:Name"``; empty if it is the project's own."""
    package = reference.partition(":")[0].partition(".")[0]
    return "" if package in own_packages() else package
