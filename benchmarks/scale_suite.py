"""A suite of cheap cells for ``scale.py``: what remains of the time of a run is that of cfbench itself.

data -> model -> units -> explanations (per chunk) -> scores (per chunk). Each unit has ``metrics`` values, drawn once for
each cell and chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.lifecycle.tables import units_of_chunk, write_explanations, write_scores, write_units
from cfbench_core.plan import Cell, Column, TableLayout
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import UNITS, Stage, TaskContext
from cfbench_core.suites import Experiment


@dataclass(frozen=True, kw_only=True)
class CheapConfig(Experiment):
    cells: int = 100
    rows: int = 20  # cells of one table
    users: int = 50
    metrics: int = 4


class CheapSuite:
    config = CheapConfig
    layout = TableLayout(by=("dataset", "model"), row="explainer")

    def cells(
        self, config: CheapConfig, registry: Any, access: Any = None, explanations: Path | None = None
    ) -> Sequence[Cell]:
        data = Stage("data", "users", "scale_suite:nothing", {"users": config.users})
        model = Stage("model", "cheap", "scale_suite:nothing", {"model": {"options": {}}}, {"data": data})
        units = Stage("units", "units", "scale_suite:choose", {"users": config.users}, {"model": model})
        columns = tuple(Column(f"metric-{n}", "higher", (0, 1)) for n in range(config.metrics))
        return [self._cell(config, number, model, units, columns) for number in range(config.cells)]

    def _cell(
        self, config: CheapConfig, number: int, model: Stage, units: Stage, columns: tuple[Column, ...]
    ) -> Cell:
        explained = Stage(
            "explanations",
            f"explainer-{number}",
            "scale_suite:explain",
            {"cell": number},
            {"model": model, UNITS: units},
            config.seed,
            chunked=True,
        )
        scores = Stage(
            "scores",
            f"explainer-{number}",
            "scale_suite:score",
            {"metrics": config.metrics},
            {"explanations": explained, UNITS: units},
            config.seed,
            chunked=True,
        )
        table, row = divmod(number, config.rows)
        labels = {"dataset": "users", "model": f"model-{table}", "explainer": f"explainer-{row}"}
        stages = {"model": model, UNITS: units, "explanations": explained, "scores": scores}
        return Cell(labels, columns, stages)

    def describe_data(self, config: CheapConfig, summaries: Mapping[str, Any]) -> str:
        return f"users ({config.users:,})"

    def verbalize(self, run: Any) -> str:
        return ""


def nothing(context: TaskContext) -> None:
    (context.output / "nothing.txt").write_text("nothing\n")


def choose(context: TaskContext) -> dict[str, Any]:
    users = np.arange(int(context.parameters["users"]))
    return {"groups": write_units(context, pd.DataFrame({"unit": users.astype(str), "group": users}))}


def explain(context: TaskContext) -> dict[str, Any]:
    units = units_of_chunk(context)
    return write_explanations(context, units, units[["unit"]].assign(item="1", importance=1.0), 1e-3)


def score(context: TaskContext) -> dict[str, Any]:
    units = units_of_chunk(context)
    draws = np.random.default_rng([context.task.chunk[0], int(context.task.key[:12], 16)])  # type: ignore[index]
    shape = int(context.parameters["metrics"]), len(units)
    values = {f"metric-{n}": column for n, column in enumerate(draws.random(shape))}
    write_scores(context, units, (), values, np.ones(len(units), dtype=bool))
    return {"units": len(units)}


SPECS = [
    ComponentSpec(id="cheap/suite/cheap", summary="Cheap cells", target="scale_suite:CheapSuite"),
]
