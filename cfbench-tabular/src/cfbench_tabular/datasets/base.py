"""What the suite asks of a data set, and the reading of those that scikit-learn carries."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from cfbench_tabular.table import Column, Table


class Dataset(Protocol):
    """A component of kind "dataset": ``Name(config)``, then ``load()``."""

    def load(self) -> Table:
        """The rows as they were read, categorical values as text."""


def from_scikit_learn(name: str, bunch: Any, target_class: str | None) -> Table:
    """A table of numeric columns from what a ``sklearn.datasets.load_...`` function returns."""
    columns = tuple(Column(str(column)) for column in bunch.feature_names)
    values = {column.name: np.ascontiguousarray(bunch.data[:, place]) for place, column in enumerate(columns)}
    target = np.array([str(label) for label in bunch.target_names], dtype=object)[bunch.target]
    return Table(name, columns, values, target, target_class)
