"""What the core itself brings: its executors."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="core/executor/inline",
            summary="In the process itself, one piece of work after the other; no limits; for debugging",
            target="cfbench_core.executors.inline:InlineExecutor",
        ),
        ComponentSpec(
            id="core/executor/process",
            summary="In worker processes, each piece of work with a deadline and a memory limit",
            target="cfbench_core.executors.process:ProcessExecutor",
        ),
    ]
