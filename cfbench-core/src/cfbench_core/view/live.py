"""Queries of a run's model for one edited unit, or of an explainer under constraints, in a worker with a time limit.

The worker plans the run's configuration again, because classes come from the configuration and never from the cache, and
reads the artifacts that the run recorded.
"""

from __future__ import annotations

import functools
import multiprocessing
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.errors import UserError
from cfbench_core.view.blocks import to_json
from cfbench_core.view.viewers import (
    Constraints,
    LiveExplainer,
    LiveUnit,
    known_store,
    recorded_stages,
    viewer_of,
)

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from cfbench_core.plan import Cell
    from cfbench_core.run_directory import Run

SECONDS = 60.0
"""The most that one query may take; the first one imports libraries and restores the model."""

Edit = Mapping[str, bool | float | str]


class LiveModels:
    """One worker for all queries; it starts with the first one and is ended when a query takes too long."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._worker: tuple[BaseProcess, Connection[Any, Any]] | None = None

    def respond(self, directory: Path, cell: str, unit: str, edit: Edit) -> list[Any]:
        """The blocks with which the suite's viewer answers an edit.

        Raises:
            UserError: if the model cannot be restored, the edit is impossible, or the time is up.
        """
        return self._queried(directory, cell, unit, dict(edit), None)

    def explain(self, directory: Path, cell: str, unit: str, constraints: Constraints) -> list[Any]:
        """The blocks with which the suite's viewer shows what the cell's explainer answers under constraints.

        Raises:
            UserError: if the explainer or the model cannot be restored, the constraints are impossible, or the time is up.
        """
        return self._queried(directory, cell, unit, None, constraints)

    def curves(self, directory: Path, table: int, cell: str, unit: str) -> list[Any]:
        """The deletion and insertion curves of a unit, for the explainers of a table.

        Raises:
            UserError: if the model cannot be restored, the suite has no such curves, or the time is up.
        """
        return self._queried(directory, cell, unit, None, table)

    def _queried(self, directory: Path, *request: Any) -> list[Any]:
        with self._lock:
            _, pipe = self._started()
            try:
                pipe.send((str(directory), *request))
                if not pipe.poll(self.seconds):
                    self._end()
                    raise UserError(f"there was no answer within {self.seconds:g} s")
                found, problem = pipe.recv()
            except (EOFError, OSError) as error:
                self._end()
                raise UserError(f"the process that queries models ended ({type(error).__name__})") from None
        if problem is not None:
            raise UserError(*problem)
        blocks: list[Any] = found
        return blocks

    def close(self) -> None:
        with self._lock:
            self._end()

    def _started(self) -> tuple[BaseProcess, Connection[Any, Any]]:
        if self._worker is None or not self._worker[0].is_alive():
            spawning = multiprocessing.get_context("spawn")
            own, theirs = spawning.Pipe()
            process = spawning.Process(target=work, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._worker = process, own
        return self._worker

    def _end(self) -> None:
        if self._worker is not None:
            process, pipe = self._worker
            pipe.close()
            process.kill()
            process.join()
            self._worker = None


def work(pipe: Connection[Any, Any]) -> None:
    """The loop of the worker: (directory, cell, unit, edit, further) -> (blocks, None) or (None, lines of a problem)."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    while True:
        try:
            request = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            pipe.send((to_json(_answer(*request)), None))
        except UserError as error:
            pipe.send((None, error.lines))
        except Exception as error:  # a component's own fault must not end the viewer
            pipe.send((None, (f"{type(error).__name__}: {error}",)))


def _answer(
    directory: str, cell: str, unit: str, edit: Edit | None, further: Constraints | int | None
) -> list[Any]:
    """``further``: the constraints under which the explainer is queried, or the number of the table whose curves are
    drawn."""
    run = _run(Path(directory), (Path(directory) / "plan.json").stat().st_mtime_ns)
    viewer = viewer_of(run.suite)
    if isinstance(further, int):
        return _curves(run, viewer, further, cell, unit)
    if further is None:
        return list(viewer.respond(live_unit(run, cell, unit), edit or {}))
    if not hasattr(viewer, "explain"):
        raise UserError(f"the viewer of the suite {run.suite} cannot query explainers")
    return list(viewer.explain(live_explainer(run, cell, unit), further))


def _curves(run: Run, viewer: Any, table: int, cell: str, unit: str) -> list[Any]:
    from cfbench_core.view.queries import RunView

    if not hasattr(viewer, "curves"):
        raise UserError(f"the viewer of the suite {run.suite} has no curves")
    data = RunView(run, viewer).unit_data(table, unit)
    return list(viewer.curves(live_unit(run, cell, unit), data))


@functools.lru_cache(maxsize=4)
def _run(directory: Path, changed: int) -> Run:
    from cfbench_core.run_directory import Run

    return Run(directory)


@functools.lru_cache(maxsize=16)
def live_unit(run: Run, cell: str, unit: str) -> LiveUnit:
    """A unit of a run with its model.

    Raises:
        UserError: if the configuration cannot be planned here, or an artifact is not in the cache.
    """
    return _opened(run, cell, unit, _planned_cell(run, cell).stages["scores"])


def live_explainer(run: Run, cell: str, unit: str) -> LiveExplainer:
    """A unit of a run with its model and a fresh explainer.

    Raises:
        UserError: as :func:`live_unit`, and for explanations that no explainer here made.
    """
    from cfbench_core.config.component import create
    from cfbench_core.lifecycle.models import load_state

    planned = _planned_cell(run, cell)
    stage = planned.stages["explanations"]
    derived = stage if "source" in stage.inputs else None
    queried = stage.inputs["source"] if derived else stage
    if "explainer" not in queried.parameters:
        raise UserError(f"{cell}: its explanations are external, or the model explains itself")
    unit_there = _opened(run, cell, unit, queried)
    context = unit_there.context
    state = context.load("explainer", load_state) if "explainer" in context.input_paths else None
    return LiveExplainer(
        str(planned.labels[run.layout.row]),
        create(queried.parameters["explainer"]),
        state,
        unit_there,
        _opened(run, cell, unit, derived) if derived else None,
        live_unit(run, cell, unit),
    )


def _planned_cell(run: Run, cell: str) -> Cell:
    planned = _planned(run.directory, (run.directory / "config.yaml").stat().st_mtime_ns).get(cell)
    if planned is None or not recorded_stages(run, cell):
        raise UserError(f"{cell}: the configuration of the run does not plan this cell here")
    return planned


def _opened(run: Run, cell: str, unit: str, stage: Any) -> LiveUnit:
    """A unit as a stage of its cell opens it."""
    from cfbench_core.lifecycle.stages import model_of
    from cfbench_core.lifecycle.tables import read_units
    from cfbench_core.stages import TaskContext

    recorded, store = recorded_stages(run, cell), known_store()
    roles = {role: inner for role, inner in stage.inputs.items() if role in recorded and not inner.chunked}
    lacking = [role for role, inner in roles.items() if not store.has(inner.kind, recorded[role])]
    if lacking:
        raise UserError(
            f"the {', '.join(lacking)} of this cell is not in the cache ({store.root}) any more;"
            f" cfbench run {run.directory}/config.yaml computes it again"
        )
    paths = {role: store.path(inner.kind, recorded[role]) for role, inner in roles.items()}
    context = TaskContext(_task(stage, {role: recorded[role] for role in roles}), run.directory, paths)
    data, model = model_of(context)
    units = read_units(paths["units"])
    units = units[units["unit"].astype(str) == unit].reset_index(drop=True)
    if units.empty:
        raise UserError(f"{unit!r} is not a unit of {cell}")
    return LiveUnit(context, data, model, units, context.step("open_chunk")(context, data, model, units))


def _task(stage: Any, keys: Mapping[str, str]) -> Any:
    from cfbench_core.stages import MODEL, Task

    return Task(
        key="",
        stage_key="",
        kind=stage.kind,
        label=stage.label,
        target=stage.target,
        parameters=stage.parameters,
        inputs=dict(keys),
        input_kinds={role: stage.inputs[role].kind for role in keys},
        seed=stage.seed,
        steps=stage.steps,
        dataset=stage.dataset,
        models={
            role: inner.parameters[MODEL] for role, inner in stage.inputs.items() if MODEL in inner.parameters
        },
    )


@functools.lru_cache(maxsize=4)
def _planned(directory: Path, changed: int) -> dict[str, Cell]:
    """The cells that the configuration of a run plans here, by id."""
    from cfbench_core.api import prepare
    from cfbench_core.data_files import DataAccess

    prepared = prepare(directory / "config.yaml", access=DataAccess(offline=True))
    return {cell.id: cell for cell in prepared.plan.cells}
