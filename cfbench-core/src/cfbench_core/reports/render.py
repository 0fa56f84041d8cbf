"""One run in one format."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cfbench_core.analyses import Answer, answers
from cfbench_core.errors import AnalysisWarning, UserError, did_you_mean
from cfbench_core.registry import Registry, installed
from cfbench_core.run_directory import Run

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("html", "markdown", "latex", "csv", "table")


def render(
    run: Run,
    format: str,
    path: str | Path | None = None,
    verbalization: str = "",
    registry: Registry | None = None,
) -> str:
    """The report of a run as text; also written to ``path`` where one is given.

    Args:
        format: one of FORMATS. "table" is what a terminal shows, 120 characters wide, without colours.
        verbalization: one explanation of the run as a sentence (HTML only).
        registry: where analyses of the run's suite are looked for (HTML only); what is installed when None.

    Warns:
        AnalysisWarning: for an analysis that fails; the page says so in its place.

    Raises:
        UserError: for an unknown format, or a run directory that cannot be read.
    """
    from cfbench_core.reports import csv, html, latex, markdown
    from cfbench_core.reports.tables import tables

    renderers: dict[str, Callable[[], str]] = {
        "html": lambda: html.render(run, verbalization, _answers(run, registry)),
        "markdown": lambda: markdown.render(tables(run)),
        "latex": lambda: latex.render(tables(run)),
        "csv": lambda: csv.render(tables(run)),
        "table": lambda: _text(run),
    }
    if format not in renderers:
        raise UserError(
            f"no report format {format!r}.{did_you_mean(format, FORMATS)} One of: {', '.join(FORMATS)}"
        )
    text = renderers[format]()
    if path is not None:
        from cfbench_core.files import write_atomically

        write_atomically(Path(path), text)
    return text


def write_html(run: Run, verbalization: str = "", registry: Registry | None = None) -> Path:
    """Writes ``report.html`` into the run directory and returns its path."""
    path = run.directory / "report.html"
    render(run, "html", path, verbalization, registry)
    return path


def _answers(run: Run, registry: Registry | None) -> list[Answer]:
    found = answers([run], registry or installed())
    for answer in found:
        if answer.problem:
            where = f"cfbench analyse {answer.name} {run.directory} --debug"
            warnings.warn(
                f"analysis {answer.name} failed: {answer.problem}  ({where})", AnalysisWarning, stacklevel=3
            )
    return found


def print_tables(run: Run, console: Console) -> None:
    """The tables on a terminal."""
    from cfbench_core.reports.tables import tables
    from cfbench_core.reports.terminal import show

    show(tables(run), console)


def _text(run: Run) -> str:
    import io

    from rich.console import Console

    out = io.StringIO()
    print_tables(run, Console(file=out, width=120, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
