"""Gradient boosting: log(p1 / p0) = start + learning_rate * sum of small regression trees, each fitted to the residuals.

Trained by scikit-learn (Friedman 2001, log loss) on the training rows; the validation rows are not used. Stored as
arrays, from which it predicts (``trees.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/classifier/gradient-boosting",
    summary="Sum of small trees, each fitted to the residuals",
    target=f"{__name__}:GradientBoosting",
    config=f"{__name__}:Config",
    provides={"access": {"scores", "trees"}},
    papers=("friedman2001greedy",),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    trees: Annotated[int, Range(minimum=1), Help("number of trees")] = 100
    depth: Annotated[int, Range(minimum=1), Help("maximum depth of a tree")] = 3
    learning_rate: Annotated[float, Range(above=0), Help("weight of each tree")] = 0.1
    rows: Annotated[float, Range(above=0, maximum=1), Help("share of the training rows for each tree")] = 1.0


class GradientBoosting:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.trees: Trees
        self.start = 0.0

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        from sklearn.ensemble import GradientBoostingClassifier

        vectors, labels = data.sample("train")
        model = GradientBoostingClassifier(
            n_estimators=self.config.trees,
            max_depth=self.config.depth,
            learning_rate=self.config.learning_rate,
            subsample=self.config.rows,
            random_state=int(generator.integers(2**31)),
        ).fit(vectors, labels)
        share = labels.mean()
        self.start = float(np.log(share / (1.0 - share)))
        trees = model.estimators_[:, 0].tolist()
        step = self.config.learning_rate
        self.trees = Trees.of(trees, [step * tree.tree_.value[:, 0, 0] for tree in trees])

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        log_odds = self.start + self.trees.total(vectors)
        return np.stack([expit(-log_odds), expit(log_odds)], axis=1)

    def ensemble(self) -> tuple[Trees, float]:
        """The sum of the trees plus the start are the log-odds of class 1."""
        return self.trees, self.start

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return {**self.trees.state(), "start": np.array([self.start])}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        self.trees = Trees.from_state(state)
        self.start = float(state["start"][0])
