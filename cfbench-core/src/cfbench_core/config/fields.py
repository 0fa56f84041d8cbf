"""Annotations of configuration fields, and a description of them for people."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Range:
    """Bounds of a number: ``minimum`` and ``maximum`` belong to it, ``above`` and ``below`` do not."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        low = f">= {self.minimum:g}" if self.minimum is not None else ""
        low = f"> {self.above:g}" if self.above is not None else low
        high = f"<= {self.maximum:g}" if self.maximum is not None else ""
        high = f"< {self.below:g}" if self.below is not None else high
        return " and ".join(bound for bound in (low, high) if bound)


@dataclass(frozen=True)
class Help:
    """A few words on a field, for ``cfbench describe``."""

    text: str


@dataclass(frozen=True)
class Search:
    """What ``cfbench tune`` tries for a field: a number between ``low`` and ``high``, or one of ``choices``.

    ``log``: on a logarithmic scale. A field without this annotation is not searched.
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class OfKind:
    """Marks a field that names components: of which kind."""

    kind: str


@dataclass(frozen=True)
class InputFile:
    """Marks a string that is the path of a file that must exist; its content counts in what is cached."""


@dataclass(frozen=True)
class Distinct:
    """Marks a list in which nothing may stand twice. Lists of choices (``Literal``) need no mark for that."""


@dataclass(frozen=True)
class CodeReference:
    """Marks a string that names code, ``"package.module:name"``: the user's own, or a class of one of ``libraries``."""

    libraries: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnvironmentVariable:
    """Marks a string that names the environment variable of a secret, see ``redaction.py``."""


@dataclass(frozen=True)
class FieldInfo:
    """One configuration key, for people."""

    name: str
    type: str
    default: str
    range: str
    help: str


@functools.cache
def hints_of(config: type) -> Mapping[str, Any]:
    """The annotations of a configuration dataclass, by field, evaluated once per process.

    Raises:
        NameError: when one names what does not exist at run time.
    """
    return MappingProxyType(get_type_hints(config, include_extras=True))


def fields_of(config: type) -> list[FieldInfo]:
    """The keys of a configuration dataclass, nested ones as ``outer.inner``."""
    hints = hints_of(config)
    nested = nested_of(config)
    described = []
    for field in dataclasses.fields(config):
        _, notes = unwrap(hints[field.name])
        if field.name in nested:
            inners = fields_of(nested[field.name])
            described += [dataclasses.replace(inner, name=f"{field.name}.{inner.name}") for inner in inners]
            continue
        described.append(
            FieldInfo(
                field.name,
                type_name(hints[field.name]),
                _default_text(field),
                str(notes.get(Range, "")),
                notes[Help].text if Help in notes else "",
            )
        )
    return described


def nested_of(config: type) -> dict[str, type]:
    """The keys of a configuration dataclass whose values are configurations themselves, and their classes."""
    plain = {name: unwrap(hint)[0] for name, hint in hints_of(config).items()}
    return {
        name: found
        for name, found in plain.items()
        if dataclasses.is_dataclass(found) and isinstance(found, type) and not _is_reference(found)
    }


def unwrap(hint: Any) -> tuple[Any, Mapping[type, Any]]:
    """A type without ``Annotated``, and its annotations by their class."""
    if get_origin(hint) is Annotated:
        plain, *notes = get_args(hint)
        return plain, {type(note): note for note in notes}
    return hint, {}


def type_name(hint: Any) -> str:
    """A type as people say it: "whole number", "one of a, b", "list of numbers"."""
    plain, notes = unwrap(hint)
    origin = get_origin(plain)
    if OfKind in notes:
        several = "tuple" in str(plain)
        return f"list of {notes[OfKind].kind}s" if several else notes[OfKind].kind
    if InputFile in notes:
        return "file"
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(plain))
    if origin in (Union, types.UnionType):
        return " or ".join("none" if arg is types.NoneType else type_name(arg) for arg in get_args(plain))
    if origin is tuple:
        return f"list of {type_name(get_args(plain)[0])}"
    if origin in (dict, Mapping) or plain is dict:
        return "mapping"
    return {int: "whole number", float: "number", str: "text", bool: "true or false"}.get(
        plain, getattr(plain, "__name__", str(plain))
    )


def _default_text(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "(required)"
    if isinstance(value, tuple):
        return "[" + ", ".join(str(item) for item in value) + "]"
    if isinstance(value, bool):  # 1 == True, but it is not "true"
        return "true" if value else "false"
    if _is_reference(type(value)):
        return str(value.label)
    return "none" if value is None else str(value)


def _is_reference(plain: type) -> bool:
    return plain.__name__ == "ConfiguredComponent"
