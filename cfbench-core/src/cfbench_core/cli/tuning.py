"""Shows the progress of a search on stderr: a bar on a terminal, otherwise a line for each improvement."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

import click

from cfbench_core.cli.output import duration
from cfbench_core.tuning.journal import Trial
from cfbench_core.tuning.results import number
from cfbench_core.wording import count_of

if TYPE_CHECKING:
    from cfbench_core.tuning.definition import Search
    from cfbench_core.tuning.search import Observer


@contextlib.contextmanager
def shown(search: Search, trials: int, quiet: bool) -> Iterator[Observer | None]:
    """An observer that draws on stderr until the block is left; None when nobody wants to look."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _Bar(search, trials) as bar:
            yield bar
    else:
        yield _Lines(search, trials, lambda line: click.echo(line, err=True))


def head_line(search: Search) -> str:
    """ "cfbench 0.1.0 · recommender/mf on ml-1m · 3 options · validation NDCG@10, higher is better · seed 0"."""
    tunable = search.tunable
    return " · ".join(
        [
            f"cfbench {version('cfbench-core')}",
            f"{search.component} on {tunable.data}",
            count_of(len(search.space), "option"),
            f"{tunable.metric}, {tunable.direction} is better",
            f"seed {search.prepared.config.seed}",
        ]
    )


class _Lines:
    """The head, what failed, and every trial that is better than all before it."""

    def __init__(self, search: Search, trials: int, write: Callable[[str], None]) -> None:
        self.search = search
        self.trials = trials
        self.write = write
        self.start = time.monotonic()

    def begun(self, trials: Sequence[Trial]) -> None:
        self.write(head_line(self.search))
        if trials:
            self.write(f"resumed  {len(trials)} of {self.trials} trials are in {self.search.directory}")

    def preparing(self, label: str) -> None:
        self.write(f"prepare  {label}")

    def progress(self, trial: int, share: float) -> None:
        """Lines do not move."""

    def tried(self, trial: Trial, best: Trial | None) -> None:
        if trial.value is None:
            self.write(f"{trial.status.replace('_', ' ').ljust(8)} trial {trial.number}: {trial.reason}")
        elif trial is best:
            elapsed = duration(time.monotonic() - self.start)
            self.write(f"better   trial {trial.number}: {number(trial.value)}, {elapsed}")


class _Bar:
    """One bar over all trials, with the best so far behind it; in a ``with`` block."""

    def __init__(self, search: Search, trials: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.trials = trials
        self.display = Progress(
            TextColumn("{task.description}"),
            BarColumn(28),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("to go"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.lines = _Lines(search, trials, self._write)
        self.task = self.display.add_task("tune", total=trials, note="", start=False)

    def __enter__(self) -> _Bar:
        self.display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.display.stop()

    def _write(self, line: str) -> None:
        self.display.console.print(line, markup=False, highlight=False)

    def begun(self, trials: Sequence[Trial]) -> None:
        self.lines.begun(trials)
        self.display.update(self.task, completed=len(trials))

    def preparing(self, label: str) -> None:
        self.display.update(self.task, description=f"prepare  {label}")

    def progress(self, trial: int, share: float) -> None:
        self.display.start_task(self.task)
        self.display.update(
            self.task, description=f"trial {trial + 1:>3}/{self.trials}", completed=trial + share
        )

    def tried(self, trial: Trial, best: Trial | None) -> None:
        if trial.value is None:
            self.lines.tried(trial, best)
        note = f"best {number(best.value)} (trial {best.number})" if best is not None else "none is good yet"
        self.display.update(self.task, completed=trial.number + 1, note=note)
