"""How a piece of work ended: a value, never an exception that leaves the runner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["ok", "cached", "skipped", "failed", "timeout", "out_of_memory"]

DONE: frozenset[Status] = frozenset({"ok", "cached"})


@dataclass(frozen=True)
class Outcome:
    """The end of a piece of work.

    ``reason`` is one line for people; ``traceback`` the whole story, kept in the run directory.
    ``summary`` is what the stage reported of itself (JSON), for example a recommender's quality. ``computed_by``
    is the environment that computed it, as its artifact says: not today's, for a cached one.
    """

    status: Status
    reason: str = ""
    traceback: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    computed_by: Mapping[str, Any] = field(default_factory=dict)
    elapsed_seconds: float = 0.0
    peak_memory_bytes: int = 0

    @property
    def done(self) -> bool:
        return self.status in DONE


def in_one_line(remarks: Iterable[str], most: int = 3) -> str:
    """Remarks, each once, the first few of many."""
    distinct = list(dict.fromkeys(remarks))
    more = [f"and {len(distinct) - most} more remarks"] if len(distinct) > most else []
    return "; ".join([*distinct[:most], *more])
