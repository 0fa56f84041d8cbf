"""The steps of ``protocol: paper``, which take the published split and factuals of CF-tabular."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.steps.units import units_table
from cfbench_tabular.study import StudyFiles
from cfbench_tabular.study_factuals import prepared_factuals
from cfbench_tabular.table import Table


def read_data(context: TaskContext, loaded: Table) -> dict[str, Any]:
    """The published rows, splits and scales of the data set."""
    files = StudyFiles.of(context.parameters["study"])
    data = files.prepared_dataset(loaded) if files.rows.is_file() else prepared_factuals(files, loaded)
    data = replace(data, decision_threshold=context.parameters["decision_threshold"])
    data.save(context.output)
    return data.summary()


def choose_units(
    context: TaskContext, data: PreparedDataset, model: Classifier
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The published factuals that are rows of the data set."""
    files = StudyFiles.of(context.parameters["study"])
    rows, factuals, matched = files.factual_rows(data, context.parameters["factuals"])
    units, summary = units_table(data, rows, predicted_classes(model, data.vectors[rows]))
    summary |= {"matched": matched, "of": factuals}
    if len(rows) < factuals:
        lacking = f"{matched} of the {factuals} published factuals are rows of the data set, {len(rows)} of them distinct"
        summary["note"] = "; ".join([lacking, *([summary["note"]] if "note" in summary else [])])
    return units, summary
