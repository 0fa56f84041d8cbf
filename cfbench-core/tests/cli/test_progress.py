"""Lines of a log: a line for each tenth of the work, also when more of it becomes known on the way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cfbench_core.cli.progress import Lines
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.plan import Plan, TableLayout
from cfbench_core.stages import Task


def chunk(number: int) -> Task:
    return Task(str(number), "s", "scores", "scores", "m:f", {}, {}, {}, 0, (number, number + 1))


def whole(kind: str) -> Task:
    return Task(kind, "s", kind, "mine for ease", "m:f", {}, {}, {}, 0)


def lines_of(task: Task, outcome: Outcome) -> list[str]:
    reported: list[str] = []
    plan = Plan("toy", (), TableLayout(("model",), "explainer"))
    lines: Any = Lines(SimpleNamespace(plan=plan), reported.append)  # type: ignore[arg-type]
    lines.finished(task, outcome, 1, Total(1))
    return reported


def test_a_failed_task_is_named_once() -> None:
    failed = Outcome("failed", "mine for ease: it adds edges")
    assert lines_of(whole("explainer"), failed)[-1:] == ["failed   mine for ease: it adds edges"]


def test_a_preparation_that_learned_nothing_has_no_line() -> None:
    assert lines_of(whole("explainer"), Outcome("ok", elapsed_seconds=1.0)) == [
        "prepare  mine for ease: 1.0 s"
    ]
    assert not lines_of(whole("explainer"), Outcome("ok", summary={"learned": False}))


def test_an_estimated_total_is_marked_and_the_tenths_follow_it() -> None:
    """10 tasks are known at first; then 100 are estimated, and in the end there are 90."""
    reported: list[str] = []
    plan = Plan("toy", (), TableLayout(("model",), "explainer"))
    lines: Any = Lines(SimpleNamespace(plan=plan), reported.append)  # type: ignore[arg-type]
    ended = Outcome(status="ok", elapsed_seconds=1.0)
    for done in range(1, 9):
        lines.finished(chunk(done), ended, done, Total(10, exact=False))
    for done in range(9, 51):
        lines.finished(chunk(done), ended, done, Total(100, exact=False))
    for done in range(51, 91):
        lines.finished(chunk(done), ended, done, Total(90))
    assert [line.split()[1] for line in reported] == [
        *(f"{done}/~10" for done in range(1, 9)),
        *(f"{done}/~100" for done in range(10, 51, 10)),
        *(f"{done}/90" for done in range(54, 91, 9)),
    ]
