"""How far a run is, also while another process computes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cfbench_core.locks import is_locked
from cfbench_core.run_directory import Run, RunCell


@dataclass(frozen=True)
class CellProblem:
    """A cell that was tried and has not all of its results, with its status and the reason."""

    cell: str
    status: str
    reason: str


@dataclass(frozen=True)
class RunStatus:
    """The progress of a run.

    Attributes:
        state: ``stopped``: cells are missing and no process computes them; the command of the run resumes it.
        cells: the number of cells by status: ``ok``, ``cached``, ``failed``, ``skipped``, ``planned``, ...
        tasks: the number of tasks that ended, by status.
        seconds: that computing these tasks took, one after the other; those from the cache are left out.
    """

    directory: str
    suite: str
    state: Literal["running", "stopped", "finished"]
    cells: Mapping[str, int]
    tasks: Mapping[str, int]
    seconds: float
    problems: Sequence[CellProblem]


def status(run: Run | str | Path) -> RunStatus:
    """The progress of a run, given as such or as its directory.

    Raises:
        UserError: if the directory holds no run, or its files are damaged.
    """
    run = run if isinstance(run, Run) else Run(run)
    ended = _outcomes(run)
    return RunStatus(
        str(run.directory),
        run.suite,
        _state(run),
        dict(Counter(cell.status for cell in run.cells())),
        dict(Counter(outcome["status"] for outcome in ended)),
        sum(outcome["elapsed_seconds"] for outcome in ended if outcome["status"] != "cached"),
        tuple(CellProblem(c.id, c.status, c.reason) for c in run.cells() if ended_badly(c)),
    )


def ended_badly(cell: RunCell) -> bool:
    """Whether a cell was tried and has not all of its results."""
    return cell.problem and cell.status != "planned"


def _outcomes(run: Run) -> list[Mapping[str, Any]]:
    """The last outcome of each task; none before the first task has ended."""
    if not (run.directory / "outcomes.jsonl").exists() and is_locked(run.directory):
        return []
    return [*{outcome["key"]: outcome for outcome in run.outcomes}.values()]


def _state(run: Run) -> Literal["running", "stopped", "finished"]:
    if is_locked(run.directory):
        return "running"
    return "stopped" if any(cell.status == "planned" for cell in run.cells()) else "finished"
