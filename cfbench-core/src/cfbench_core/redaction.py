"""Secrets of the environment: which variables a configuration may name, and their values out of every text.

A configuration names the environment variable of a key, never the key, and may name only variables whose names end in
``_API_KEY``, or that the user allowed (``--allow-env NAME``): a configuration from a stranger must not send other
variables anywhere. See ``docs/explanation/security.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from cfbench_core.errors import UserError

SUFFIX = "_API_KEY"
SHORTEST = 8
"""Characters of a value below which it is not replaced: it would be found in texts that have nothing to do with it."""

_read: dict[str, str] = {}  # values that were read in this process, with the names of their variables


def variable_problem(name: str, allowed: Collection[str]) -> str:
    """Why a configuration may not name an environment variable; empty if it may. Does not repeat what may be a key."""
    rule = f"must be the name of an environment variable that ends in {SUFFIX}"
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        return f"{rule}, never the key itself (the value is not repeated here, in case it is one)"
    if name in allowed or (name.endswith(SUFFIX) and name != SUFFIX):
        return ""
    if name in os.environ:
        return f"{rule}, or that is allowed by --allow-env {name}; got {name!r}"
    return (
        f"{rule}, or one that --allow-env NAME allows (the value is not repeated here, in case it is a key)"
    )


def secret(name: str) -> str:
    """The value of an environment variable, which :func:`redacted` removes from then on.

    Raises:
        UserError: if it is not set, or cannot stand in a header of HTTP.
    """
    value = os.environ.get(name, "").strip()
    if not value:
        raise UserError(f"the environment variable {name} is not set")
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise UserError(f"the environment variable {name} holds characters that no key has")
    _read[value] = name
    return value


def remember(names: Collection[str]) -> None:
    """Removes the values of these variables from texts too, where they are set."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            _read[value] = name


def redacted(text: str) -> str:
    """The text with ``[$NAME]`` in place of every secret: values that were read, and those of all ``*_API_KEY``."""
    for value, name in _secrets().items():
        text = text.replace(value, f"[${name}]")
    return text


def held_secret(text: str) -> str:
    """The name of an environment variable whose secret value a text holds; empty if there is none."""
    return next((name for value, name in _secrets().items() if value in text), "")


def _secrets() -> dict[str, str]:
    found = {value.strip(): name for name, value in os.environ.items() if name.endswith(SUFFIX)}
    found.update(_read)
    return {value: name for value, name in found.items() if len(value) >= SHORTEST}
