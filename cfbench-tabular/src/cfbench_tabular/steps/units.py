"""Which rows are explained."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.prepared_dataset import PART_NAMES, PreparedDataset
from cfbench_tabular.table import AnyArray, IntArray

MOST_NAMED = 5
"""Columns with filled-in values that a note names."""


def choose_units(
    context: TaskContext, data: PreparedDataset, model: Classifier
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Up to ``factuals`` rows of each predicted class, test rows first, training rows last."""
    classes = predicted_classes(model, data.vectors)
    if (
        len(set(classes)) == 1
    ):  # a rate of 0 would be a result of the classifier, shown as one of the explainers
        message = (
            f"the classifier predicts one class ({data.predictions[classes[0]]}) for every row: explainers that start"
            " from rows of the other class find nothing"
        )
        warnings.warn(message, ResultWarning, stacklevel=2)
    explained = np.ones(len(classes), dtype=np.bool_)
    if data.table.factual_class is not None:
        # With a low decision threshold, the target may be predicted although another class is more probable.
        explained = (predicted_names(model, data) == data.table.factual_class) & (classes == 0)
    generator, most = context.streams.generator("factuals"), context.parameters["factuals"]
    candidates = np.concatenate(
        [generator.permutation(data.rows(part)) for part in ("test", "validation", "train")]
    )
    candidates = candidates[explained[candidates]]
    chosen = np.concatenate([candidates[classes[candidates] == label][:most] for label in (0, 1)])
    return units_table(data, chosen, classes[chosen])


def predicted_names(model: Any, data: PreparedDataset) -> AnyArray:
    """(N,) the class that a model of all classes predicts for each row of the table."""
    if not hasattr(model, "predicted_names"):
        raise UserError(
            f"factual_class: {data.table.factual_class} needs a model of all classes, for example "
            "{name: scikit-learn, classes: all}"
        )
    found: AnyArray = model.predicted_names(data.vectors)
    return found


def units_table(
    data: PreparedDataset, rows: IntArray, classes: IntArray
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The units of the given rows (n,), indices, with their predicted classes (n,), and the summary of the stage.

    Columns: unit (the position of the row in the file, as text), group, row (the same, as a number), factual_class (0 or 1,
    as predicted), part, imputed (the filled-in values of the row by column, as JSON; missing if there are none).
    """
    in_file = data.table.file_rows.in_file(rows)
    imputed = data.table.imputed_columns(in_file)
    units = pd.DataFrame(
        {
            "unit": [str(row) for row in in_file],
            "group": np.arange(len(rows)),
            "row": in_file,
            "factual_class": classes,
            "part": np.array(PART_NAMES)[data.split[rows]],
            "imputed": pd.array(
                [json.dumps(own, ensure_ascii=False) if own else None for own in imputed], dtype="string"
            ),
        }
    )
    summary: dict[str, Any] = {
        "factuals": {name: int((classes == n).sum()) for n, name in enumerate(data.predictions)}
    }
    if any(imputed):
        summary["note"] = _on_imputed(imputed)
    return units, summary


def _on_imputed(imputed: Sequence[Mapping[str, str]]) -> str:
    """How many of the rows have filled-in values, and in which columns."""
    counts = Counter(name for own in imputed for name in own)
    most = [f"{name} {count}" for name, count in counts.most_common(MOST_NAMED)]
    if len(counts) > MOST_NAMED:
        most.append("...")
    rows = sum(map(bool, imputed))
    return f"filled-in missing values in {rows} of the {len(imputed)} explained rows ({', '.join(most)})"
