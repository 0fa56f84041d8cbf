"""Random forest: P(class 1 | x) is the mean, over trees, of the share of class 1 in the leaf that x falls into.

Trained by scikit-learn (Breiman 2001) on the training rows; the validation rows are not used. Kept as arrays
and predicted from these (``trees.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.classifiers.base import Report
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    trees: Annotated[int, Range(minimum=1), Help("how many")] = 100
    depth: Annotated[int | None, Range(minimum=1), Help("of a tree at most; none: until leaves are pure")] = (
        None
    )
    leaf: Annotated[int, Range(minimum=1), Help("training rows in a leaf at least")] = 1
    features: Annotated[
        float, Range(above=0, maximum=1), Help("share of the encoded columns that a split looks at")
    ] = 0.3


class RandomForest:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.trees: Trees

    def fit(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        from sklearn.ensemble import RandomForestClassifier

        vectors, labels = problem.sample("train")
        forest = RandomForestClassifier(
            n_estimators=self.config.trees,
            max_depth=self.config.depth,
            min_samples_leaf=self.config.leaf,
            max_features=self.config.features,
            random_state=int(generator.integers(2**31)),
        ).fit(vectors, labels)
        counts = [estimator.tree_.value[:, 0, :] for estimator in forest.estimators_]
        self.trees = Trees.of(forest.estimators_, [count[:, 1] / count.sum(axis=1) for count in counts])

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        one = self.trees.total(vectors) / len(self.trees.roots)
        return np.stack([1.0 - one, one], axis=1)

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return self.trees.state()

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.trees = Trees.from_state(state)
