"""Any estimator or pipeline with scikit-learn's methods, trained here or ready made.

``factory`` names a class, a function that returns the estimator (one that reads it from a file, say), or the
estimator itself. It is given encoded rows, or with ``columns: raw`` a DataFrame with the table's own columns and
values, of a vector that is no row those of the nearest row.

Trained here, it learns 0 and 1. A ready-made one may know other classes, more than two as well: P(class 1) is its
probability of the target class.

Nothing is pickled. What is kept of an estimator that is trained here is what it is trained from, and whoever needs it
trains it again; its ``random_state`` is set where it has none, so that it comes out the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help
from cfbench_core.errors import UserError
from cfbench_tabular.classifiers.adapting import named_object, raw_columns
from cfbench_tabular.classifiers.base import Report
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray, IntArray

SEED = "random_state"


@dataclass(frozen=True, kw_only=True)
class Config:
    factory: Annotated[str, Help("package.module:name of what makes it, or of itself")] = (
        "sklearn.naive_bayes:GaussianNB"
    )
    options: Annotated[Mapping[str, Any], Help("of the factory, by name: {n_neighbors: 3}")] = field(
        default_factory=dict
    )
    train: Annotated[bool, Help("here, on the training rows; false: it comes ready made")] = True
    columns: Annotated[Literal["encoded", "raw"], Help("what it is given: vectors, or a DataFrame")] = (
        "encoded"
    )


class ScikitLearn:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.estimator: Any = None
        self.encoding: Encoding
        self.learned: dict[str, np.ndarray[Any, Any]] = {}
        self.one = 1

    def fit(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        self.encoding = problem.encoding
        if self.config.train:
            vectors, labels = problem.sample("train")
            seed = np.array([generator.integers(2**31)])
            self.learned = {"vectors": vectors, "labels": labels, "seed": seed}
            self._train(vectors, labels, int(seed[0]))
        else:
            self.estimator = self._made()
            self.one = place_of_class(self.estimator, problem.classes[1])

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        found = np.asarray(self.estimator.predict_proba(self._seen(vectors)), dtype=np.float64)
        one = found[:, self.one]
        return np.stack([1.0 - one, one], axis=1)

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        told = json.dumps(self.encoding.to_json()).encode()
        return {**self.learned, "encoding": np.frombuffer(told, dtype=np.uint8), "one": np.array([self.one])}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.encoding = Encoding.from_json(json.loads(state["encoding"].tobytes()))
        self.learned = {name: state[name] for name in ("vectors", "labels", "seed") if name in state}
        if self.learned:
            self._train(self.learned["vectors"], self.learned["labels"], int(self.learned["seed"][0]))
        else:
            self.estimator = self._made()
        self.one = int(state["one"][0])

    def _train(self, vectors: FloatArray, labels: IntArray, seed: int) -> None:
        estimator = self._made()
        if hasattr(estimator, "get_params"):
            unset = [
                name
                for name, value in estimator.get_params(deep=True).items()
                if value is None and (name == SEED or name.endswith(f"__{SEED}"))
            ]
            estimator.set_params(**dict.fromkeys(unset, seed))
        self.estimator = estimator.fit(self._seen(vectors), labels)
        self.one = place_of_class(estimator, "1")

    def _seen(self, vectors: FloatArray) -> Any:
        return raw_columns(self.encoding, vectors) if self.config.columns == "raw" else vectors

    def _made(self) -> Any:
        made = named_object(self.config.factory, "scikit-learn")
        if isinstance(made, type) or not hasattr(made, "predict_proba"):
            if not callable(made):
                raise UserError(f"scikit-learn: {self.config.factory} is neither a factory nor an estimator")
            made = made(**self.config.options)
        if not hasattr(made, "predict_proba"):
            raise UserError(f"scikit-learn: {type(made).__name__} has no predict_proba")
        return made


def place_of_class(estimator: Any, wanted: str) -> int:
    """Which of an estimator's probabilities is that of the target class, ``wanted`` by name.

    Raises:
        UserError: when it knows neither that class, nor 0 and 1.
    """
    names = [str(name) for name in getattr(estimator, "classes_", (0, 1))]
    if wanted in names:
        return names.index(wanted)
    if sorted(names) == ["0", "1"]:
        return names.index("1")
    raise UserError(
        f"scikit-learn: {type(estimator).__name__} knows the classes {', '.join(names)}; "
        f"it must know {wanted!r}, the class to tell from the rest, or 0 and 1"
    )
