"""From stages to tasks, as soon as it is known how many chunks they have. Constant cost for each task."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from cfbench_core.hashing import digest
from cfbench_core.isolation.domains import domain
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.stages import UNITS, Stage, Task, models_of


class Expansion:
    """The stages of a run that have no tasks yet, and how many tasks there are.

    Args:
        stages: each after those it reads.
        chunk: groups of units in a task.
    """

    def __init__(self, stages: Iterable[Stage], chunk: int) -> None:
        self._chunk = chunk
        self._blockers: dict[str, int] = {}  # stage key -> how much of what it waits for is not known
        self._waiting: dict[str, list[Stage]] = defaultdict(list)  # event -> stages that wait for it
        self._open: list[Stage] = []
        self._units: dict[str, Outcome] = {}  # of stages that list units, by key
        self._known = self._chunked = self._of_chunked = 0
        self._unknown = {
            False: 0,
            True: 0,
        }  # stages without tasks that may get some; whether they are chunked
        for stage in stages:
            self._wait(stage)

    def _wait(self, stage: Stage) -> None:
        events = {_expanded(needed.key) for needed in stage.inputs.values()}
        if stage.chunked:
            events.add(_listed(stage.inputs[UNITS].key))
        self._blockers[stage.key] = len(events)
        self._unknown[stage.chunked] += 1
        for event in events:
            self._waiting[event].append(stage)
        if not events:
            self._open.append(stage)

    def next_stages(self) -> list[tuple[Stage, list[Task]]]:
        """The stages whose tasks are known now, each once, each after those it reads."""
        found = []
        while self._open:
            stage = self._open.pop(0)
            tasks = self._tasks(stage)
            found.append((stage, tasks))
            self._known += len(tasks)
            self._unknown[stage.chunked] -= 1
            if tasks and tasks[0].chunk is not None:
                self._chunked, self._of_chunked = self._chunked + 1, self._of_chunked + len(tasks)
            self._happened(_expanded(stage.key))
        return found

    def settled(self, task: Task, outcome: Outcome) -> None:
        """A task has ended. Units that were listed may open stages."""
        event = _listed(task.key)
        if event not in self._waiting:
            return
        if outcome.done:
            self._units[task.key] = outcome
            self._happened(event)
        else:  # they never will
            for stage in self._waiting.pop(event):
                self._unknown[stage.chunked] -= 1

    def _happened(self, event: str) -> None:
        for stage in self._waiting.pop(event, []):
            self._blockers[stage.key] -= 1
            if not self._blockers[stage.key]:
                self._open.append(stage)

    def total(self) -> Total:
        """The tasks that are known, and an estimate of those of the stages whose units are not."""
        if not any(self._unknown.values()):
            return Total(self._known)
        each = self._of_chunked / self._chunked if self._chunked else 1
        return Total(self._known + math.ceil(self._unknown[False] + each * self._unknown[True]), exact=False)

    def _tasks(self, stage: Stage) -> list[Task]:
        whole = _task(stage)
        if not stage.chunked:
            return [whole]
        groups = int(self._units[stage.inputs[UNITS].key].summary["groups"])
        starts = range(0, groups, self._chunk)
        return [_chunk_of(whole, stage, (start, min(start + self._chunk, groups))) for start in starts]


def _expanded(key: str) -> str:
    return f"expanded {key}"


def _listed(key: str) -> str:
    return f"listed {key}"


def _task(stage: Stage) -> Task:
    return Task(
        key=stage.key,
        stage_key=stage.key,
        kind=stage.kind,
        label=stage.label,
        target=stage.target,
        parameters=stage.parameters,
        inputs={role: needed.key for role, needed in stage.inputs.items()},
        input_kinds={role: needed.kind for role, needed in stage.inputs.items()},
        seed=stage.seed,
        steps=stage.steps,
        dataset=stage.dataset,
        models=models_of(stage.inputs),
        device=stage.device,
        domain=domain(stage),
    )


def _chunk_of(whole: Task, stage: Stage, chunk: tuple[int, int]) -> Task:
    inputs = {role: task_key(needed, chunk) for role, needed in stage.inputs.items()}
    return replace(whole, key=task_key(stage, chunk), inputs=inputs, chunk=chunk)


def task_key(stage: Stage, chunk: tuple[int, int] | None) -> str:
    """The key of a stage's task for a chunk; that of the stage if it is not chunked."""
    return digest({"stage": stage.key, "chunk": list(chunk)}) if stage.chunked and chunk else stage.key
