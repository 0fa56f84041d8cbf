"""Metrics of explanations, read from the table of the contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.config import create
from cfbench_core.stages import TaskContext
from cfbench_recsys.explanations import read_edits, read_importances
from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.observations import ExplicitObservations, ImplicitObservations
from cfbench_recsys.stages.common import Chunk, chunk_of, setting_of


def score_implicit(task: TaskContext) -> dict[str, Any]:
    """Metrics of importances."""
    setting = setting_of(task)
    chunk = chunk_of(task, setting, task.parameters["scope"])
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    importances, answered = read_importances(table, setting.interactions, chunk.targets, chunk.units["unit"])
    observed = ImplicitObservations(setting.model, chunk.targets, importances, setting.split.profiles)
    return _write_scores(task, chunk, observed, answered)


def score_explicit(task: TaskContext) -> dict[str, Any]:
    """Metrics of edits."""
    setting = setting_of(task)
    chunk = chunk_of(task, setting, task.parameters["scope"])
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    edits = read_edits(
        table, setting.interactions, chunk.targets, chunk.units["unit"], setting.split.profiles
    )
    observed = ExplicitObservations(setting.model, chunk.targets, edits, setting.split.profiles)
    return _write_scores(task, chunk, observed, np.ones(len(edits), dtype=bool))


def _write_scores(task: TaskContext, chunk: Chunk, observed: Any, answered: np.ndarray) -> dict[str, Any]:
    """``scores.parquet``: metric by metric, a row for each unit."""
    metrics = [create(parameters) for parameters in task.parameters["metrics"]]
    values = compute_metrics(metrics, observed)
    frame = chunk.units[["unit", "user", "item", "rank"]]
    status = np.where(answered, "ok", "skipped")
    parts = [
        frame.assign(metric=name, value=np.where(answered, column, np.nan), status=status)
        for name, column in values.items()
    ]
    scores = pd.concat(parts, ignore_index=True)[
        ["metric", "unit", "value", "status", "user", "item", "rank"]
    ]
    scores.to_parquet(task.output / "scores.parquet", index=False, compression="zstd")
    return {"units": len(chunk.units)}
