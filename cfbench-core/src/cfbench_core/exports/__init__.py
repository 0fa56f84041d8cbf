"""Export a run to other tools: CSV files, MLflow, Weights & Biases, and the layout of a Hugging Face dataset.

Each exporter uses the client of the project in question, where there is one, and writes the run's own numbers: the rows of
``summary.csv``, and the tables. A cell that failed or was skipped is exported with its status, and without numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.specs import resolve

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

_EXPORTERS: Mapping[str, str] = {
    "csv": "cfbench_core.exports.csv_files:export",
    "huggingface": "cfbench_core.exports.huggingface:export",
    "mlflow": "cfbench_core.exports.mlflow:export",
    "wandb": "cfbench_core.exports.wandb:export",
}
FORMATS = tuple(_EXPORTERS)


def export(run: Run | str | Path, to: str, destination: str | None = None, name: str | None = None) -> str:
    """Exports a run, and returns a sentence about what was written where.

    Args:
        run: a run, or its directory.
        to: one of :data:`FORMATS`.
        destination: ``csv`` and ``huggingface``: a folder that does not exist yet or is empty; by default NAME-TO
            in the working directory. ``mlflow``: the tracking URI; by default that of the environment, else ``sqlite:///mlflow.db``.
            ``wandb``: the project; by default "cfbench".
        name: of the run; by default that of its directory.

    Raises:
        UserError: for an unknown format, a client that is not installed, a folder that is not empty, or a damaged run.
    """
    if to not in _EXPORTERS:
        raise UserError(f"cannot export to {to!r}.{did_you_mean(to, FORMATS)}  ({', '.join(FORMATS)})")
    from cfbench_core.run_directory import Run

    run = run if isinstance(run, Run) else Run(run)
    exporter: Callable[[Run, str | None, str], str] = resolve(_EXPORTERS[to])
    return exporter(run, destination, name or run.directory.resolve().name)
