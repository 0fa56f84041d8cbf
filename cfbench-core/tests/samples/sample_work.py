"""Work on the functions of :mod:`executor_stages`."""

from __future__ import annotations

from cfbench_core.hashing import digest
from cfbench_core.stages import Work


def work(
    function: str,
    parameters: dict[str, object] | None = None,
    inputs: dict[str, Work] | None = None,
    label: str | None = None,
) -> Work:
    """A piece of work, named by its function unless there is a ``label``."""
    inputs = inputs or {}
    key = digest([function, parameters, {role: work.key for role, work in inputs.items()}])
    return Work(
        key=key,
        stage_key=key,
        kind="scores",
        label=label or function,
        target=f"executor_stages:{function}",
        parameters=parameters or {},
        inputs={role: work.key for role, work in inputs.items()},
        input_kinds={role: work.kind for role, work in inputs.items()},
        seed=0,
    )
