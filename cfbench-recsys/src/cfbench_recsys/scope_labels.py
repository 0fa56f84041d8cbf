"""Scopes as a configuration names them, and as labels of cells.

A configuration says ``user-only``, ``indirect``, ``k-hop``, ``full`` or ``{k-hop: 2}``. A label says all of it in one
word that files and tables can hold: ``k-hop-2``. Imports neither NumPy nor torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cfbench_core.errors import UserError

K_HOP = "k-hop"
DEFAULT_HOPS = 3
"""The levels of ``k-hop`` where none are named: those of CFExpRec."""


def scope_labels(entries: Iterable[str | Mapping[str, Any]]) -> tuple[str, ...]:
    """The labels of the scopes that a configuration names, for example ("user-only", "k-hop-3").

    Raises:
        UserError: if an entry is no scope, or two entries are the same scope.
    """
    labels: list[str] = []
    for place, entry in enumerate(entries):
        label = _label(entry, place)
        if label in labels:
            raise UserError(f"scope[{place}]: {label} is given twice")
        labels.append(label)
    return tuple(labels)


def _label(entry: str | Mapping[str, Any], place: int) -> str:
    if isinstance(entry, str):
        return f"{K_HOP}-{DEFAULT_HOPS}" if entry == K_HOP else entry
    hops = entry.get(K_HOP)
    if set(entry) != {K_HOP} or not isinstance(hops, int) or isinstance(hops, bool) or hops < 1:
        raise UserError(
            f"scope[{place}]: must be user-only, indirect, k-hop, full or a k-hop scope with its number of levels,"
            f" as in {{{K_HOP}: {DEFAULT_HOPS}}}; got {dict(entry)}"
        )
    return f"{K_HOP}-{hops}"


def parse_scope(label: str) -> tuple[str, int]:
    """("k-hop", 2) for "k-hop-2"; the levels of other scopes are not used."""
    found = re.fullmatch(rf"{K_HOP}-([0-9]+)", label)
    return (K_HOP, int(found[1])) if found else (label, DEFAULT_HOPS)


def scope_kind(label: str) -> str:
    """ "k-hop" for "k-hop-2": what the ``scope`` of a spec names."""
    return parse_scope(label)[0]
