"""The plan: every cell of an experiment, with its stages or the reason why it is skipped, as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cfbench_core.ids import join_ids
from cfbench_core.stages import Stage

MODEL_QUERIES = "model queries"
"""The detail (``details.parquet``) that holds how often the model was queried for an answer."""


@dataclass(frozen=True)
class Column:
    """A column of the scores: one number that a metric gives for each unit.

    ``direction`` is "higher", "lower" or "" (neither is better, for example #Perturb of methods that add).
    ``range`` bounds its values, by ``math.inf`` where only one side is bounded; ``question`` is what it asks, in a sentence.
    ``note`` says how far its values can be trusted and stands below each table; with ``doubtful`` the column is marked
    there: what it rests on is not shown to be reliable.
    ``required`` is for a rate: units where it is 0 have no value in the other columns when the best of a table is decided.
    """

    name: str
    direction: str = ""
    range: tuple[float, float] | None = None
    question: str = ""
    note: str = ""
    doubtful: bool = False
    required: bool = False


TIME = Column("time", "lower", None, "How long does one explanation take, in seconds of wall time?")
"""The column that every cell has in addition to its metrics, from ``costs.parquet``."""


@dataclass(frozen=True)
class Cell:
    """One place of the experiment's grid.

    Attributes:
        labels: what distinguishes it from other cells, in order (dataset, model, explainer, level, ...); columns of the
            tables.
        columns: what is measured in it.
        stages: by role. ``"scores"`` ends in ``scores.parquet`` (metric, unit, value, status and the suite's own
            columns), ``"explanations"`` in ``explanations.parquet`` and ``costs.parquet`` (unit, elapsed_seconds),
            if it reports details also ``details.parquet`` (unit, name, value);
            ``"model"`` reports ``{"quality": {...}}`` in its summary; ``"units"`` lists the units. Empty when skipped.
        skipped: why there is nothing to run; empty when there is.
        role: "baseline", "reference" or "certified" for a control, as its explainer's spec says.
        remark: what to know about its results, known before they are computed; shown like their warnings.
    """

    labels: Mapping[str, str | int]
    columns: Sequence[Column] = ()
    stages: Mapping[str, Stage] = field(default_factory=dict)
    skipped: str = ""
    role: str = ""
    remark: str = ""

    @property
    def id(self) -> str:
        return join_ids(*self.labels.values())


LabelFormat = str | Mapping[str, str]
"""How the values of a label read: a format, ``"top {}"``, or a text for each value."""


@dataclass(frozen=True)
class TableLayout:
    """How a suite's results are laid out: one table for each value of ``by``, one line for each ``row``.

    ``cluster`` names the column of the scores whose equal values mark units that are not independent of each other (units
    of one user): intervals draw these, not units. Empty: every unit stands for itself. ``unit_columns`` are columns of
    ``units.parquet`` that the scores have too: they say what a unit is, also where it has no result. ``tables`` are
    further tables of the run directory: a file of the artifacts, and in which role these are. ``label_formats`` says
    how labels read: ``{"k": "top {}"}``, see ``reports/labels.py``. ``primary`` are the metrics that decide tables: the
    first of them that a table has orders its rows and decides the headline (see ``primary_metric.py``); without one it is
    the first metric with a better direction.
    """

    by: tuple[str, ...]
    row: str
    cluster: str = ""
    unit_columns: tuple[str, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    label_formats: Mapping[str, LabelFormat] = field(default_factory=dict)
    primary: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All cells, and how their results are laid out."""

    suite: str
    cells: tuple[Cell, ...]
    layout: TableLayout

    def __repr__(self) -> str:
        """Without the cells, whose options fill pages."""
        return f"Plan(suite={self.suite!r}, {len(self.to_run)} cells to run, {len(self.skipped)} skipped)"

    @property
    def to_run(self) -> list[Cell]:
        return [cell for cell in self.cells if not cell.skipped]

    @property
    def skipped(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.skipped]

    def stages(self) -> list[Stage]:
        """Every stage that is needed, once, each after those it reads."""
        ordered: dict[str, Stage] = {}

        def visit(stage: Stage) -> None:
            if stage.key not in ordered:
                for needed in stage.inputs.values():
                    visit(needed)
                ordered[stage.key] = stage

        for cell in self.cells:
            for stage in cell.stages.values():
                visit(stage)
        return list(ordered.values())

    def columns(self) -> Iterator[Column]:
        """The columns of all cells, each name once, in order of appearance."""
        seen = set()
        for cell in self.cells:
            for column in cell.columns:
                if column.name not in seen:
                    seen.add(column.name)
                    yield column

    def to_json(self) -> list[dict[str, Any]]:
        """``plan.json``: every cell with its labels, status, reason, columns and stage keys. An infinite bound is null."""
        return [
            {
                "cell": cell.id,
                **cell.labels,
                "role": cell.role,
                "status": "skipped" if cell.skipped else "planned",
                "reason": cell.skipped,
                "metrics": [
                    {
                        "name": c.name,
                        "direction": c.direction,
                        "range": c.range and [bound if math.isfinite(bound) else None for bound in c.range],
                        "question": c.question,
                        "note": c.note,
                        "doubtful": c.doubtful,
                        "required": c.required,
                    }
                    for c in cell.columns
                ],
                "stages": {role: stage.key for role, stage in cell.stages.items()},
            }
            for cell in self.cells
        ]
