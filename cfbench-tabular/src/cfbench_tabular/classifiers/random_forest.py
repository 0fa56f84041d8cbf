"""Random forest: P(class 1 | x) is the mean over trees of the share of class 1 in the leaf of x.

Trained by scikit-learn (Breiman 2001) on the training rows; the validation rows are not used. Stored as arrays, from
which it predicts (``trees.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/classifier/random-forest",
    summary="Mean of decision trees on bootstrap samples of the training rows",
    target=f"{__name__}:RandomForest",
    config=f"{__name__}:Config",
    provides={"access": {"scores", "trees"}},
    papers=("breiman2001forests",),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    trees: Annotated[int, Range(minimum=1), Help("number of trees")] = 100
    depth: Annotated[
        int | None, Range(minimum=1), Help("maximum depth of a tree; none: until leaves are pure")
    ] = None
    leaf: Annotated[int, Range(minimum=1), Help("minimum number of training rows in a leaf")] = 1
    features: Annotated[
        float, Range(above=0, maximum=1), Help("share of the encoded columns considered for a split")
    ] = 0.3


class RandomForest:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.trees: Trees

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        from sklearn.ensemble import RandomForestClassifier

        vectors, labels = data.sample("train")
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

    def ensemble(self) -> tuple[Trees, float]:
        """The trees vote with the shares of class 1 in their leaves; class 1 needs more than half."""
        return self.trees, -0.5 * len(self.trees.roots)

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return self.trees.state()

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        self.trees = Trees.from_state(state)
