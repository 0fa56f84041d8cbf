"""What people call the users and items of a run: read from the data that it was computed on, as long as these are
in the cache."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_recsys.interactions import ABOUT, PLAIN_NOUNS

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

INTERACTED = "they interacted with"


@dataclass(frozen=True)
class Naming:
    """Names of one data set. ``because``: "it depends on", what a user does with an item, with the pronoun."""

    names: Mapping[str, str] = field(default_factory=dict)
    nouns: Mapping[str, str] = field(default_factory=lambda: PLAIN_NOUNS)
    because: str = INTERACTED

    def user(self, id: str) -> str:
        return _called(id, self.nouns["user"])

    def item(self, id: str) -> str:
        return _called(self.names.get(id, id), self.nouns["item"])


def _called(name: str, noun: str) -> str:
    """An identifier that is no word needs its noun: "user 17", but "spyder"."""
    return name if re.search("[a-z]{2}", name) else f"{noun} {name}"


def naming_of(run: Run, cell: str) -> Naming:
    """Of the data set of a cell; identifiers and plain nouns when its artifact is not in the cache any more."""
    from cfbench_core.store import Store

    keys = {entry["cell"]: entry["stages"].get("data") for entry in run.plan["cells"]}
    store = Store()
    if not keys.get(cell) or not store.has("data", keys[cell]):
        return Naming()
    return _naming_in(store.path("data", keys[cell]))


@functools.lru_cache(maxsize=8)
def _naming_in(folder: Path) -> Naming:
    """Of an artifact, whose path holds the digest of its content."""
    import pyarrow.parquet as pq

    about: Mapping[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))["about"]
    items = pq.read_table(folder / "items.parquet")
    return Naming(
        dict(zip(items["id"].to_pylist(), items["name"].to_pylist(), strict=True)),
        {**PLAIN_NOUNS, **about.get("nouns", {})},
        about.get("because", INTERACTED),
    )
