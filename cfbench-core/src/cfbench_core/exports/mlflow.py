"""MLflow: a parent run with the files of the run, and a nested run for each cell with its labels, status and metrics."""

from __future__ import annotations

import os
from typing import Any

from cfbench_core.exports.shared import client, facts_of, metrics_of, parameters_of, present
from cfbench_core.run_directory import Run

EXPERIMENT = "cfbench"
LOCAL = "sqlite:///mlflow.db"


def export(run: Run, destination: str | None, name: str) -> str:
    """Logs to the tracking server or database ``destination``."""
    mlflow = client("mlflow", "mlflow")
    uri = destination or os.environ.get("MLFLOW_TRACKING_URI") or LOCAL
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT)
    metrics = metrics_of(run)
    with mlflow.start_run(run_name=name):
        mlflow.set_tags({f"cfbench.{key}": value for key, value in facts_of(run).items()})
        for path in present(run):
            mlflow.log_artifact(str(path))
        for cell in run.cells():
            _log_cell(mlflow, cell, metrics.get(cell.id, {}))
    return f"logged {len(run.cells())} cells to the experiment {EXPERIMENT} at {uri}"


def _log_cell(mlflow: Any, cell: Any, metrics: dict[str, float]) -> None:
    with mlflow.start_run(run_name=cell.id, nested=True):
        mlflow.log_params(parameters_of(cell))
        mlflow.set_tags({"cfbench.status": cell.status, "cfbench.reason": cell.reason})
        if metrics:
            mlflow.log_metrics(metrics)
