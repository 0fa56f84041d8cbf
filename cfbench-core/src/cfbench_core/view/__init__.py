"""The viewer of runs: ``cfbench view``, as a local server or a static bundle.

See ``docs/adr/0025-viewer.md`` for the data flow. ``serve`` needs ``pip install cfbench-core[view]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

__all__ = ["export", "serve"]


def serve(
    runs: Run | str | Path | Sequence[Run | str | Path], *, port: int = 0, browser: bool = True
) -> None:
    """Serves the viewer on 127.0.0.1 until Ctrl-C.

    Args:
        runs: run directories, or runs; one or several.
        port: 0 for any free one.
        browser: opens the page in a browser.

    Raises:
        UserError: if a directory is no run, the port is taken, or Starlette and uvicorn are not installed.
    """
    from cfbench_core.view.server import serve_runs

    serve_runs(_listed(runs), port=port, browser=browser)


def export(
    runs: Run | str | Path | Sequence[Run | str | Path], directory: str | Path, *, units: int = 200
) -> Path:
    """Writes the viewer as files that open from a folder or any static host; returns the path of ``index.html``.

    Args:
        runs: as in :func:`serve`.
        directory: a new or empty folder.
        units: maximum number of unit pages for each table. Tables of units are complete.

    Raises:
        UserError: if a directory is no run, or ``directory`` is not empty.
    """
    from cfbench_core.view.bundle import write_bundle

    return write_bundle(_listed(runs), Path(directory), units)


def _listed(runs: Run | str | Path | Sequence[Run | str | Path]) -> list[Run]:
    from cfbench_core.run_directory import Run

    several = [runs] if isinstance(runs, (Run, str, Path)) else list(runs)
    return [run if isinstance(run, Run) else Run(run) for run in several]
