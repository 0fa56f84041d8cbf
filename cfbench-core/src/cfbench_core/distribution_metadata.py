"""Fields of installed distributions. Half an installation, or one that was just removed, may have none.

The standard library gives None for what is absent. The package importlib-metadata, which takes over the search for
distributions once anything has imported it, raises an error instead.
"""

from __future__ import annotations

from importlib import metadata


def field_of(distribution: metadata.Distribution | None, name: str) -> str | None:
    """A field such as "Name" or "Version"; None if the field, or the whole file, is absent."""
    try:
        return distribution.metadata[name] if distribution is not None else None
    except (KeyError, FileNotFoundError):
        return None


def requirements_of(distribution: metadata.Distribution) -> list[str]:
    """The lines of what it needs; none if it states nothing."""
    try:
        return distribution.requires or []
    except FileNotFoundError:
        return []
