"""What the stages after the model work on: data, split, model, and the units of one chunk."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.stages import UNITS, TaskContext
from cfbench_recsys.edits import IntArray
from cfbench_recsys.interactions import Interactions, load_interactions
from cfbench_recsys.models import load_model
from cfbench_recsys.splits import Split, load_split
from cfbench_recsys.targets import Targets


def load_data_and_split(folder: Path) -> tuple[Interactions, Split]:
    return load_interactions(folder / "data"), load_split(folder)


@dataclass(frozen=True)
class Setting:
    """What every stage after the model works on."""

    interactions: Interactions
    split: Split
    model: Any


def setting_of(task: TaskContext) -> Setting:
    interactions, split = task.load("split", load_data_and_split)
    return Setting(interactions, split, _model(task.input_paths["model"], task.input_paths["split"]))


@functools.lru_cache(maxsize=4)
def _model(folder: Path, split_folder: Path) -> Any:
    """A fitted model; cached in this process, since many chunks use it (a folder's name is its content's hash)."""
    return load_model(folder, load_split(split_folder).profiles)


def load_units(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "units.parquet")


WITHHELD = "withheld.parquet"
"""A file next to the units: further users from whom no explainer may learn (``user_index``), if there are any."""


def load_withheld(folder: Path) -> IntArray:
    """Users from whom no explainer may learn: those of the units, and those that are withheld in addition."""
    users = load_units(folder)["user_index"].unique()
    if (folder / WITHHELD).exists():
        users = np.union1d(users, pd.read_parquet(folder / WITHHELD)["user_index"])
    return users.astype(np.int64)


@dataclass(frozen=True)
class Chunk:
    """The units of one task."""

    units: pd.DataFrame
    targets: Targets

    def slice(self, level: str, format: str) -> pd.DataFrame:
        """The columns of the contract that say what a unit is."""
        return self.units[["unit", "user", "item", "rank"]].assign(level=level, format=format)


def chunk_of(task: TaskContext, setting: Setting, scope: str) -> Chunk:
    units = task.load(UNITS, load_units)
    if task.chunk is not None:
        start, stop = task.chunk
        units = units[(units["group"] >= start) & (units["group"] < stop)].reset_index(drop=True)
    targets = Targets.of(
        setting.split.profiles,
        units["user_index"].to_numpy(np.int64),
        np.stack(units["items_index"].to_list()).astype(np.int64),
        task.parameters["k"],
        task.parameters["level"],
        scope,  # type: ignore[arg-type]
        task.parameters.get("edit") == "remove-or-add",
    )
    return Chunk(units, targets)
