"""What a metric is given, and what the suite asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cfbench_core.plan import Column
from cfbench_tabular.classifiers.base import Classifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import BoolArray, FloatArray, IntArray


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
    """

    factuals: FloatArray
    counterfactuals: FloatArray
    factual_classes: IntArray
    valid: BoolArray
    encoding: Encoding
    background: FloatArray
    model: Classifier


class Metric(Protocol):
    """A component of kind "metric": ``Name(config)``, then ``score``. ``columns`` is the class' own."""

    columns: Sequence[Column]

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        """(B,) values for each name of ``columns``; NaN where the value is missing."""


def where_valid(answers: Answers, values: FloatArray | BoolArray) -> FloatArray:
    """(B,) ``values`` of valid answers, else NaN: means are over valid answers, with coverage beside them."""
    return np.where(answers.valid, values, np.nan)
