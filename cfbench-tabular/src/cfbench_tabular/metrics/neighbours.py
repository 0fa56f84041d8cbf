"""Training rows near an answer: what the metrics that look at the data have in common.

Distances are Euclidean in the encoded space. Of a large table a fixed random sample of the rows is looked at,
the same for every answer and explainer: distances between all pairs of 30,000 rows take minutes.
"""

from __future__ import annotations

import numpy as np

from cfbench_core.seeds import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.table import BoolArray, FloatArray, IntArray


def sampled(rows: int, most: int) -> IntArray:
    """Which of so many rows are looked at, ascending; all of them where there are no more than ``most``."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(generator("tabular", "neighbours", rows).choice(rows, size=most, replace=False))


def rows_of_class(answers: Answers, label: int, most: int) -> IntArray:
    """Numbers of the training rows that the model puts into a class, ``most`` of them at most."""
    own = np.flatnonzero(predicted_classes(answers.model, answers.background) == label)
    return own[sampled(len(own), most)]


def wanted_classes(answers: Answers) -> tuple[tuple[int, BoolArray], ...]:
    """Each class, and (B,) which valid answers are in it."""
    return tuple((label, answers.valid & (answers.factual_classes != label)) for label in (0, 1))


def distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """(n, m) Euclidean distances between (n, d) and (m, d)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(first, second))
