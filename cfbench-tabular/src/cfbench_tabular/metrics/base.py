"""What a metric is given, and what the suite asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cfbench_core.plan import Column
from cfbench_tabular.classifiers.base import Classifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

_ONE_EACH: FloatArray = np.empty((0, 0, 0))
"""Stands for the one answer that each factual has."""


@dataclass(frozen=True)
class Answers:
    """B factuals with their counterfactuals, judged by the model itself.

    Attributes:
        factuals, counterfactuals: (B, d) encoded; rows of NaN where there is no answer.
        factual_classes: (B,) as the model predicts them.
        valid: (B,) there is an answer, and the model puts it into the other class. Never taken on trust.
        encoding: the columns and their places in the vectors.
        background: (n, d) the training rows.
        model: the classifier.
        all: (B, n, d) where a factual has several answers, all of them, NaN for those that are missing. Such
            a factual stands here once for each answer that was given, and its scores are averaged.
        all_valid: (B, n) which of them are valid.
        background_labels: (n,) the classes that the table gives the training rows; empty where not known.
        table: (N, d) all rows; the training rows where the others are not known.
        second_model: trained as ``model`` was, with another seed; None where the study has none.
        again: (B, d) the counterfactuals when asked once more, with another seed; None where that was not done.
    """

    factuals: FloatArray
    counterfactuals: FloatArray
    factual_classes: IntArray
    valid: BoolArray
    encoding: Encoding
    background: FloatArray
    model: Classifier
    all: FloatArray = field(default_factory=lambda: _ONE_EACH)
    all_valid: BoolArray = field(default_factory=lambda: _ONE_EACH > 0)
    background_labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    table: FloatArray = field(default_factory=lambda: _ONE_EACH)
    second_model: Classifier | None = None
    again: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.all is _ONE_EACH:
            object.__setattr__(self, "all", self.counterfactuals[:, None])
            object.__setattr__(self, "all_valid", self.valid[:, None])
        if self.table is _ONE_EACH:
            object.__setattr__(self, "table", self.background)


class Metric(Protocol):
    """A component of kind "metric": ``Name(config)``, then ``score``. ``columns`` is the class' own."""

    columns: Sequence[Column]

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        """(B,) values for each name of ``columns``; NaN where the value is missing."""


def where_valid(answers: Answers, values: FloatArray | BoolArray) -> FloatArray:
    """(B,) ``values`` of valid answers, else NaN: means are over valid answers, with coverage beside them."""
    return np.where(answers.valid, values, np.nan)
