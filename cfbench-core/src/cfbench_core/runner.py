"""Runs a plan: every stage once, chunk by chunk, on an executor. Whatever ends badly becomes an outcome.

Nothing here knows what a stage does. A finished task is an artifact in the store, so a run that was killed resumes where it
stopped, and two runs share what they have in common. An artifact that is lost while the run needs it (a component may have
deleted it, or another program) is computed again.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cfbench_core.artifact_manifest import is_incomplete
from cfbench_core.errors import DamageWarning
from cfbench_core.executors import Executor, Finished, Progress, Started
from cfbench_core.expansion import Expansion
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.plan import Plan
from cfbench_core.stages import Stage, Task
from cfbench_core.store import Store

ATTEMPTS = 3
"""How often a task is computed again because an input of it was lost."""


class Observer(Protocol):
    """Is notified of the progress of a run; the command line draws progress bars from it."""

    def started(self, task: Task) -> None: ...

    def progress(self, task: Task, done: int, total: int) -> None: ...

    def finished(self, task: Task, outcome: Outcome, done: int, total: Total) -> None:
        """``done`` of the ``total`` tasks have ended."""


@dataclass
class Results:
    """The outcome of every task, and the tasks of each stage."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    tasks: dict[str, list[Task]] = field(default_factory=dict)
    """Stage key -> its tasks: one, or one for each chunk in order. Empty when its units could not be determined."""

    def of(self, stage: Stage) -> Iterator[tuple[Task, Outcome]]:
        for task in self.tasks.get(stage.key, []):
            yield task, self.outcomes[task.key]

    def problem(self, stage: Stage) -> Outcome | None:
        """The first outcome of a stage, or of what it reads, that is not done."""
        for needed in stage.inputs.values():
            problem = self.problem(needed)
            if problem is not None and stage.key not in self.tasks:
                return problem
        return next((outcome for _, outcome in self.of(stage) if not outcome.done), None)


def run_plan(
    plan: Plan, store: Store, executor: Executor, chunk: int, fresh: bool, observer: Observer
) -> Results:
    """Computes all that the plan's cells need and is not in the store yet.

    Args:
        chunk: groups of units in a task.
        fresh: compute everything again, though the store has it.

    KeyboardInterrupt leaves at once; what was finished stays in the store. The caller closes the executor.
    """
    return _Schedule(plan, store, executor, chunk, fresh, observer).run()


def uncomputed(stages: Sequence[Stage], store: Store, chunk: int) -> list[Stage]:
    """The stages that a run would compute, wholly or in part: of which a task is not in the store.

    Args:
        stages: each after those it reads.
        chunk: groups of units in a task.
    """
    expansion = Expansion(stages, chunk)
    complete = set()
    while opened := expansion.next_stages():
        for stage, tasks in opened:
            manifests = [store.manifest(task.kind, task.key) for task in tasks]
            found = [one for one in manifests if one is not None and not is_incomplete(one)]
            if len(found) == len(tasks):
                complete.add(stage.key)
                for task, manifest in zip(tasks, found, strict=True):
                    expansion.settled(task, _cached(manifest))
    return [stage for stage in stages if stage.key not in complete]


def computed_by(results: Results) -> list[dict[str, Any]]:
    """The environments that the results of a run come from, each with its number of ``tasks``, most first.

    For a run that is wholly from the cache these are the environments of the runs that computed it.
    """
    counts: dict[str, int] = {}
    for outcome in results.outcomes.values():
        if outcome.done:
            text = json.dumps(dict(outcome.computed_by), sort_keys=True)
            counts[text] = counts.get(text, 0) + 1
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [{**json.loads(text), "tasks": count} for text, count in ordered]


class _Schedule:
    def __init__(
        self, plan: Plan, store: Store, executor: Executor, chunk: int, fresh: bool, observer: Observer
    ) -> None:
        self.store = store
        self.executor = executor
        self.fresh = fresh
        self.observer = observer
        self.expansion = Expansion(plan.stages(), chunk)
        self.results = Results()
        self.ready: deque[Task] = deque()
        self.missing: dict[str, int] = {}  # task key -> inputs that have no outcome yet
        self.dependents: dict[str, list[Task]] = defaultdict(list)  # input key -> tasks that read it
        self.running: set[str] = set()
        self.tasks: dict[str, Task] = {}
        self.settled: set[str] = set()
        self.restored: Counter[str] = Counter()  # task key -> how often its result, or an input, was lost

    def run(self) -> Results:
        self.expand()
        self.submit()
        while self.running or self.restore_results():
            event = self.executor.wait()
            match event:
                case Started(task):
                    self.observer.started(task)
                case Progress(task, done, total):
                    self.observer.progress(task, done, total)
                case Finished(task, outcome):
                    self.running.discard(task.key)
                    if outcome.done or not self.restore_inputs(task):
                        self.settle(task, self.checked(task, outcome))
                    self.submit()
        return self.results

    def expand(self) -> None:
        """Turns stages into tasks as soon as it is known how many chunks they have."""
        for stage, tasks in self.expansion.next_stages():
            self.results.tasks[stage.key] = tasks
            self.tasks |= {task.key: task for task in tasks}
            for task in tasks:
                self.add(task)

    def add(self, task: Task) -> None:
        missing = {key for key in task.inputs.values() if key not in self.results.outcomes}
        if not missing:
            self.ready.append(task)
            return
        self.missing[task.key] = len(missing)
        for key in missing:
            self.dependents[key].append(task)

    def submit(self) -> None:
        """Submits what is ready; settles what is cached or cannot be computed any more."""
        while self.ready:
            task = self.ready.popleft()
            if any(key not in self.results.outcomes for key in task.inputs.values()):
                self.add(task)  # one of its inputs was lost since it became ready
                continue
            inputs = [self.results.outcomes[key] for key in task.inputs.values()]
            failed = next((outcome for outcome in inputs if not outcome.done), None)
            manifest = None if self.fresh or failed else self.stored(task)
            if failed is not None:  # it ends in the same way, but took no time and has no traceback
                self.settle(task, Outcome(failed.status, failed.reason, wrong_input=failed.wrong_input))
            elif manifest is not None and not is_incomplete(manifest):
                self.settle(task, _cached(manifest))
            else:
                self.running.add(task.key)
                self.executor.submit(task)

    def stored(self, task: Task) -> Mapping[str, object] | None:
        """What the store has of a task. A damaged artifact is removed, to be computed again, and a warning says so."""
        manifest = self.store.manifest(task.kind, task.key)
        problem = "" if manifest else self.store.remove_if_damaged(task.kind, task.key)
        if problem:
            warnings.warn(
                f"{task.kind} {task.label}: its cached result was damaged ({problem}); it is computed again",
                DamageWarning,
                stacklevel=2,
            )
        return manifest

    def restore_inputs(self, task: Task) -> bool:
        """Whether a task that failed had lost an input (damaged or removed meanwhile), and both are computed again."""
        needed = [self.tasks[key] for key in task.inputs.values()]
        lost = [one for one in needed if self.stored(one) is None]
        # A component that removes its own inputs would do so each time.
        if not lost or self.restored[task.key] >= (1 if task.domain else ATTEMPTS):
            return False
        self.restored.update([task.key, *(one.key for one in lost)])
        for one in lost:
            if self.results.outcomes.pop(one.key, None) is not None:
                self.add(one)
        self.add(task)
        return True

    def restore_results(self) -> bool:
        """Whether results were lost after they were computed, and are computed again; each once."""
        done = [self.tasks[key] for key, outcome in self.results.outcomes.items() if outcome.done]
        lost = [task for task in done if not self.restored[task.key] and not self.has_result(task)]
        for task in lost:
            self.restored[task.key] += 1
            del self.results.outcomes[task.key]
            self.add(task)
        self.submit()
        return bool(self.running)

    def checked(self, task: Task, outcome: Outcome) -> Outcome:
        """The outcome that an executor reported; "failed" where the task left no result."""
        if outcome.done and not self.has_result(task):
            return Outcome("failed", "its result is missing from the cache")
        return outcome

    def has_result(self, task: Task) -> bool:
        """Whether there is an artifact; its bytes are verified when it is read."""
        return self.store.is_there(task.kind, task.key)

    def settle(self, task: Task, outcome: Outcome) -> None:
        """Records the outcome of a task, and queues the tasks that waited for it only."""
        self.results.outcomes[task.key] = outcome
        if task.key not in self.settled:  # what is computed again was reported before
            self.settled.add(task.key)
            self.expansion.settled(task, outcome)
            self.expand()
            self.observer.finished(task, outcome, len(self.results.outcomes), self.expansion.total())
        for dependent in self.dependents.pop(task.key, []):
            self.missing[dependent.key] -= 1
            if not self.missing[dependent.key]:
                self.ready.append(dependent)


def _cached(manifest: Mapping[str, object]) -> Outcome:
    return Outcome(
        "cached",
        summary=manifest["summary"],  # type: ignore[arg-type]
        computed_by=manifest["computed_by"],  # type: ignore[arg-type]
        elapsed_seconds=float(manifest["elapsed_seconds"]),  # type: ignore[arg-type]
        peak_memory_bytes=int(manifest["peak_memory_bytes"]),  # type: ignore[call-overload]
    )
