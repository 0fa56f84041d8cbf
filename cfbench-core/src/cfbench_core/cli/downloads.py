"""Shows a download: a bar on a terminal, one line otherwise; and the licence before it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.data_files import DataAccess
from cfbench_core.wording import size

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@contextlib.contextmanager
def data_access(
    data_dir: Path | None, offline: bool, quiet: bool = False, planning: bool = False
) -> Iterator[DataAccess]:
    """Access to data sets that shows on stderr what it downloads."""
    bars = _Bars(quiet)
    try:
        yield DataAccess(data_dir, offline, bars.moved, bars.notify, planning)
    finally:
        bars.close()


class _Bars:
    """A bar for each file. Nothing is imported or drawn before the first byte."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.progress: Progress | None = None
        self.tasks: dict[str, TaskID] = {}

    def notify(self, line: str) -> None:
        if self.progress is not None and self.progress.live.is_started:
            self.progress.console.print(line, markup=False, highlight=False)
        else:
            click.echo(line, err=True)

    def moved(self, name: str, done: int, total: int | None) -> None:
        if self.quiet:
            return
        if self.progress is None:
            self.progress = _progress()
        if name not in self.tasks:
            self.tasks[name] = self.progress.add_task(name, total=total)
            if not self.progress.console.is_terminal:
                click.echo(f"downloading {name}{f' ({size(total)})' if total else ''}", err=True)
        self.progress.update(self.tasks[name], completed=done, total=total)

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    progress.start()
    return progress
