"""Identifiers made of several: names of cells and units."""

from __future__ import annotations


def join_ids(*parts: str | int) -> str:
    """Parts with slashes between: "alice/book". Different parts have different names.

    A slash or a backslash inside a part is escaped by a backslash: ("a/b", "c") is ``a\\/b/c``, ("a", "b/c") is ``a/b\\/c``.
    """
    return "/".join(str(part).replace("\\", "\\\\").replace("/", "\\/") for part in parts)
