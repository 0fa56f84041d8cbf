"""``cfbench export``: a run for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import options
from cfbench_core.cli.group import subcommand
from cfbench_core.exports import FORMATS


@subcommand(
    "export",
    examples=(
        "cfbench export runs/study --to csv                                  a folder of CSV files",
        "cfbench export runs/study --to huggingface --destination study-data a dataset with a card",
        "cfbench export runs/study --to mlflow --destination sqlite:///mlflow.db",
        "WANDB_MODE=offline cfbench export runs/study --to wandb --destination my-project",
    ),
)
@options.run_directory()
@click.option("--to", type=click.Choice(FORMATS), required=True, help="Format or tool to export to.")
@click.option(
    "--destination",
    metavar="WHERE",
    help="csv, huggingface: a new folder. mlflow: a tracking URI. wandb: a project.",
)
@click.option("--name", metavar="NAME", help="Name of the exported run; by default that of DIR.")
def command(directory: Path, to: str, destination: str | None, name: str | None) -> None:
    """Export a run to CSV files, a Hugging Face dataset, MLflow or Weights & Biases.

    Cells that failed or were skipped are exported with their status. MLflow and Weights & Biases need their clients:
    pip install mlflow, pip install wandb.
    """
    from cfbench_core.exports import export

    click.echo(export(directory, to, destination, name))
