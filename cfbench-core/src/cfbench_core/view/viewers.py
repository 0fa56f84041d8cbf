"""The viewer of a suite: a component of the kind ``viewer`` that turns one unit into blocks."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cfbench_core.registry import Registry
from cfbench_core.specs import resolve
from cfbench_core.view.blocks import Block, Grid, Text

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run, RunCell
    from cfbench_core.stages import TaskContext
    from cfbench_core.store import Store


@dataclass(frozen=True)
class UnitData:
    """One unit in one table of a run.

    Attributes:
        labels: those that the cells of the table share, as the suite's layout says.
        cells: the cells of the table that have a result, competitors first.
        explanations: by cell, the rows of ``explanations.parquet`` for the unit.
        scores: by cell and metric; absent where there is none.
        details, seconds: by cell, what ``details.parquet`` and ``costs.parquet`` say of the unit.
    """

    run: Run
    unit: str
    labels: Mapping[str, str | int]
    cells: Sequence[RunCell]
    explanations: Mapping[str, pd.DataFrame]
    scores: Mapping[str, Mapping[str, float]]
    details: Mapping[str, Mapping[str, float]]
    seconds: Mapping[str, float]

    def name(self, cell: RunCell) -> str:
        """What compares the cells: the explainer."""
        return str(cell.labels[self.run.layout.row])

    def artifact(self, role: str) -> Path | None:
        """The folder of a stage's result, by its role; None where it is not in the cache any more."""
        if not self.cells:
            return None
        key, store = recorded_stages(self.run, self.cells[0].id).get(role), known_store()
        return store.path(role, key) if key is not None and store.has(role, key) else None


def known_store() -> Store:
    """The cache, with the files that were already compared with their checksums."""
    from cfbench_core.store import default_root

    return _store_in(default_root())


@functools.lru_cache(maxsize=4)
def _store_in(root: Path) -> Store:
    from cfbench_core.store import Store

    return Store(root)


def recorded_stages(run: Run, cell: str) -> Mapping[str, str]:
    """The keys of a cell's stages by role, as the run recorded them."""
    for entry in run.plan["cells"]:
        if entry["cell"] == cell:
            stages: Mapping[str, str] = entry.get("stages", {})
            return stages
    return {}


@dataclass(frozen=True)
class LiveUnit:
    """One unit with its model, in the worker that queries it.

    Attributes:
        context: that of the stage which scores the unit. data, model: as the steps of the suite restored them.
        units: the row of ``units.parquet``. chunk: the unit as the step ``open_chunk`` opened it.
    """

    context: TaskContext
    data: Any
    model: Any
    units: pd.DataFrame
    chunk: Any


@dataclass(frozen=True)
class Constraints:
    """What an explainer that is queried anew must respect, by name of the editor's fields.

    Attributes:
        locked: fields that must keep their value.
        ranges: the least and the greatest value of a number.
    """

    locked: frozenset[str] = frozenset()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveExplainer:
    """One unit with a fresh explainer of one cell.

    Attributes:
        name: of the explainer. explainer, state: an instance, and what it learned in pre-training, or None.
        unit: in the stage that queries the explainer.
        derived: in the stage that derives the answer from that one's; None where the answer is not derived.
        scored: in the stage that scores the answer.
    """

    name: str
    explainer: Any
    state: Any
    unit: LiveUnit
    derived: LiveUnit | None
    scored: LiveUnit


class Viewer(Protocol):
    """The implementation behind a component of kind "viewer", constructed with None: there is nothing to set.

    Importing it must not import torch or pandas.
    """

    def unit(self, unit: UnitData, /) -> Sequence[Block]:
        """The page of a unit, below its scores. Reads the run and the cache; queries no model."""

    def respond(self, live: LiveUnit, edit: Mapping[str, bool | float | str], /) -> Sequence[Block]:
        """The model's answer to an edited unit: the values of the fields of the :class:`Editor` that differ.

        Raises:
            UserError: if the edit is impossible.
        """

    # A viewer whose editors are constrainable also has:
    #
    #     def explain(self, live: LiveExplainer, constraints: Constraints, /) -> Sequence[Block]
    #
    # the explainer's answer under the constraints, next to what the run has; UserError if they are impossible. One whose
    # editors have curves also has:
    #
    #     def curves(self, live: LiveUnit, unit: UnitData, /) -> Sequence[Block]
    #
    # An attribute ``edited`` names the column of explanations.parquet that says what an answer edits.


class PlainViewer:
    """The viewer of a suite that brings none: explanations as they stand in their table."""

    def unit(self, unit: UnitData) -> Sequence[Block]:
        return [
            Grid(unit.name(cell), [str(column) for column in rows.columns], _texts(rows))
            for cell in unit.cells
            for rows in [_own_columns(unit, cell)]
            if len(rows)
        ]

    def respond(self, live: LiveUnit, edit: Mapping[str, bool | float | str]) -> Sequence[Block]:
        raise NotImplementedError


def viewer_of(suite: str, registry: Registry | None = None) -> Viewer:
    """The viewer that a suite brings, or a plain one."""
    from cfbench_core.registry import installed

    found = (registry or installed()).components("viewer", suite)
    viewer: Viewer = resolve(found[0].spec.target)(None) if found else PlainViewer()
    return viewer


def _own_columns(unit: UnitData, cell: RunCell) -> pd.DataFrame:
    rows = unit.explanations[cell.id]
    return rows.drop(columns=[name for name in ("cell", "suite", "unit", *cell.labels) if name in rows])


def _texts(rows: pd.DataFrame) -> list[list[Text | str]]:
    return [[_shown(value) for value in row] for row in rows.itertuples(index=False)]


def _shown(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
