"""Any estimator or pipeline with the methods of scikit-learn, trained here or pretrained.

``factory`` names a class of scikit-learn or of a library with its interface (``LIBRARIES``). In a module of your own it may
also name a function that returns the estimator (for example one that reads it from a file), or the estimator itself.
The estimator receives encoded rows, or with ``columns: raw`` a DataFrame with the columns and values of the
table (the nearest row for a vector that does not represent one).

Trained here, it learns the target class against the rest, or with ``classes: all`` every class of the table. A pretrained
estimator may have other classes, also more than two. P(class 1) is the probability of the target class; with
``classes: all`` the target class is predicted where it is the most probable one (``targets.py``), or, with
``protocol.decision_threshold``, where its probability among all classes is above that. Where several classes are equally
and most probable, the estimator's own ``predict`` decides, also between the two classes of an estimator with
``classes: target``; of one that has more, the target class needs more than half.

A regressor predicts the range of ``threshold`` or ``target_range``, limits included.

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
from cfbench_tabular.classifiers.targets import decided, of_classes, of_numbers
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.number_range import NumberRange
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import AnyArray, FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/classifier/scikit-learn",
    summary="Any scikit-learn estimator or pipeline, trained here or loaded",
    target=f"{__name__}:ScikitLearn",
    config=f"{__name__}:Config",
    provides={"access": {"scores"}},
    version="3",
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
    classes: Annotated[
        Literal["target", "all"],
        Help(
            "target: the target class or the rest; all: every class, of which the most probable is predicted"
        ),
    ] = "target"
    columns: Annotated[Literal["encoded", "raw"], Help("input of the estimator: vectors, or a DataFrame")] = (
        "encoded"
    )

    @property
    def default_label(self) -> str:
        """The class: "XGBClassifier"."""
        return self.factory.rpartition(":")[2]


class ScikitLearn:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.estimator: Any = None
        self.encoding: Encoding
        self.seed = 0
        self.target_index = 1
        self.names: list[str] = []
        self.range: NumberRange | None = None  # of a regressor
        self.scale = 1.0
        self.compares = True  # the target class with the most probable other one, and not with a threshold

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        self._prepare(data)
        if self.config.train:
            self.seed = int(generator.integers(2**31))
            self._train(data)
        else:
            self._load(data)

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        inputs = self._inputs(vectors)
        if self.range is not None:
            values = np.asarray(self.estimator.predict(inputs)).reshape(-1)
            inside = self.target_index == 1
            return of_numbers(values, self.range.low, self.range.high, self.scale, inside)
        found = np.asarray(self.estimator.predict_proba(inputs), dtype=np.float64)
        if self.compares and self.config.classes == "all":
            return of_classes(found, self.target_index, self._winners(found, vectors) == self.target_index)
        one = found[:, self.target_index]
        pair = np.stack([1.0 - one, one], axis=1)
        if self.compares and found.shape[1] == 2:
            return decided(pair, self._winners(found, vectors) == self.target_index)
        return pair

    def predicted_names(self, vectors: FloatArray) -> AnyArray:
        """(n,) the class, of all, that the estimator predicts, by name."""
        found = np.asarray(self.estimator.predict_proba(self._inputs(vectors)), dtype=np.float64)
        names: AnyArray = np.array(self.names, dtype=object)[self._winners(found, vectors)]
        return names

    def _winners(self, found: FloatArray, vectors: FloatArray) -> IntArray:
        """(n,) the index of the most probable class; where several are, of the one that the estimator predicts."""
        winners: IntArray = found.argmax(axis=1)
        ties = np.flatnonzero((found == found.max(axis=1, keepdims=True)).sum(axis=1) > 1)
        if len(ties):
            names = [str(name) for name in getattr(self.estimator, "classes_", range(found.shape[1]))]
            predicted = np.asarray(self.estimator.predict(self._inputs(vectors[ties]))).reshape(-1)
            place = {name: index for index, name in enumerate(names)}
            for row, name in zip(ties.tolist(), predicted.tolist(), strict=True):
                winners[row] = place.get(str(name), winners[row])
        return winners

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return {"seed": np.array([self.seed])}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        """Trains the estimator again, with the seed of the state."""
        self._prepare(data)
        self.seed = int(state["seed"][0])
        if self.config.train:
            self._train(data)
        else:
            self._load(data)

    def _prepare(self, data: PreparedDataset) -> None:
        self.encoding, self.compares = data.encoding, data.decision_threshold == 0.5

    def _load(self, data: PreparedDataset) -> None:
        self.estimator = self._created()
        if self._is_regressor(data):
            return
        self.target_index = index_of_class(self.estimator, data.classes[1])
        self.names = [str(name) for name in getattr(self.estimator, "classes_", data.classes)]

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
        self.estimator = estimator
        if self._is_regressor(data):
            assert data.table.numbers is not None
            self.estimator = estimator.fit(self._inputs(vectors), data.table.numbers[data.rows("train")])
            return
        if self.config.classes == "target":
            self.estimator = estimator.fit(self._inputs(vectors), labels)
            self.target_index = index_of_class(estimator, "1")
            return
        names = np.unique(data.table.target).tolist()  # numbers, because not every library accepts text
        numbers = np.searchsorted(names, data.table.target[data.rows("train")].tolist())
        self.estimator = estimator.fit(self._inputs(vectors), numbers)
        self.names = [names[int(number)] for number in estimator.classes_]
        self.target_index = self.names.index(data.classes[1])

    def _is_regressor(self, data: PreparedDataset) -> bool:
        """Whether the estimator predicts numbers; then also sets the range and the scale of the class column.

        Raises:
            UserError: if it does, but the class column has no numbers.
        """
        if hasattr(self.estimator, "predict_proba"):
            return False
        table, name = data.table, type(self.estimator).__name__
        if table.numbers is None or table.number_range is None:
            raise UserError(
                f"scikit-learn: {name} has no predict_proba. A regressor needs a class column of numbers with "
                "'threshold' or 'target_range'"
            )
        if data.decision_threshold != 0.5:
            raise UserError(
                f"scikit-learn: {name} predicts numbers, not probabilities: protocol.decision_threshold does not apply to "
                "it. Remove it, or take a classifier"
            )
        self.range = table.number_range
        self.scale = float(table.numbers[data.rows("train")].std()) or 1.0
        self.target_index = int(data.classes[1] == self.range.inside)
        return True

    def _inputs(self, vectors: FloatArray) -> Any:
        return raw_columns(self.encoding, vectors) if self.config.columns == "raw" else vectors

    def _created(self) -> Any:
        made = named_object(self.config.factory, "scikit-learn", LIBRARIES)
        if isinstance(made, type) and not hasattr(made, "fit"):
            raise UserError(f"scikit-learn: {self.config.factory} is not an estimator, it has no fit")
        if isinstance(made, type) or not hasattr(made, "predict"):
            if not callable(made):
                raise UserError(f"scikit-learn: {self.config.factory} is neither a factory nor an estimator")
            made = made(**self.config.options)
        if not hasattr(made, "predict"):
            raise UserError(f"scikit-learn: {type(made).__name__} has neither predict_proba nor predict")
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
