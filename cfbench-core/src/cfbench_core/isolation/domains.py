"""Whose code a task runs. Tasks share a worker process only if it is the same code.

The *domain* of a task names the top-level packages of other distributions among its components, ``"my_package"``; it is
empty if all code is the project's own. A component of another distribution may change anything in its process, so the
scores of its explanations are computed in a process where it was never imported.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfbench_core.isolation.packages import foreign_package
from cfbench_core.stages import Stage, models_of, references


def domain(stage: Stage) -> str:
    """The foreign packages whose code a stage runs, sorted and joined by ``+``; empty if there are none."""
    return "+".join(sorted(set(filter(None, map(foreign_package, _code(stage))))))


def _code(stage: Stage) -> Iterator[str]:
    """References to the code of a stage and of the models that it restores."""
    yield stage.target
    yield from stage.steps.values()
    yield from references(stage.parameters)
    for model in models_of(stage.inputs).values():
        yield from references(model)
