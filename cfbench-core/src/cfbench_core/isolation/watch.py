"""Watches one task: what its components changed that is not theirs, and whether the process is still fit for another.

Around a task whose components all belong to the project only the arrays are read-only and the settings restored.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from cfbench_core.child_processes import children_of
from cfbench_core.errors import UserError
from cfbench_core.isolation import protection
from cfbench_core.isolation.packages import foreign_package, own_packages
from cfbench_core.specs import resolve
from cfbench_core.stages import Task

SHOWN = 3
"""The number of replaced functions that a message names."""


class ComponentChangedInputsError(UserError):
    """A component changed what it was given, or functions that others use."""


class Watch:
    """One task in this process.

    Attributes:
        unfit: whether the process must not compute anything else.
    """

    def __init__(self, task: Task) -> None:
        self.unfit = False
        self._task = task
        self._process = os.getpid()
        self._threads: set[threading.Thread] = set()
        self._children: set[int] = set()
        protection.start(watch=bool(task.domain))

    def begin(self) -> None:
        """Imports the suite's code, and notes the functions as they are: before a foreign module is imported."""
        if not self._task.domain:
            return
        for reference in (self._task.target, *self._task.steps.values()):
            if not foreign_package(reference):
                resolve(reference)
        protection.note_functions()
        self._threads, self._children = _threads(), _children()

    def leave_if_forked(self) -> None:
        """Ends this process if a component created it by ``os.fork()`` and then returned in both processes."""
        if os.getpid() != self._process:
            os._exit(0)

    def check(self) -> None:
        """Compares what was handed out, and the functions.

        Raises:
            ComponentChangedInputsError: if a component changed something; the process is unfit then.
        """
        if not self._task.domain or self.unfit:
            return
        changed = protection.changes()
        replaced = protection.replaced_functions()
        if _threads() - self._threads or _children() - self._children:
            self.unfit = True  # they may still change something
        if not changed and not replaced:
            return
        self.unfit = True
        parts = [f"changed {', '.join(changed)}"] if changed else []
        if replaced:
            more = ", ..." if len(replaced) > SHOWN else ""
            parts.append(f"replaced {', '.join(map(str, replaced[:SHOWN]))}{more}")
        names = " or ".join(foreign_components(self._task.parameters)) or self._task.domain
        raise ComponentChangedInputsError(f"{names} {' and '.join(parts)}, which other components use")


def foreign_components(parameters: Any) -> list[str]:
    """ "explainer mine": the components of other distributions among the parameters of a stage."""
    return list(dict.fromkeys(_foreign_components(parameters)))


def _foreign_components(parameters: Any) -> Iterator[str]:
    if isinstance(parameters, Mapping):
        target, component = parameters.get("target"), parameters.get("component")
        if isinstance(target, str) and isinstance(component, str) and foreign_package(target):
            yield " ".join(component.split("/")[-2:])
        for inner in parameters.values():
            yield from _foreign_components(inner)
    elif isinstance(parameters, (list, tuple)):
        for inner in parameters:
            yield from _foreign_components(inner)


def _threads() -> set[threading.Thread]:
    """The threads of this process, without cfbench's own."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("cfbench-")}


def _children() -> set[int]:
    """The identifiers of all processes that this one, or one of them, started."""
    import psutil

    return {child.pid for child in children_of(psutil.Process())}


def clean_up() -> None:
    """Puts back the functions of an unfit process that cannot be replaced, and drops all that its modules cached."""
    protection.restore_functions()
    protection.forget()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in own_packages():
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()
