"""Reading a data set, and dividing it."""

from __future__ import annotations

from typing import Any

from cfbench_core.config import create
from cfbench_core.seeds import generator
from cfbench_core.stages import TaskContext
from cfbench_recsys.interactions import Interactions, load_interactions
from cfbench_recsys.splits import SplitConfig, make_split, save_split


def read_data(task: TaskContext) -> dict[str, Any]:
    """A data set, from its file."""
    dataset = create(task.parameters["dataset"])
    interactions: Interactions = dataset.load(task.parameters["source"])
    interactions.save(task.output)
    return interactions.summary()


def split_data(task: TaskContext) -> dict[str, Any]:
    """Training, validation, test; the data travel along, so that later stages need one input only."""
    interactions = task.load("data", load_interactions)
    # By name, not by the stage's key: a new version of the code must not mean another split.
    stream = generator(task.task.seed, "split", interactions.name)
    split = make_split(interactions, SplitConfig(**task.parameters["split"]), stream)
    interactions.save(task.output / "data")
    save_split(split, task.output)
    return {"interactions": {"train": int(split.train.nnz), "test": int(split.test.targets.nnz)}}
