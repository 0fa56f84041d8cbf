"""The counterfactuals that a metric measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

_UNSET: FloatArray = np.empty((0, 0, 0))
"""The default of fields that are then derived from other fields."""


@dataclass(frozen=True)
class Observed:
    """B factuals with one counterfactual each.

    Attributes:
        factuals, counterfactuals: (B, d) encoded; rows of NaN where no counterfactual was found.
        factual_classes: (B,) predicted classes of the factuals.
        valid: (B,) whether there is a counterfactual and the model predicts the other class for it.
        encoding: the columns and their positions in the vectors.
        background: (n, d) the training rows.
        model: the classifier.
        alternatives: (B, n, d) all counterfactuals of each factual, NaN for missing ones. A factual with several
            counterfactuals occurs once for each of them, and its scores are averaged.
        alternatives_valid: (B, n) which of them are valid.
        background_labels: (n,) the true classes of the training rows; empty if unknown.
        table: (N, d) all rows; the training rows if the others are unknown.
        retrained: ``model``, trained again, with ``protocol.retrained_models`` or ``protocol.repeats``.
        repeated: (B, d) the counterfactuals of a second call with another seed; None without ``protocol.repeats``.
    """

    factuals: FloatArray
    counterfactuals: FloatArray
    factual_classes: IntArray
    valid: BoolArray
    encoding: Encoding
    background: FloatArray
    model: Classifier
    alternatives: FloatArray = field(default_factory=lambda: _UNSET)
    alternatives_valid: BoolArray = field(default_factory=lambda: _UNSET > 0)
    background_labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    table: FloatArray = field(default_factory=lambda: _UNSET)
    retrained: Sequence[Classifier] = ()
    repeated: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.alternatives is _UNSET:
            object.__setattr__(self, "alternatives", self.counterfactuals[:, None])
            object.__setattr__(self, "alternatives_valid", self.valid[:, None])
        if self.table is _UNSET:
            object.__setattr__(self, "table", self.background)


def where_valid(observed: Observed, values: FloatArray | BoolArray) -> FloatArray:
    """(B,) ``values`` of the valid counterfactuals, NaN for the others, so that means are over valid ones."""
    return np.where(observed.valid, values, np.nan)
