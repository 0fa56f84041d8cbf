"""The stages that ``protocol: paper`` has in place of reading, dividing and choosing: they take the study's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.stages import TaskContext
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.problem import PARTS, Problem
from cfbench_tabular.stages import load_model, read_table
from cfbench_tabular.study import StudyFiles


def read_study(task: TaskContext) -> dict[str, Any]:
    """The study's rows, splits and scales."""
    problem = StudyFiles.of(task.parameters["study"]).problem(read_table(task))
    problem.save(task.output)
    return problem.summary()


def choose_study_units(task: TaskContext) -> dict[str, Any]:
    """The study's factuals, as rows. ``units.parquet`` as that of :func:`~cfbench_tabular.stages.choose_units`."""
    problem = task.load("data", Problem.load)
    files = StudyFiles.of(task.parameters["study"])
    rows, factuals, matched = files.factual_rows(problem, task.parameters["factuals"])
    classes = predicted_classes(task.load("model", load_model), problem.vectors[rows])
    units = pd.DataFrame(
        {
            "unit": [str(row) for row in rows],
            "group": np.arange(len(rows)),
            "row": rows,
            "factual_class": classes,
            "part": np.array(PARTS)[problem.split[rows]],
        }
    )
    units.to_parquet(task.output / "units.parquet", index=False)
    counts = {name: int((classes == label).sum()) for label, name in enumerate(problem.classes)}
    told = {"groups": len(rows), "factuals": counts, "matched": matched, "of": factuals}
    if len(rows) < factuals:
        told["note"] = (
            f"{matched} of the study's {factuals} factuals are rows, {len(rows)} of them different ones"
        )
    return told
