"""Responses of models, cached by key in one SQLite file per kind, so that an interrupted run resumes.

A key is the SHA-256 of everything that determines the response (model, prompt, text, options); a value is JSON.
Responses are written while others are still being computed, and several processes can use one file. The files are in
``answers/`` next to the artifacts of the cache (``$CFBENCH_CACHE_DIR``). Deleting them costs only computing time.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.files import disk_full_message, disk_trouble, is_disk_full
from cfbench_core.store import default_root

Compute = Callable[[Sequence[int]], Iterable[tuple[int, Any]]]
"""Receives indices of keys and yields (index, value) in any order. Values that are None are not cached."""

_KEYS_PER_QUERY = 500
_SECONDS_BETWEEN_WRITES = 2.0


class ResponseCache:
    """The responses of one kind, for example "chat" or "nli"."""

    def __init__(self, kind: str) -> None:
        self.path: Path = default_root().parent / "answers" / f"{kind}.sqlite"

    def values(self, keys: Sequence[str], compute: Compute) -> list[Any]:
        """The value of each key, in order. ``compute`` receives the first index of each key that is not cached."""
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        with disk_trouble(self.path.parent), self._undamaged():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60)) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT)")
                known = dict(self._read(connection, list(first)))
                missing = sorted(first[key] for key in first if key not in known)
                if missing:
                    self._compute(connection, keys, compute(missing), known)
        return [known.get(key) for key in keys]

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        """Names the file where SQLite cannot read it, and the folder where the disk is full."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if is_disk_full(error):
                raise UserError(disk_full_message(self.path.parent, error)) from error
            if type(error) is not sqlite3.DatabaseError:  # a locked file, or a mistake of the program
                raise
            raise UserError(
                f"{self.path}: the cached responses of models are damaged ({error}); delete this file, which costs"
                " only the time and price of the same requests"
            ) from None

    def _read(self, connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            rows = connection.execute(f"SELECT key, value FROM answers WHERE key IN ({marks})", some)
            yield from ((key, json.loads(value)) for key, value in rows)

    def _compute(
        self,
        connection: sqlite3.Connection,
        keys: Sequence[str],
        values: Iterable[tuple[int, Any]],
        known: dict[str, Any],
    ) -> None:
        """Writes new values every two seconds, and also when an exception stops the computation."""
        fresh: list[tuple[str, str]] = []
        written = time.monotonic()
        try:
            for place, value in values:
                if value is None:
                    continue
                known[keys[place]] = value
                fresh.append((keys[place], json.dumps(value)))
                if time.monotonic() - written > _SECONDS_BETWEEN_WRITES:
                    self._write(connection, fresh)
                    fresh, written = [], time.monotonic()
        finally:
            self._write(connection, fresh)

    @staticmethod
    def _write(connection: sqlite3.Connection, fresh: Sequence[tuple[str, str]]) -> None:
        with connection:
            connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", fresh)
