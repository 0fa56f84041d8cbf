"""The stages of ``protocol: paper``, which load the published split and factuals of CF-tabular."""

from __future__ import annotations

from typing import Any

from cfbench_core.stages import TaskContext
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.stages import load_model, read_table, units_table
from cfbench_tabular.study import StudyFiles


def read_study(task: TaskContext) -> dict[str, Any]:
    """Writes the published rows, splits and scales of the data set."""
    data = StudyFiles.of(task.parameters["study"]).prepared_dataset(read_table(task))
    data.save(task.output)
    return data.summary()


def choose_study_units(task: TaskContext) -> dict[str, Any]:
    """Writes ``units.parquet`` as :func:`~cfbench_tabular.stages.choose_units` does, for the published factuals."""
    data = task.load("data", PreparedDataset.load)
    files = StudyFiles.of(task.parameters["study"])
    rows, factuals, matched = files.factual_rows(data, task.parameters["factuals"])
    units, counts = units_table(data, rows, predicted_classes(load_model(task), data.vectors[rows]))
    units.to_parquet(task.output / "units.parquet", index=False)
    summary = {"groups": len(rows), "factuals": counts, "matched": matched, "of": factuals}
    if len(rows) < factuals:
        summary["note"] = (
            f"{matched} of the {factuals} published factuals are rows of the data set, {len(rows)} of them distinct"
        )
    return summary
