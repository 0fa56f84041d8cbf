"""What the components of the suite must offer. Images are vectors of P pixels in [0, 1]."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from cfbench_core.contracts import Persistent


class Images(NamedTuple):
    """(N, P) pixels, (N,) labels, and (N,) whether an image is for the test."""

    pixels: Any
    labels: Any
    test: Any


class Observed(NamedTuple):
    """What metrics see: (B, P) originals and counterfactuals (NaN: no answer), (B,) whether the class changed."""

    originals: Any
    counterfactuals: Any
    changed: Any


class Classifier(Persistent, Protocol):
    def fit(self, pixels: Any, labels: Any) -> None:
        """Trains the classifier on (N, P) pixels and (N,) labels."""

    def predict_proba(self, pixels: Any) -> Any:
        """(B, classes) probabilities of (B, P) pixels."""


class Explainer(Protocol):
    def counterfactuals(self, model: Classifier, images: Any, data: Images, generator: Any) -> Any:
        """(B, P) images of another class; NaN where there is none. ``generator(b)``: the random stream of image b."""
