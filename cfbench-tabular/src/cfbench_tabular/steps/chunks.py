"""The rows that one task explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.instance_features import instance_features
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray, IntArray


@dataclass(frozen=True)
class Chunk:
    """The B factuals of one task.

    Attributes:
        units: B rows of ``units.parquet``.
        model: the classifier. data: its data set.
        factuals: the units as explainers see them.
        background, labels: (n, d) the encoded training rows, and (n,) their classes.
        indices: (B,) where the factuals are in the arrays of the table.
    """

    units: pd.DataFrame
    model: Classifier
    data: PreparedDataset
    factuals: Factuals
    background: FloatArray
    labels: IntArray

    @property
    def indices(self) -> IntArray:
        return self.data.table.file_rows.indices(self.units["row"].to_numpy())

    queries: ClassVar[tuple[str, ...]] = ("predict_proba", "log_odds_gradient")
    seconds_of_loading: ClassVar[float] = 20.0


def open_chunk(context: TaskContext, data: PreparedDataset, model: Classifier, units: pd.DataFrame) -> Chunk:
    """The units of a task with their encoded rows."""
    vectors = data.vectors[data.table.file_rows.indices(units["row"].to_numpy())]
    factuals = Factuals(vectors, units["factual_class"].to_numpy(), tuple(units["unit"]))
    return Chunk(units, model, data, factuals, *data.sample("train"))


def describe(chunk: Chunk) -> dict[str, FloatArray]:
    """The features of the factuals, whichever method explains them."""
    return instance_features(chunk.model, chunk.data, chunk.factuals, chunk.indices)
