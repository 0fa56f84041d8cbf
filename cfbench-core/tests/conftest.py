"""Shared by the tests of the core: a tiny suite of its own, so that nothing here knows of recommenders."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cfbench_core.registry import Component, Plugin, Registry

sys.path.insert(0, str(Path(__file__).parent / "samples"))  # toy_suite, importable in workers too


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Every process that a test starts ends with it."""
    import child_processes

    yield
    child_processes.end_all()


@pytest.fixture
def registry() -> Registry:
    """The registry of the toy suite and of the core's own executors."""
    import toy_suite

    import cfbench_core.plugin

    return Registry(
        [
            Plugin(
                "toy",
                "cfbench-toy",
                "1.0",
                "toy_suite",
                tuple(Component(s, "cfbench-toy", "1.0") for s in toy_suite.SPECS),
            ),
            Plugin(
                "core",
                "cfbench-core",
                "0.1.0",
                "cfbench_core.plugin",
                tuple(
                    Component(s, "cfbench-core", "0.1.0") for s in cfbench_core.plugin.cfbench_components()
                ),
            ),
        ]
    )
