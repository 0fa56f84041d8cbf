"""Executors compute tasks and report their progress. Components of kind "executor", suite "core".

An executor is constructed as ``Cls(store_root, workers, threads, limits, search_path, fresh, log=None, remote=None)``, with
``config=options`` in addition if its spec names a configuration:

- store_root: the folder of the artifact store;
- workers: tasks at a time; threads: of numerical libraries in each;
- limits: what one task may use (:class:`cfbench_core.suites.Limits`);
- search_path: folders where modules of the user's own are looked for;
- fresh: compute again what the store has;
- remote: only for a store that is not a folder: its settings, see :func:`cfbench_core.stores.open_store`; ``store_root`` is
  then the cache of this machine;
- log: a file to which what tasks print is appended, where it does not go to the terminal.

A process must not compute tasks of different ``Task.pool``, as far as an executor has processes: components of other
distributions may change anything in theirs, and a process sees one GPU or none. A process for which
:func:`cfbench_core.compute.compute` has called ``unfit`` must be replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cfbench_core.outcomes import Outcome
from cfbench_core.stages import Task


@dataclass(frozen=True)
class Started:
    """The task has started."""

    task: Task


@dataclass(frozen=True)
class Progress:
    """The task has completed ``done`` of ``total`` steps."""

    task: Task
    done: int
    total: int


@dataclass(frozen=True)
class Finished:
    """The task has ended, successfully or not. The last event of a task."""

    task: Task
    outcome: Outcome


Event = Started | Progress | Finished


class Executor(Protocol):
    """What the runner needs of an executor. Every submitted task is Started once, then Finished once."""

    def submit(self, task: Task) -> None:
        """Accepts a task whose inputs are in the store. Returns at once."""

    def wait(self) -> Event:
        """The next event; blocks until there is one.

        Raises:
            RuntimeError: when nothing is submitted that could bring one about.
        """

    def close(self) -> None:
        """Ends everything that this executor started, at once. May be called twice."""
