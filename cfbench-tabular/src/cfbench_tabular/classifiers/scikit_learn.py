"""Any estimator or pipeline with the methods of scikit-learn, trained here or pretrained.

``factory`` names a class of scikit-learn or of a library with its interface (``LIBRARIES``). In a module of your own it may
also name a function that returns the estimator (for example one that reads it from a file), or the estimator itself.
The estimator receives encoded rows, or with ``columns: raw`` a DataFrame with the columns and values of the
table (the nearest row for a vector that does not represent one).

Trained here, it learns the classes 0 and 1. A pretrained estimator may have other classes, also more than two:
P(class 1) is its probability of the target class.

Nothing is pickled. The state of an estimator that is trained here is its seed: loading the state trains it again.
Its ``random_state`` is set if it is None, so that the result is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import CodeReference, Help
from cfbench_core.config.code_references import named_object
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.classifiers.adapting import raw_columns
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/classifier/scikit-learn",
    summary="Any scikit-learn estimator or pipeline, trained here or loaded",
    target=f"{__name__}:ScikitLearn",
    config=f"{__name__}:Config",
    provides={"access": {"scores"}},
)


SEED = "random_state"
LIBRARIES = ("sklearn", "imblearn", "xgboost", "lightgbm", "catboost")
"""Packages whose estimators a configuration may name without a module of the user's own."""


@dataclass(frozen=True, kw_only=True)
class Config:
    factory: Annotated[
        str, CodeReference(LIBRARIES), Help("package.module:name of the estimator or of its factory")
    ] = "sklearn.naive_bayes:GaussianNB"
    options: Annotated[Mapping[str, Any], Help("arguments of the factory, by name: {n_neighbors: 3}")] = (
        field(default_factory=dict)
    )
    train: Annotated[bool, Help("train on the training rows; false: the estimator is pretrained")] = True
    columns: Annotated[Literal["encoded", "raw"], Help("input of the estimator: vectors, or a DataFrame")] = (
        "encoded"
    )


class ScikitLearn:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.estimator: Any = None
        self.encoding: Encoding
        self.seed = 0
        self.target_index = 1

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        self.encoding = data.encoding
        if self.config.train:
            self.seed = int(generator.integers(2**31))
            self._train(data)
        else:
            self.estimator = self._created()
            self.target_index = index_of_class(self.estimator, data.classes[1])

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        found = np.asarray(self.estimator.predict_proba(self._inputs(vectors)), dtype=np.float64)
        one = found[:, self.target_index]
        return np.stack([1.0 - one, one], axis=1)

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return {"seed": np.array([self.seed])}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        """Trains the estimator again, with the seed of the state."""
        self.encoding = data.encoding
        self.seed = int(state["seed"][0])
        if self.config.train:
            self._train(data)
        else:
            self.estimator = self._created()
            self.target_index = index_of_class(self.estimator, data.classes[1])

    def _train(self, data: PreparedDataset) -> None:
        vectors, labels = data.sample("train")
        estimator = self._created()
        if hasattr(estimator, "get_params"):
            unset = [
                name
                for name, value in estimator.get_params(deep=True).items()
                if value is None and (name == SEED or name.endswith(f"__{SEED}"))
            ]
            estimator.set_params(**dict.fromkeys(unset, self.seed))
        self.estimator = estimator.fit(self._inputs(vectors), labels)
        self.target_index = index_of_class(estimator, "1")

    def _inputs(self, vectors: FloatArray) -> Any:
        return raw_columns(self.encoding, vectors) if self.config.columns == "raw" else vectors

    def _created(self) -> Any:
        made = named_object(self.config.factory, "scikit-learn", LIBRARIES)
        if isinstance(made, type) and not hasattr(made, "fit"):
            raise UserError(f"scikit-learn: {self.config.factory} is not an estimator, it has no fit")
        if isinstance(made, type) or not hasattr(made, "predict_proba"):
            if not callable(made):
                raise UserError(f"scikit-learn: {self.config.factory} is neither a factory nor an estimator")
            made = made(**self.config.options)
        if not hasattr(made, "predict_proba"):
            raise UserError(f"scikit-learn: {type(made).__name__} has no predict_proba")
        return made


def index_of_class(estimator: Any, target: str) -> int:
    """The index of the target class, called ``target``, among the classes of an estimator.

    Raises:
        UserError: if it has neither that class, nor 0 and 1.
    """
    names = [str(name) for name in getattr(estimator, "classes_", (0, 1))]
    if target in names:
        return names.index(target)
    if sorted(names) == ["0", "1"]:
        return names.index("1")
    raise UserError(
        f"scikit-learn: {type(estimator).__name__} has the classes {', '.join(names)}; "
        f"it must have {target!r}, the target class, or 0 and 1"
    )
