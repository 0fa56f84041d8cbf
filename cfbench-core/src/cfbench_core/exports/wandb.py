"""Weights & Biases: one run with the summary as a table and the tables of the run as an artifact.

Where WANDB_MODE is "offline", everything stays on this machine until ``wandb sync``.
"""

from __future__ import annotations

from cfbench_core.exports.shared import client, facts_of, metrics_of, present
from cfbench_core.run_directory import Run

PROJECT = "cfbench"


def export(run: Run, destination: str | None, name: str) -> str:
    """Logs to the project ``destination``."""
    wandb = client("wandb", "wandb")
    project = destination or PROJECT
    status = {cell.id: cell.status for cell in run.cells()}
    with wandb.init(project=project, name=name, config={**run.config, "cfbench": facts_of(run)}) as logged:
        summary = run.summary
        logged.log(
            {
                "summary": wandb.Table(
                    columns=list(summary.columns), data=summary.astype(object).values.tolist()
                )
            }
        )
        logged.log(
            {"cells": wandb.Table(columns=["cell", "status"], data=[[*pair] for pair in status.items()])}
        )
        for cell, metrics in metrics_of(run).items():
            logged.summary.update({f"{cell}/{metric}": value for metric, value in metrics.items()})
        artifact = wandb.Artifact(_artifact_name(name), type="cfbench-run")
        for path in [*present(run), *(run.verified(f"{table}.parquet") for table in run.table_names)]:
            artifact.add_file(str(path))
        logged.log_artifact(artifact)
        where = f"offline in {logged.dir}; wandb sync publishes it" if logged.offline else str(logged.url)
    return f"logged {len(status)} cells to the project {project}: {where}"


def _artifact_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)[:128]
