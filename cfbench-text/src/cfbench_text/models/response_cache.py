"""ObservedTexts of models, kept by hash in one SQLite file for each kind, so that a run that was stopped goes on.

A key is the SHA-256 of all that determines the answer (model, prompt, text, options); a value is JSON. ObservedTexts
reach the disk while others are still being made; several processes may use one file. The files lie in
``answers/`` beside the artifacts of the cache (``$CFBENCH_CACHE_DIR``); deleting them costs time, nothing else.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from cfbench_core.files import disk_trouble
from cfbench_core.store import default_root

Ask = Callable[[Sequence[int]], Iterable[tuple[int, Any]]]
"""Given the places of questions, gives (place, answer) in any order. ObservedTexts that are None are not kept."""

_AT_ONCE = 500
_SECONDS = 2.0


class ResponseCache:
    """The answers of one kind, for example "chat" or "nli"."""

    def __init__(self, kind: str) -> None:
        self.path: Path = default_root().parent / "answers" / f"{kind}.sqlite"

    def answers(self, keys: Sequence[str], ask: Ask) -> list[Any]:
        """One answer for each key, in order; ``ask`` is asked only for those that are not kept, each once."""
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        with disk_trouble(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60)) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT)")
                known = dict(self._known(connection, list(first)))
                missing = sorted(first[key] for key in first if key not in known)
                if missing:
                    self._ask(connection, keys, ask(missing), known)
        return [known.get(key) for key in keys]

    def _known(self, connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = connection.execute(f"SELECT key, value FROM answers WHERE key IN ({marks})", some)
            yield from ((key, json.loads(value)) for key, value in rows)

    def _ask(
        self,
        connection: sqlite3.Connection,
        keys: Sequence[str],
        answers: Iterable[tuple[int, Any]],
        known: dict[str, Any],
    ) -> None:
        """Writes what has come every two seconds, and when something stops the rest."""
        fresh: list[tuple[str, str]] = []
        written = time.monotonic()
        try:
            for place, value in answers:
                if value is None:
                    continue
                known[keys[place]] = value
                fresh.append((keys[place], json.dumps(value)))
                if time.monotonic() - written > _SECONDS:
                    self._write(connection, fresh)
                    fresh, written = [], time.monotonic()
        finally:
            self._write(connection, fresh)

    @staticmethod
    def _write(connection: sqlite3.Connection, fresh: Sequence[tuple[str, str]]) -> None:
        with connection:
            connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", fresh)
