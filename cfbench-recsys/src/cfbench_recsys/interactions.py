"""Interactions of users with items, with the names that people read, and how they are stored on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray

StrArray = np.ndarray[tuple[int, ...], np.dtype[np.str_]]

_INTEGER = re.compile(r"[+-]?\d+")
ABOUT = "about.json"
LONGEST_NAME = 1000
"""Characters of an item's name; a longer one is cut, since it is only read by people."""


@dataclass(frozen=True)
class Interactions:
    """A data set: who interacted with what.

    Attributes:
        name: "ml-1m".
        matrix: (users, items) float64, 1 where there is an interaction; indices sorted in each row.
        user_ids, item_ids: (users,), (items,) identifiers of the data file. Their order is the order of the
            indices: ascending by value if all are whole numbers, else lexicographic.
        item_names: (items,) what people call the items; the identifiers where nothing better is known.
        times: (interactions,) in the order of ``matrix.data``, seconds since 1970 or whatever the file counts
            in; None if it has none.
        about: JSON. ``title``, ``nouns`` (user, users, item, items: what to call them), ``because`` ("they liked":
            what a user does with an item, for sentences), ``licence``,
            ``page``, ``release``, ``rule``, ``expected`` (users, items, interactions as published, or None),
            ``found``, ``differences`` (lines, empty when all is as expected), ``duplicates`` (dropped).
    """

    name: str
    matrix: scipy.sparse.csr_matrix
    user_ids: StrArray
    item_ids: StrArray
    item_names: StrArray
    times: FloatArray | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Users, items, interactions."""
        users, items = self.matrix.shape
        return {"users": int(users), "items": int(items), "interactions": int(self.matrix.nnz)}

    def summary(self) -> dict[str, Any]:
        """For the head line of a run: the counts, ``text``, and what is not as published."""
        nouns = {**PLAIN_NOUNS, **self.about.get("nouns", {})}
        counts = self.counts()
        parts = [f"{counts['users']:,} {nouns['users']}", f"{counts['items']:,} {nouns['items']}"]
        if self.about.get("release"):
            parts.append(str(self.about["release"]))
        return {
            **counts,
            "text": f"{self.name} ({', '.join(parts)})",
            "title": self.about.get("title", self.name),
            "nouns": nouns,
            "differences": list(self.about.get("differences", [])),
        }

    def save(self, folder: Path) -> None:
        """Into ``folder``, made if need be: interactions, users and items as Parquet, about.json."""
        import pyarrow as pa

        folder.mkdir(parents=True, exist_ok=True)
        extra = {} if self.times is None else {"time": self.times}
        save_matrix(self.matrix, folder / "interactions.parquet", extra)
        _write(pa.table({"id": pa.array(self.user_ids.tolist(), pa.string())}), folder / "users.parquet")
        names = {"id": self.item_ids, "name": self.item_names}
        _write(
            pa.table({key: pa.array(value.tolist(), pa.string()) for key, value in names.items()}),
            folder / "items.parquet",
        )
        text = json.dumps({"name": self.name, "about": dict(self.about)}, indent=2, ensure_ascii=False)
        (folder / ABOUT).write_text(text + "\n", encoding="utf-8")


PLAIN_NOUNS = {"user": "user", "users": "users", "item": "item", "items": "items"}


def load_interactions(folder: Path) -> Interactions:
    """What :meth:`Interactions.save` wrote."""
    import pyarrow.parquet as pq

    known = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    users = pq.read_table(folder / "users.parquet")
    items = pq.read_table(folder / "items.parquet")
    matrix, extra = load_matrix(folder / "interactions.parquet")
    return Interactions(
        known["name"],
        matrix,
        _strings(users["id"].to_pylist()),
        _strings(items["id"].to_pylist()),
        _strings(items["name"].to_pylist()),
        extra.get("time"),
        known["about"],
    )


def save_matrix(
    matrix: scipy.sparse.csr_matrix, path: Path, extra: Mapping[str, FloatArray] | None = None
) -> None:
    """A binary (users, items) matrix as rows ``user, item`` (indices), with further columns."""
    import pyarrow as pa

    columns = {
        "user": np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr)),
        "item": matrix.indices.astype(np.int32),
        **(extra or {}),
    }
    shape = {"users": str(matrix.shape[0]), "items": str(matrix.shape[1])}
    _write(pa.table(columns).replace_schema_metadata(shape), path)


def load_matrix(path: Path) -> tuple[scipy.sparse.csr_matrix, dict[str, FloatArray]]:
    """What :func:`save_matrix` wrote: the matrix, and the further columns."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    shape = (int(table.schema.metadata[b"users"]), int(table.schema.metadata[b"items"]))
    extra = {name: table[name].to_numpy() for name in table.column_names if name not in ("user", "item")}
    return binary_matrix(table["user"].to_numpy(), table["item"].to_numpy(), shape), extra


def _write(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd")


def binary_matrix(users: IntArray, items: IntArray, shape: tuple[int, int]) -> scipy.sparse.csr_matrix:
    """(users, items) float64 of ones, indices sorted; each pair once."""
    matrix = scipy.sparse.csr_matrix((np.ones(len(users)), (users, items)), shape=shape)
    matrix.sort_indices()
    return matrix


def from_pairs(
    name: str,
    users: Sequence[str] | StrArray,
    items: Sequence[str] | StrArray,
    *,
    times: FloatArray | None = None,
    core: int = 1,
    replaced: int = 0,
    names: Mapping[str, str] | None = None,
    about: Mapping[str, Any] | None = None,
    expected: tuple[int, int, int] | None = None,
) -> Interactions:
    """Interactions of identifiers: duplicates dropped (the latest stays), then the recursive ``core``-core.

    Args:
        users, items: (E,) identifiers, a pair for each interaction.
        times: (E,) or None.
        core: interactions that each user and each item must have.
        replaced: duplicates that were dropped before, where they could not be told from the pairs that are left.
        names: of items, by identifier.
        expected: users, items, interactions as published; a difference is reported in ``about``, and nothing
            else.

    Raises:
        UserError: if nothing is left.
    """
    user_ids, user = index_ids(users)
    item_ids, item = index_ids(items)
    retained = _last_of_each(user, item, len(item_ids), times)
    duplicates = len(user) - len(retained)
    retained = retained[k_core(user[retained], item[retained], core)]
    if not len(retained):
        rule = f" where every user and item has at least {core}" if core > 1 and len(user) else ""
        raise UserError(f"{name}: no interactions are left{rule} ({len(user):,} were read)")
    user_left, user = np.unique(user[retained], return_inverse=True)
    item_left, item = np.unique(item[retained], return_inverse=True)
    user_ids, item_ids = user_ids[user_left], item_ids[item_left]
    order = np.lexsort((item, user))
    matrix = binary_matrix(user[order], item[order], (len(user_ids), len(item_ids)))
    found = (len(user_ids), len(item_ids), int(matrix.nnz))
    return Interactions(
        name,
        matrix,
        user_ids,
        item_ids,
        _strings([one_line((names or {}).get(id) or id, LONGEST_NAME) for id in item_ids.tolist()]),
        None if times is None else np.asarray(times, dtype=np.float64)[retained][order],
        {**(about or {}), "duplicates": duplicates + replaced, **_compared(found, expected)},
    )


def _compared(found: tuple[int, int, int], expected: tuple[int, int, int] | None) -> dict[str, Any]:
    """The counts and the published ones. A difference is reported and is not an error."""
    nouns = ("users", "items", "interactions")
    differences = [
        f"{there:,} {noun}, published: {published:,}"
        for noun, there, published in zip(nouns, found, expected or found, strict=True)
        if there != published
    ]
    return {
        "found": dict(zip(nouns, found, strict=True)),
        "expected": dict(zip(nouns, expected, strict=True)) if expected else None,
        "differences": differences,
    }


def index_ids(ids: Sequence[str] | StrArray) -> tuple[StrArray, IntArray]:
    """The distinct identifiers in the order of their indices, and (E,) the index of each that was given.

    Ascending by value if all are whole numbers ("9" before "10"; of "7" and "07", which are two identifiers,
    the lexicographically smaller first), else lexicographic.
    """
    import pandas as pd

    codes, found = pd.factorize(np.asarray(ids, dtype=object))
    distinct = [str(id) for id in found]
    numbers = all(_INTEGER.fullmatch(id) for id in distinct)
    order = sorted(
        range(len(distinct)), key=lambda place: (int(distinct[place]) if numbers else 0, distinct[place])
    )
    index = np.empty(len(distinct), dtype=np.int64)
    index[order] = np.arange(len(distinct))
    return _strings([distinct[place] for place in order]), index[codes]


def _last_of_each(users: IntArray, items: IntArray, item_count: int, times: FloatArray | None) -> IntArray:
    """Positions of the latest interaction of each pair (the last in the file of equal times), ascending."""
    keys = users * item_count + items
    order = np.lexsort((np.arange(len(keys)), np.zeros(len(keys)) if times is None else times, keys))
    last = np.append(keys[order][1:] != keys[order][:-1], True) if len(keys) else np.empty(0, dtype=bool)
    return np.sort(order[last])


def k_core(users: IntArray, items: IntArray, k: int) -> BoolArray:
    """(E,) which interactions lie in the k-core: the largest part where all users and items have k or more.

    Users and items with fewer go, with their interactions, until none is left to go. Each pair must be there
    once.
    """
    retained = np.ones(len(users), dtype=bool)
    while True:
        left = at_least(users[retained], items[retained], k)
        if left.all():
            return retained
        retained[retained] = left


def at_least(users: IntArray, items: IntArray, n: int) -> BoolArray:
    """(E,) which interactions are of a user with at least n and an item with at least n, counted once."""
    if not len(users):
        return np.zeros(0, dtype=bool)
    enough: BoolArray = (np.bincount(users)[users] >= n) & (np.bincount(items)[items] >= n)
    return enough


def _strings(values: Sequence[str]) -> StrArray:
    return np.array(values, dtype=np.str_)
