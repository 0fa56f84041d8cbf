"""Shows the progress of a run: bars on a terminal, short lines otherwise, always on stderr.

Both are observers of :mod:`cfbench_core.runner`. Each model, and each explainer that is trained in advance, has a bar
of its own; everything that is computed chunk by chunk shares one, "explain".
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from cfbench_core.cli.output import duration
from cfbench_core.cli.run_tally import LEARNED, Tally, quality
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.stages import Task

if TYPE_CHECKING:
    from cfbench_core.api import Prepared
    from cfbench_core.runner import Observer


@contextlib.contextmanager
def shown(prepared: Prepared, quiet: bool) -> Iterator[Observer | None]:
    """An observer that draws on stderr until the block is left; None when nobody wants to look."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield Lines(prepared, lambda line: click.echo(line, err=True))
        return
    from cfbench_core.cli.bars import Bars

    with Bars(prepared) as bars:
        yield bars


class Lines:
    """For logs: a line for each model, and for each tenth of the explaining."""

    def __init__(self, prepared: Prepared, write: Callable[[str], None]) -> None:
        self.tally = Tally(prepared, write)
        self.say = self.tally.say
        self.start = time.monotonic()
        self.tenths = 0
        self.total = Total(0)

    def started(self, task: Task) -> None:
        self.tally.started(task)

    def progress(self, task: Task, done: int, total: int) -> None:
        self.tally.progress(task, done, total)

    def finished(self, task: Task, outcome: Outcome, done: int, total: Total) -> None:
        tally = self.tally
        tally.finished(task, outcome, total)
        if task.kind in LEARNED and outcome.done and outcome.summary.get("learned", True):
            notes = [
                quality(outcome),
                "cached" if outcome.status == "cached" else f"{outcome.elapsed_seconds:.1f} s",
            ]
            self.say(
                f"{LEARNED[task.kind].ljust(8)} {task.label}: {', '.join(note for note in notes if note)}"
            )
        if task.chunk is None:
            return
        tenths = 10 * tally.chunks_done // max(tally.chunks.tasks, 1)
        if tally.chunks != self.total:  # the estimate changed: what was a half may be a third now
            self.total, self.tenths = tally.chunks, min(self.tenths, tenths)
        ended = tally.chunks.exact and tally.chunks_done == tally.chunks.tasks
        if tenths > self.tenths or ended:
            self.tenths = tenths
            elapsed = duration(time.monotonic() - self.start)
            self.say(f"explain  {tally.chunks_done:,}/{tally.chunks} tasks, {elapsed}")
