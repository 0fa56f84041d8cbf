"""What is searched: the options of a configuration that are annotated with ``Search``."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from cfbench_core.config.fields import Range, Search, hints_of, unwrap
from cfbench_core.hashing import canonical_json

DIGITS = 4
"""Numbers are searched to so many significant digits: a configuration is read by people."""


@dataclass(frozen=True)
class Dimension:
    """One option and the values that are tried: a number from ``low`` to ``high``, or one of ``choices``.

    ``name`` of an option inside a nested configuration is ``outer.inner``.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()

    def __contains__(self, value: object) -> bool:
        if self.choices:
            return value in self.choices
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        return self.low <= value <= self.high and not (self.whole and value != int(value))

    def __str__(self) -> str:
        if self.choices:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        return f"{self.low:g} to {self.high:g}{', logarithmic' if self.log else ''}"

    def restored(self, value: Any) -> Any:
        """A value that was JSON: a choice may be a tuple."""
        same = (choice for choice in self.choices if canonical_json(choice) == canonical_json(value))
        return next(same, value)

    def rounded(self, value: float) -> float | int:
        """A number as it is tried."""
        if self.whole:
            return int(value)
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def at_its_edge(self, value: object) -> bool:
        """Whether a number stands at the edge of the searched range, so that something better may lie beyond."""
        return not self.choices and value in (self.low, self.high)


def search_space(config: type, outer: str = "") -> tuple[Dimension, ...]:
    """The dimensions of a configuration dataclass, in its order.

    Raises:
        ValueError: when an annotation cannot be understood; the message is for the component's author.
    """
    return tuple(_dimensions(config, outer))


def _dimensions(config: type, outer: str) -> Iterator[Dimension]:
    hints = hints_of(config)
    for option in dataclasses.fields(config):
        plain, notes = unwrap(hints[option.name])
        name = f"{outer}{option.name}"
        if Search in notes:
            yield _dimension(name, plain, notes)
        elif isinstance(plain, type) and dataclasses.is_dataclass(plain):
            yield from _dimensions(plain, f"{name}.")


def _dimension(name: str, hint: Any, notes: Mapping[type, Any]) -> Dimension:
    search: Search = notes[Search]
    choices = search.choices or _all_values(hint)
    if choices:
        return Dimension(name, choices=choices)
    kinds = _kinds(hint)
    if kinds not in ({int}, {float}):
        raise ValueError(f"option {name!r}: Search needs choices, for it is not a number")
    if search.low is None or search.high is None or not search.low < search.high:
        raise ValueError(f"option {name!r}: Search needs low < high, or choices")
    if search.log and search.low <= 0:
        raise ValueError(f"option {name!r}: Search(log=True) needs low > 0")
    whole = kinds == {int}
    if whole and (search.low != int(search.low) or search.high != int(search.high)):
        raise ValueError(f"option {name!r}: Search needs whole numbers")
    bounds = notes.get(Range, Range())
    if search.low not in bounds or search.high not in bounds:
        raise ValueError(f"option {name!r}: Search goes beyond its Range ({bounds})")
    return Dimension(name, search.low, search.high, search.log, whole)


def _kinds(hint: Any) -> set[Any]:
    """{float} of ``float | None``."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return {member for member in members if member is not types.NoneType}


def _all_values(hint: Any) -> tuple[Any, ...]:
    """Of a Literal or a bool."""
    kinds = _kinds(hint)
    if kinds == {bool}:
        return (False, True)
    only = next(iter(kinds)) if len(kinds) == 1 else None
    return get_args(only) if get_origin(only) is Literal else ()
