"""Whether another machine has the code and the libraries that a plan was made with.

The key of a result holds the digest of the code that computes it. A machine with other code would store its result under a
key that says otherwise, so a task that may be computed elsewhere carries a description of the code, and is refused where
that differs.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.code import closure
from cfbench_core.stages import Task, references


def code_of(task: Task) -> Mapping[str, Any]:
    """The digest of a task's code as it is in this process, and the minor versions of the libraries that it imports."""
    found = closure(task.target, *task.steps.values(), *sorted(set(references(task.parameters))))
    return {"digest": found.digest, "libraries": dict(found.libraries)}


def require_same_code(task: Task) -> None:
    """Compares ``task.code`` with what this process would run.

    Raises:
        UserError: if they differ; names the machine and the libraries.
    """
    if not task.code:
        return
    ours, theirs = code_of(task), task.code
    if ours == theirs:
        return
    names = sorted({*ours["libraries"], *theirs["libraries"]})
    differing = [
        f"{name} {ours['libraries'].get(name, 'missing')} instead of {theirs['libraries'].get(name, 'none')}"
        for name in names
        if ours["libraries"].get(name) != theirs["libraries"].get(name)
    ]
    what = ", ".join(differing) or "other code of cfbench, of a plugin or of your own"
    raise UserError(f"{platform.node()} has {what}; install there what the machine has that started the run")
