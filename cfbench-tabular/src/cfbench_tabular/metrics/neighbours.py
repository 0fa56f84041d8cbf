"""Training rows near an answer: what the metrics that look at the data have in common.

Distances are Euclidean in the encoded space. Of a large table a fixed random sample of the rows is looked at,
the same for every answer and explainer: distances between all pairs of 30,000 rows take minutes. Those between
the rows of a sample are kept for the next batch of answers, which mostly meets the same rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.table import BoolArray, FloatArray, IntArray


def sampled(rows: int, most: int) -> IntArray:
    """Which of so many rows are looked at, ascending; all of them where there are no more than ``most``."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(generator("tabular", "neighbours", rows).choice(rows, size=most, replace=False))


def wanted_classes(answers: Answers, most: int) -> Iterator[tuple[int, BoolArray, IntArray]]:
    """Each class that valid answers are in: (B,) which they are, and the numbers of the training rows that the model
    puts there too, ``most`` of them at most."""
    if not answers.valid.any():
        return
    classes = predicted_classes(answers.model, answers.background)
    for label in (0, 1):
        here = answers.valid & (answers.factual_classes != label)
        members = np.flatnonzero(classes == label)
        if here.any():
            yield label, here, members[sampled(len(members), most)]


def distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """(n, m) Euclidean distances between (n, d) and (m, d)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(first, second))


def distances_between(rows: FloatArray) -> FloatArray:
    """(n, n) from each row to each other; infinite to itself. Not to be written into: it is kept."""
    return _between(np.ascontiguousarray(rows).tobytes(), rows.shape)


@functools.lru_cache(maxsize=4)
def _between(rows: bytes, shape: tuple[int, ...]) -> FloatArray:
    vectors = np.frombuffer(rows).reshape(shape)
    found = distances(vectors, vectors)
    np.fill_diagonal(found, np.inf)
    found.setflags(write=False)
    return found
