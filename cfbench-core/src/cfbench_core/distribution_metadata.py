"""Fields of installed distributions. Half an installation, or one that was just removed, may have none.

The standard library gives None for what is absent. The package importlib-metadata, which takes over the search for
distributions once anything has imported it, raises an error instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata


def field_of(distribution: metadata.Distribution | None, name: str) -> str | None:
    """A field such as "Name" or "Version"; None if the field, or the whole file, is absent."""
    return fields_of(distribution).get(name)


def fields_of(distribution: metadata.Distribution | None) -> Mapping[str, str]:
    """All fields, each with its first value, without the description below them; none if the file is absent."""
    found: dict[str, str] = {}
    for name, value in _lines_of(distribution):
        found.setdefault(name, value)
    return found


def requirements_of(distribution: metadata.Distribution) -> list[str]:
    """The lines of what it needs; none if it states nothing."""
    found = [value for name, value in _lines_of(distribution) if name == "Requires-Dist"]
    if found:
        return found
    try:
        return (
            distribution.requires or []
        )  # of an installation by setuptools alone, which has a file of its own for them
    except FileNotFoundError:
        return []


def _lines_of(distribution: metadata.Distribution | None) -> list[tuple[str, str]]:
    """The fields with their values, in the order of the file.

    The parser of the standard library reads the description below them too, and takes ten times as long.
    """
    if distribution is None:
        return []
    # The last is an installation by distutils, as of Linux distributions: a file *.egg-info in place of a folder.
    files = (distribution.read_text(name) for name in ("METADATA", "PKG-INFO", ""))
    text = next(filter(None, files), "")
    found: list[tuple[str, str]] = []
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t") and found:  # it continues the value before
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif colon:
            found.append((name, value.strip()))
    return found
