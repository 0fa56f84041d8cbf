"""What a task hands to its components: read-only, and compared at its end if a foreign component ran.

NumPy arrays are made read-only where a task loads them. That stops mistakes, but a component can make an array writeable
again, and tensors and frames cannot be protected. So in a task with foreign components everything handed out is also
digested: before a component gets it, and at the end of the task.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, TypeVar

from cfbench_core.isolation.fingerprints import Leaf, fingerprint, freeze, is_foreign_model, leaves
from cfbench_core.isolation.functions import Functions, Place

T = TypeVar("T")

REMEMBERED = 12
"""Objects whose fingerprints stay in the process for the next task that hands them out."""

SHOWN = 3
"""The number of changed arrays that a message names."""


@dataclass
class _Protected:
    """An object that components receive.

    Attributes:
        value: the object. name: what people call it ("the model").
        prints: the fingerprint of each leaf by its path.
    """

    value: Any
    name: str
    prints: dict[str, object]


class _Task:
    """The task that this process computes.

    Attributes:
        watched: whether what it protects is compared at its end.
        protected: what its components receive.
        leaves: those that were digested, by ``id``, with their fingerprints; several objects may share an array.
    """

    def __init__(self, watched: bool = False) -> None:
        self.watched = watched
        self.protected: list[_Protected] = []
        self.leaves: dict[int, tuple[Leaf, object]] = {}

    def prints(self, value: Any) -> dict[str, object]:
        # The parts of a foreign model are its own business, but not what it has learned.
        searched = value.state() if is_foreign_model(value) else value
        return {path: self._print(leaf) for path, leaf in leaves(searched)}

    def _print(self, leaf: Leaf) -> object:
        if id(leaf) not in self.leaves:
            self.leaves[id(leaf)] = (leaf, fingerprint(leaf))
        return self.leaves[id(leaf)][1]


_task = _Task()
_frozen: dict[int, tuple[weakref.ref[Any], set[int]]] = {}
"""Lasting objects whose arrays are read-only by ``id``: the object, and the ids of all that was searched with it."""
_lasting: OrderedDict[int, _Protected] = OrderedDict()
"""Objects that stay in the process for the next task."""


def start(watch: bool) -> None:
    """Begins a task. With ``watch``, what :func:`protect` gets from now on is compared at its end."""
    global _task
    _task = _Task(watch)


def protect(name: str, value: T, lasting: bool = True) -> T:
    """The value itself, its arrays read-only; to be called before a component receives it.

    Args:
        name: what people call it: "the model".
        lasting: it may serve further tasks of this process.
    """
    if not is_foreign_model(value):
        _freeze(value, lasting)
    if _task.watched and value is not None:
        note_functions()  # of modules that were imported to make the value
        entry = _lasting.pop(id(value), None) if lasting else None
        if entry is None:
            entry = _Protected(value, name, _task.prints(value))
        if lasting:
            _lasting[id(value)] = entry
        _task.protected.append(entry)
    return value


def _freeze(value: object, lasting: bool) -> None:
    """Makes the arrays in an object read-only.

    A lasting object is searched once, and so are its parts when a later object refers to them: searching costs more than
    most tasks may. A new part that gets the ``id`` of a part that is gone is missed here, not by the fingerprints.
    """
    for key, (reference, _) in list(_frozen.items()):
        if reference() is None:
            del _frozen[key]
    if id(value) in _frozen:
        return
    known = {part for _, parts in _frozen.values() for part in parts}
    found = set(known)
    freeze(value, found)
    if lasting and found > known:
        with contextlib.suppress(TypeError):  # an object without weak references is searched each time
            _frozen[id(value)] = (weakref.ref(value), found - known)


def changes() -> list[str]:
    """What was changed of what :func:`protect` got, ``["the model (item_factors)"]``. Ends the task."""
    protected = _task.protected
    start(watch=False)
    found = []
    reported: set[object] = set()
    for entry in protected:
        prints = _task.prints(entry.value)
        changed = [path for path, old in entry.prints.items() if prints.get(path) != old]
        new = [path for path in changed if (path not in prints) or prints[path] not in reported]
        reported |= {prints[path] for path in changed if path in prints}
        entry.prints = prints
        if new:
            shown = ", ".join(path or "its values" for path in new[:SHOWN])
            found.append(f"{entry.name} ({shown}{', ...' if len(new) > SHOWN else ''})")
    start(watch=False)
    while len(_lasting) > REMEMBERED:
        _lasting.popitem(last=False)
    return found


def forget() -> None:
    """Releases all objects that were handed out."""
    start(watch=False)
    _lasting.clear()
    _frozen.clear()


def note_functions() -> None:
    """Notes the functions of modules that were imported since the last call, to be compared at the end of a task."""
    _functions.note()


def replaced_functions() -> list[Place]:
    """Functions that were replaced since they were noted."""
    return _functions.replaced()


def restore_functions() -> None:
    """Puts replaced functions back."""
    _functions.restore()


_functions = Functions()
