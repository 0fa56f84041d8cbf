"""What the core itself registers: its executors and stores."""

from __future__ import annotations

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return component_specs(__package__, "executor", "store")
