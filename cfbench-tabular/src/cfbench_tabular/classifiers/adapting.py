"""Objects that are almost classifiers of the suite: ready made ones, and models of raw columns.

A ready-made model has ``predict_proba`` alone: it is not fitted and nothing of it is kept, since ``import:`` makes it
again. A class that declares ``columns = "raw"`` is given a pandas DataFrame with the table's own columns and values.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.classifiers.base import Classifier, Report, Wrapped
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray

if TYPE_CHECKING:
    import pandas as pd

LEARNING = ("fit", "state", "load_state")
"""What a classifier has all of, or nothing of when it comes ready made."""


def is_raw(model: Any) -> bool:
    """Whether a model, or its class, wants raw columns."""
    columns = getattr(model, "columns", "encoded")
    return isinstance(columns, str) and columns == "raw"


def adapted(model: Any, encoding: Encoding) -> Classifier:
    """The model itself where it has all that the suite asks for, else what stands between the two."""
    whole: Classifier = model
    if all(hasattr(model, name) for name in LEARNING) and not is_raw(model):
        return whole
    return Adapted(model, encoding)


class Adapted(Wrapped):
    def __init__(self, model: Any, encoding: Encoding) -> None:
        self._model = model
        self._encoding = encoding
        self._raw = is_raw(model)
        self._learns = hasattr(model, "state")

    def __getattr__(self, name: str) -> Any:
        """Gradients and layers, of a model of encoded rows."""
        if name.startswith("_") or self._raw:
            raise AttributeError(name)
        return getattr(self._model, name)

    def fit(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        if self._learns:
            self._model.fit(problem, generator, report)

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        found: FloatArray = self._model.predict_proba(
            raw_columns(self._encoding, vectors) if self._raw else vectors
        )
        return found

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        found: Mapping[str, np.ndarray[Any, Any]] = self._model.state() if self._learns else {}
        return found

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        if self._learns:
            self._model.load_state(state)


def raw_columns(encoding: Encoding, vectors: FloatArray) -> pd.DataFrame:
    """The rows of vectors (n, d) as the table has them; of a vector that is no row, the nearest one."""
    import pandas as pd

    return pd.DataFrame(encoding.decode(encoding.project(vectors)))


def named_object(reference: str, what: str) -> Any:
    """What ``"package.module:name"`` of the user's names.

    Raises:
        UserError: when it cannot be imported.
    """
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise UserError(f"{what}: {reference!r} must be 'package.module:name'")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the user's own module: whatever it raises is the user's to see
        raise UserError(f"{what}: cannot import {module_name}: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise UserError(f"{what}: {module_name} has no {name!r}.{did_you_mean(name, vars(module))}")
    return getattr(module, name)
