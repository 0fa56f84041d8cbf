"""Adapters for pretrained models and models of raw columns.

A pretrained model has only ``predict_proba``: it is not fitted and has no state, because ``import:`` creates it again.
A class with ``columns = "raw"`` receives a pandas DataFrame with the columns and values of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier, Report
from cfbench_tabular.classifiers.base import Wrapped
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray

if TYPE_CHECKING:
    import pandas as pd

LEARNING = ("fit", "state", "load_state")
"""The methods that a trainable classifier has; a pretrained one has none of them."""


def is_raw(model: Any) -> bool:
    """Whether a model, or its class, expects raw columns."""
    columns = getattr(model, "columns", "encoded")
    return isinstance(columns, str) and columns == "raw"


def adapted(model: Any, encoding: Encoding) -> Classifier:
    """The model itself if it satisfies the contract, else an adapter of it."""
    complete: Classifier = model
    if all(hasattr(model, name) for name in LEARNING) and not is_raw(model):
        return complete
    return Adapted(model, encoding)


class Adapted(Wrapped):
    def __init__(self, model: Any, encoding: Encoding) -> None:
        self._model = model
        self._encoding = encoding
        self._raw = is_raw(model)
        self._learns = hasattr(model, "state")

    def __getattr__(self, name: str) -> Any:
        """Delegates gradients and layers of a model of encoded rows."""
        if name.startswith("_") or self._raw:
            raise AttributeError(name)
        return getattr(self._model, name)

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        if self._learns:
            self._model.fit(data, generator, report)

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        found: FloatArray = self._model.predict_proba(
            raw_columns(self._encoding, vectors) if self._raw else vectors
        )
        return found

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        found: Mapping[str, np.ndarray[Any, Any]] = self._model.state() if self._learns else {}
        return found

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        if self._learns:
            self._model.load_state(state, data)


def raw_columns(encoding: Encoding, vectors: FloatArray) -> pd.DataFrame:
    """The rows of vectors (n, d) in raw columns; the nearest row for a vector that does not represent one."""
    import pandas as pd

    return pd.DataFrame(encoding.decode(encoding.project(vectors)))
