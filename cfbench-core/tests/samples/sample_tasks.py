"""Work on the functions of :mod:`executor_stages`."""

from __future__ import annotations

from cfbench_core.hashing import digest
from cfbench_core.stages import Task


def task(
    function: str,
    parameters: dict[str, object] | None = None,
    inputs: dict[str, Task] | None = None,
    label: str | None = None,
) -> Task:
    """A piece of work, named by its function unless there is a ``label``."""
    inputs = inputs or {}
    key = digest([function, parameters, {role: task.key for role, task in inputs.items()}])
    return Task(
        key=key,
        stage_key=key,
        kind="scores",
        label=label or function,
        target=f"executor_stages:{function}",
        parameters=parameters or {},
        inputs={role: task.key for role, task in inputs.items()},
        input_kinds={role: task.kind for role, task in inputs.items()},
        seed=0,
    )
