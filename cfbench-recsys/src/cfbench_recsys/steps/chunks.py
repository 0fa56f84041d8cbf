"""The units of one task, and the users from whom explainers may learn."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.isolation.fingerprints import freeze
from cfbench_core.stages import TaskContext
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.remembered_scores import remembering
from cfbench_recsys.scope_labels import parse_scope
from cfbench_recsys.scoring import QUERIES
from cfbench_recsys.splits import Split, load_split
from cfbench_recsys.steps import WITHHELD
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
    seconds_of_loading: ClassVar[float] = 20.0

    def forget(self) -> None:
        """Releases what explainers computed once for all chunks, so that a call that is timed again computes it."""
        _learnable.cache_clear()

    def contract_columns(self) -> pd.DataFrame:
        """The columns of the contract that describe a unit."""
        return self.units[["unit", "user", "item", "rank"]].assign(
            level=self.targets.level, format=self.format
        )


def learnable(context: TaskContext) -> tuple[scipy.sparse.csr_matrix, dict[str, Any]]:
    """(users, items) interactions of users who are not explained, and room for what an explainer computes once from them."""
    inputs = context.input_paths
    return _learnable(inputs["split"], inputs[WITHHELD], context.task.stage_key)


@functools.lru_cache(maxsize=2)
def _learnable(split: Path, withheld: Path, stage_key: str) -> tuple[scipy.sparse.csr_matrix, dict[str, Any]]:
    training = load_split(split).train
    rows = np.repeat(np.arange(training.shape[0]), np.diff(training.indptr))
    training.data[np.isin(rows, load_withheld(withheld))] = 0.0
    training.eliminate_zeros()
    freeze(training)
    return training, {}


def open_chunk(context: TaskContext, data: SplitData, model: ScoringModel, units: pd.DataFrame) -> Chunk:
    """The units of a task with their histories.

    What the explainer learns from is read here, since reading it is no part of the time of an explanation.
    """
    if WITHHELD in context.input_paths:
        learnable(context)
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
