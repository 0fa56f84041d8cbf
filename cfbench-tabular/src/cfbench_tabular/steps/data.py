"""Preparing a data set, and reading it back."""

from __future__ import annotations

from typing import Any

from cfbench_core.stages import TaskContext
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Table


def read_data(context: TaskContext, loaded: Table) -> dict[str, Any]:
    """Splits the rows and fits the encoding."""
    parameters, generator = context.parameters, context.streams.generator("split")
    shares = parameters["validation"], parameters["test"]
    data = PreparedDataset.make(loaded, *shares, generator, parameters["decision_threshold"])
    data.save(context.output)
    return data.summary()


def load_data(context: TaskContext) -> PreparedDataset:
    """What :func:`read_data` wrote; stays in the process for the next task."""
    return context.load("data", PreparedDataset.load)
