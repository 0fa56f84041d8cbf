"""Progress bars on a terminal (rich). See :mod:`cfbench_core.cli.progress`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from cfbench_core.cli.output import duration
from cfbench_core.cli.run_tally import ENOUGH_BARS, LEARNED, Tally, quality
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.stages import Task as ComputeTask

if TYPE_CHECKING:
    from cfbench_core.api import Prepared

BAR_WIDTH = 28


class Note(ProgressColumn):
    """What stands behind a bar: a model's quality; for chunks how many ("~" before an estimated total), the time taken and
    the time to go."""

    def render(self, task: Task) -> Text:
        if task.fields["note"] is not None:
            return Text(task.fields["note"])
        done, total = int(task.completed), int(task.total or 0)
        to_go = task.time_remaining
        coming = f", {duration(to_go)} to go" if to_go and not task.finished else ""
        about = "" if task.fields.get("exact", True) else "~"
        return Text(f"{done:,}/{about}{total:,}  {duration(task.elapsed or 0)}{coming}")


class Bars:
    """An observer that draws; in a ``with`` block, at whose end the terminal is as it was."""

    def __init__(self, prepared: Prepared) -> None:
        self.display = Progress(
            TextColumn("{task.fields[word]:8}"),
            TextColumn("{task.description}"),
            BarColumn(BAR_WIDTH),
            TextColumn("{task.percentage:>3.0f}%"),
            Note(),
            console=Console(stderr=True),
        )
        self.tally = Tally(prepared, self._write)
        self.one_bar = self.tally.kinds["model"] + self.tally.kinds["explainer"] > ENOUGH_BARS
        self.learned: dict[str, TaskID] = {}
        self.explain: TaskID | None = None

    def __enter__(self) -> Bars:
        self.display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.display.stop()

    def _write(self, line: str) -> None:
        self.display.console.print(line, markup=False, highlight=False)

    def started(self, task: ComputeTask) -> None:
        self.tally.started(task)
        if task.kind in LEARNED:
            self._bar_of(task)

    def progress(self, task: ComputeTask, done: int, total: int) -> None:
        self.tally.progress(task, done, total)
        if task.kind in LEARNED and not self.one_bar:
            self.display.update(self._bar_of(task), completed=done, total=total)
        elif task.chunk is not None:
            self._move()

    def finished(self, task: ComputeTask, outcome: Outcome, done: int, total: Total) -> None:
        self.tally.finished(task, outcome, total)
        if task.kind in LEARNED:
            self._learned(task, outcome)
        elif task.chunk is not None:
            self._move()

    def _bar_of(self, task: ComputeTask) -> TaskID:
        """The bar of a model; one for all of a kind where there are many."""
        key = task.kind if self.one_bar else task.key
        if key not in self.learned:
            total = self.tally.kinds[task.kind] if self.one_bar else None
            self.learned[key] = self.display.add_task(
                "" if self.one_bar else task.label,
                total=total,
                word=LEARNED[task.kind],
                note=None if self.one_bar else "",
            )
        return self.learned[key]

    def _learned(self, task: ComputeTask, outcome: Outcome) -> None:
        bar = self._bar_of(task)
        if self.one_bar:
            self.display.advance(bar)
        elif outcome.done:
            learned = outcome.summary.get("learned", True)
            self.display.update(bar, completed=1, total=1, note=quality(outcome), visible=learned)
        else:
            self.display.update(bar, completed=0, total=1, note=outcome.status.replace("_", " "))

    def _move(self) -> None:
        tally = self.tally
        if self.explain is None:
            self.explain = self.display.add_task("", total=None, word="explain", note=None, exact=True)
        completed = tally.chunks_done + sum(tally.fractions.values())
        self.display.update(
            self.explain, completed=completed, total=tally.chunks.tasks, exact=tally.chunks.exact
        )
