"""What both displays of a run's progress share: the head line, counts of chunks, and which problems were shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.model_quality import Quality, quality_words
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.stages import Task
from cfbench_core.wording import count_of

if TYPE_CHECKING:
    from cfbench_core.api import Prepared
    from cfbench_core.plan import Plan

LEARNED = {"model": "fit", "explainer": "prepare"}
"""Kinds of stage with a bar of their own, and its title."""

ENOUGH_BARS = 8
"""With more models than this, they share one bar."""

ENOUGH_PROBLEMS = 5
"""The number of problems that are shown during the run; its end shows all of them."""


def head_line(prepared: Prepared, summaries: dict[str, Any]) -> str:
    """ "cfbench 0.1.0 · debian-python (1,685 packages, ...) · 3 recommenders · 10 explainers · seed 0"."""
    config = prepared.config
    listed = {
        value[0].kind: value
        for value in vars(config).values()
        if isinstance(value, tuple) and value and isinstance(value[0], ConfiguredComponent)
    }
    shown = [
        count_of(len(value), kind) for kind, value in listed.items() if kind not in ("dataset", "metric")
    ]
    data = prepared.suite.describe_data(config, summaries)
    parts = [f"cfbench {version('cfbench-core')}", data, *shown, f"seed {config.seed}"]
    return " · ".join(part for part in parts if part)


def plan_line(plan: Plan) -> str:
    """ "54 cells: 48 to run, 6 skipped"."""
    return f"{count_of(len(plan.cells), 'cell')}: {len(plan.to_run)} to run, {len(plan.skipped)} skipped"


def quality(outcome: Outcome) -> str:
    """ "HR@10 0.49 (0.45 to 0.53), n = 502": the first of what a model says of its quality."""
    reported = outcome.summary.get("quality", {})
    return quality_words({name: Quality.of(one) for name, one in reported.items()}, most=1, decimals=2)


class Tally:
    """The state of both observers: finished chunks, a description of the data, the problems that were shown.

    The head line describes the data, so lines before it wait until the data are read.
    """

    def __init__(self, prepared: Prepared, write: Callable[[str], None]) -> None:
        stages = prepared.plan.stages()
        self.prepared = prepared
        self.write = write
        self.whole = sum(not stage.chunked for stage in stages)
        self.kinds = Counter(stage.kind for stage in stages if not stage.chunked)
        self.unread = self.kinds["data"]
        self.summaries: dict[str, Any] = {}
        self.waiting: list[str] = []
        self.chunks_done = 0
        self.chunks = Total(0)
        self.fractions: dict[str, float] = {}
        self.reasons: set[str] = set()

    def say(self, line: str) -> None:
        if self.unread:
            self.waiting.append(line)
        else:
            self.write(line)

    def begin(self) -> None:
        """The two lines on top, and what waited for them."""
        why = "  (why: cfbench plan)" if self.prepared.plan.skipped else ""
        self.write(head_line(self.prepared, self.summaries))
        self.write(f"plan     {plan_line(self.prepared.plan)}{why}")
        for line in self.waiting:
            self.write(line)

    def started(self, task: Task) -> None:
        if task.chunk is not None:
            self.fractions[task.key] = 0.0

    def progress(self, task: Task, done: int, total: int) -> None:
        if task.chunk is not None and total:
            self.fractions[task.key] = min(done / total, 1.0)

    def finished(self, task: Task, outcome: Outcome, total: Total) -> None:
        self.chunks = Total(total.tasks - self.whole, total.exact)
        if task.chunk is not None:
            self.fractions.pop(task.key, None)
            self.chunks_done += 1
        if not outcome.done:
            self.problem(task, outcome)
        if task.kind == "data":
            self.read(task, outcome)

    def read(self, task: Task, outcome: Outcome) -> None:
        if outcome.done:
            self.summaries[task.label] = outcome.summary
        self.unread -= 1
        if not self.unread:
            self.begin()

    def problem(self, task: Task, outcome: Outcome) -> None:
        """Shows each reason once: what depends on a failed task fails for the same reason."""
        if outcome.reason not in self.reasons and len(self.reasons) < ENOUGH_PROBLEMS:
            self.reasons.add(outcome.reason)
            reason = outcome.reason.removeprefix(f"{task.label}: ")  # checks of answers begin with it
            self.say(f"{outcome.status.replace('_', ' ').ljust(8)} {task.label}: {reason}")
