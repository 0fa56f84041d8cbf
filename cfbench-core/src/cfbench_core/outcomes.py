"""The outcome of a task: a value, never an exception that leaves the runner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cfbench_core.wording import count_of

Status = Literal["ok", "cached", "skipped", "failed", "timeout", "out_of_memory"]

DONE: frozenset[Status] = frozenset({"ok", "cached"})


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    ``reason`` is one line for people; ``traceback`` is stored in the run directory.
    ``summary`` is what the stage returned (JSON), for example a recommender's quality. ``computed_by`` is the
    environment that computed it, as its artifact records it; for a cached result not the current one.
    ``wrong_input`` says that it failed because the user's data cannot be read.
    """

    status: Status
    reason: str = ""
    traceback: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    computed_by: Mapping[str, Any] = field(default_factory=dict)
    elapsed_seconds: float = 0.0
    peak_memory_bytes: int = 0
    wrong_input: bool = False

    @property
    def done(self) -> bool:
        return self.status in DONE


def in_one_line(warnings: Iterable[str], most: int = 3) -> str:
    """Warnings, each once, the first few of many."""
    distinct = list(dict.fromkeys(warnings))
    more = [f"and {count_of(len(distinct) - most, 'more warning')}"] if len(distinct) > most else []
    return "; ".join([*distinct[:most], *more])


@dataclass(frozen=True)
class Total:
    """How many tasks a run has.

    Attributes:
        tasks: their number, those that have ended included.
        exact: False as long as the units of a stage are not known. ``tasks`` then is an estimate: such a stage counts
            as many tasks as the stages whose units are known have on average.
    """

    tasks: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.tasks:,}" if self.exact else f"~{self.tasks:,}"
