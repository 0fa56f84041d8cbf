"""Which worker gets which task: those that have its inputs loaded. Constant cost for each task, however many there are.

A worker that becomes idle gets the task that shares the most inputs with what it has loaded; else one that suits no other
worker; else the oldest. Where several workers are idle, the oldest task gets the one that suits it best. Both look at a few
candidates only, which they find by the keys of the inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Protocol, TypeVar

from cfbench_core.stages import Task

CANDIDATES = 4
"""The oldest tasks with an input, and the workers that have one loaded, that are compared."""

OLDEST = 8
"""The oldest tasks, and the first inputs that no worker has loaded, that are compared as well."""


class Holder(Protocol):
    """A worker, as far as this module is concerned."""

    @property
    def pool(self) -> str: ...

    @property
    def loaded(self) -> Collection[str]:
        """Keys of the inputs that it has loaded."""


W = TypeVar("W", bound=Holder)


class Backlog:
    """The tasks that wait, by pool and by input, the oldest first; and which workers have which inputs loaded."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[int, Task]] = {}  # by pool, then by identity, in order of arrival
        self._by_input: dict[str, dict[str, dict[int, Task]]] = {}  # by pool, then by key
        self._fresh: dict[str, dict[str, None]] = {}  # by pool: keys that wait and that no worker has loaded
        self._arrivals: dict[int, int] = {}
        self._number = 0
        self._holders: dict[str, set[int]] = {}  # by key, the identities of workers
        self._loaded: dict[int, frozenset[str]] = {}  # by identity of the worker

    def __len__(self) -> int:
        return len(self._arrivals)

    def __iter__(self) -> Iterator[Task]:
        return iter([task for tasks in self._tasks.values() for task in tasks.values()])

    @property
    def pools(self) -> list[str]:
        """Those that have tasks, the one with the oldest task first."""
        firsts = [next(iter(tasks.values())) for tasks in self._tasks.values()]
        return [task.pool for task in sorted(firsts, key=self._arrival)]

    def oldest(self, pool: str) -> Task:
        """The task of a pool that has waited longest."""
        return next(iter(self._tasks[pool].values()))

    def add(self, task: Task) -> None:
        self._number += 1
        self._arrivals[id(task)] = self._number
        self._tasks.setdefault(task.pool, {})[id(task)] = task
        by_input = self._by_input.setdefault(task.pool, {})
        for key in set(task.inputs.values()):
            by_input.setdefault(key, {})[id(task)] = task
            if key not in self._holders:
                self._fresh.setdefault(task.pool, {})[key] = None

    def remove(self, task: Task) -> None:
        del self._arrivals[id(task)]
        by_input = self._by_input[task.pool]
        for key in set(task.inputs.values()):
            del by_input[key][id(task)]
            if not by_input[key]:
                del by_input[key]
                self._fresh.get(task.pool, {}).pop(key, None)
        del self._tasks[task.pool][id(task)]
        if not self._tasks[task.pool]:
            del self._tasks[task.pool]

    def clear(self) -> None:
        for index in (self._tasks, self._by_input, self._fresh, self._arrivals):
            index.clear()

    def has_loaded(self, worker: Holder, keys: Iterable[str]) -> None:
        """Notes what a worker has loaded now; nothing when it has ended."""
        before, after = self._loaded.pop(id(worker), frozenset()), frozenset(keys)
        for key in before - after:
            self._holders[key].remove(id(worker))
            if not self._holders[key]:
                del self._holders[key]
                for pool, waiting in self._by_input.items():
                    if key in waiting:
                        self._fresh.setdefault(pool, {})[key] = None
        for key in after - before:
            self._holders.setdefault(key, set()).add(id(worker))
            for fresh in self._fresh.values():
                fresh.pop(key, None)
        if after:
            self._loaded[id(worker)] = after

    def best_pair(self, idle: Collection[W]) -> tuple[W, Task]:
        """A worker and a task of its pool. ``idle`` are workers of pools that have tasks, one at least."""
        pools = {worker.pool for worker in idle}
        pool = next(pool for pool in self.pools if pool in pools)
        able = [worker for worker in idle if worker.pool == pool]
        if len(able) == 1:
            return able[0], self._task_for(able[0])
        task = self.oldest(pool)
        return self._worker_for(task, {id(worker): worker for worker in able}), task

    def _task_for(self, worker: Holder) -> Task:
        own = self._loaded.get(id(worker), frozenset())
        by_input = self._by_input[worker.pool]
        fresh = islice(self._fresh.get(worker.pool, ()), OLDEST)
        candidates = [*islice(self._tasks[worker.pool].values(), OLDEST)]
        for key in [*own, *fresh]:
            candidates += islice(by_input.get(key, {}).values(), CANDIDATES)

        def fitness(task: Task) -> tuple[int, int, int]:
            keys = set(task.inputs.values())
            elsewhere = sum(len(self._holders.get(key, ())) > (key in own) for key in keys)
            return len(keys & own), -elsewhere, -self._arrival(task)

        return max(candidates, key=fitness)

    def _worker_for(self, task: Task, idle: Mapping[int, W]) -> W:
        shared: Counter[int] = Counter()
        for key in set(task.inputs.values()):
            held = self._holders.get(key, set())
            shared.update(islice((place for place in held if place in idle), CANDIDATES))
        (best, _), *_ = shared.most_common(1) or [(next(iter(idle)), 0)]
        return idle[best]

    def _arrival(self, task: Task) -> int:
        return self._arrivals[id(task)]
