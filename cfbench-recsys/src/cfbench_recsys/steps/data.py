"""Dividing a dataset, and reading both back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cfbench_core.stages import TaskContext
from cfbench_recsys.interactions import Interactions, load_interactions
from cfbench_recsys.splits import Split, SplitConfig, load_split, make_split, save_split


def split_data(context: TaskContext) -> dict[str, Any]:
    """Training, validation, test."""
    interactions = context.load("data", load_interactions)
    split = make_split(
        interactions, SplitConfig(**context.parameters["split"]), context.streams.generator("split")
    )
    save_split(split, context.output)
    return {"interactions": {"train": int(split.train.nnz), "test": int(split.test.targets.nnz)}}


@dataclass(frozen=True)
class SplitData:
    """A dataset and its split: what models are fitted to and restored with."""

    interactions: Interactions
    split: Split


def load_data(context: TaskContext) -> SplitData:
    """The dataset and what :func:`split_data` wrote; stays in the process for the next task."""
    return SplitData(context.load("data", load_interactions), context.load("split", load_split))
