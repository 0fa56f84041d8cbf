"""Handwritten digits (UCI, 8 x 8 pixels, as scikit-learn ships them), and a classifier of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfbench_core.specs import ComponentSpec

SPECS = (
    ComponentSpec(
        id="images/dataset/digits", summary="1,797 handwritten digits", target=f"{__name__}:Digits"
    ),
    ComponentSpec(
        id="images/classifier/softmax", summary="Logistic regression", target=f"{__name__}:Softmax"
    ),
)


class Digits:
    def __init__(self, config: None) -> None: ...

    def load(self) -> tuple[Any, Any]:
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        return pixels / 16, labels


class Softmax:
    def __init__(self, config: None) -> None: ...

    def fit(self, pixels: Any, labels: Any) -> None:
        from sklearn.linear_model import LogisticRegression

        fitted = LogisticRegression(max_iter=1000).fit(pixels, labels)
        self.weights, self.bias = fitted.coef_.T, fitted.intercept_

    def predict_proba(self, pixels: Any) -> Any:
        logits = np.einsum("bp,pc->bc", pixels, self.weights) + self.bias  # a row is the same in every batch
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def state(self) -> Mapping[str, Any]:
        return {"weights": self.weights, "bias": self.bias}

    def load_state(self, state: Mapping[str, Any], data: Any) -> None:
        self.weights, self.bias = state["weights"], state["bias"]
