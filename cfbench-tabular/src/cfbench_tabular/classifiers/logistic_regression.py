"""Logistic regression: P(class 1 | x) = 1 / (1 + exp(-(w . x + b))), with an L2 penalty.

Trained by scikit-learn (L-BFGS) on the training rows; the validation rows are not used. w: (d,), b: number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/classifier/logistic-regression",
    summary="Linear log-odds with an L2 penalty",
    target=f"{__name__}:LogisticRegression",
    config=f"{__name__}:Config",
    provides={"access": {"gradients", "layers", "scores"}},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    C: Annotated[float, Range(above=0), Help("inverse of the weight of the L2 penalty")] = 1.0
    iterations: Annotated[int, Range(minimum=1), Help("maximum number of solver iterations")] = 1000


class LogisticRegression:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.coefficients: FloatArray = np.empty(0)
        self.intercept = 0.0

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        from sklearn.linear_model import LogisticRegression as Estimator

        vectors, labels = data.sample("train")
        estimator = Estimator(C=self.config.C, max_iter=self.config.iterations).fit(vectors, labels)
        self.coefficients = estimator.coef_[0].astype(np.float64)
        self.intercept = float(estimator.intercept_[0])

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        log_odds = vectors @ self.coefficients + self.intercept
        return np.stack([expit(-log_odds), expit(log_odds)], axis=1)

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        return np.tile(self.coefficients, (len(vectors), 1))

    def layers(self) -> Sequence[tuple[FloatArray, FloatArray]]:
        half = np.array([-0.5, 0.5])
        return [(self.coefficients[:, None] * half, self.intercept * half)]

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return {"coefficients": self.coefficients, "intercept": np.array([self.intercept])}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        self.coefficients = np.asarray(state["coefficients"], dtype=np.float64)
        self.intercept = float(state["intercept"][0])
