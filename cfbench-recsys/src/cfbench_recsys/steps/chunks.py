"""The units of one task, and the users from whom explainers may learn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from cfbench_core.stages import TaskContext
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.remembered_scores import remembering
from cfbench_recsys.scope_labels import parse_scope
from cfbench_recsys.scoring import QUERIES
from cfbench_recsys.splits import Split
from cfbench_recsys.steps.data import SplitData
from cfbench_recsys.targets import Scope, Targets

_FILE = "withheld.parquet"


def write_withheld(context: TaskContext, users: IntArray) -> dict[str, Any]:
    """Writes the users from whom no explainer may learn, and returns the stage's summary: how many there are."""
    pd.DataFrame({"user_index": users}).to_parquet(context.output / _FILE, index=False)
    return {"users": len(users)}


def load_withheld(folder: Path) -> IntArray:
    """Users from whom no explainer may learn."""
    return pd.read_parquet(folder / _FILE)["user_index"].to_numpy(np.int64)


@dataclass(frozen=True)
class Chunk:
    """The units of one task, B of them.

    Attributes:
        units: B rows of ``units.parquet``.
        model: the recommender. interactions, split: its data.
        targets: the units as explainers see them.
        format: "implicit" or "explicit".
    """

    units: pd.DataFrame
    model: ScoringModel
    interactions: Interactions
    split: Split
    targets: Targets
    format: str

    queries: ClassVar[tuple[str, ...]] = QUERIES

    def contract_columns(self) -> pd.DataFrame:
        """The columns of the contract that describe a unit."""
        return self.units[["unit", "user", "item", "rank"]].assign(
            level=self.targets.level, format=self.format
        )


def open_chunk(context: TaskContext, data: SplitData, model: ScoringModel, units: pd.DataFrame) -> Chunk:
    """The units of a task with their histories."""
    point = context.parameters
    scope, hops = parse_scope(point["scope"])
    targets = Targets.of(
        data.split.profiles,
        units["user_index"].to_numpy(np.int64),
        np.stack(units["items_index"].to_list()).astype(np.int64),
        point["k"],
        point["level"],
        cast(Scope, scope),
        point.get("edit") == "remove-or-add",
        hops,
        int(most) if (most := str(point["max_edits"])).isdigit() else None,
    )
    return Chunk(units, remembering(model), data.interactions, data.split, targets, point["format"])
