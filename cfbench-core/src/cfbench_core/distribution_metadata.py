"""Fields of installed distributions. Half an installation, or one that was just removed, may have none.

The standard library gives None for what is absent. The package importlib-metadata, which takes over the search for
distributions once anything has imported it, raises an error instead.
"""

from __future__ import annotations

from email import message_from_string
from email.message import Message
from importlib import metadata


def field_of(distribution: metadata.Distribution | None, name: str) -> str | None:
    """A field such as "Name" or "Version"; None if the field, or the whole file, is absent."""
    return fields_of(distribution).get(name)


def fields_of(distribution: metadata.Distribution | None) -> Message:
    """All fields, without the description below them, which is most of the file; none if it is absent."""
    if distribution is None:
        return Message()
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    return message_from_string(text.partition("\n\n")[0])


def requirements_of(distribution: metadata.Distribution) -> list[str]:
    """The lines of what it needs; none if it states nothing."""
    try:
        return distribution.requires or []
    except FileNotFoundError:
        return []
