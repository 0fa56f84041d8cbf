"""Distances between counterfactuals and training rows, shared by the metrics that compare with the data.

Distances are Euclidean in the encoded space. Of a large table a fixed random sample of the rows is used, the same
for every counterfactual and explainer, because the distances between all pairs of 30,000 rows take minutes.
Distances between the rows of a sample are cached for the next batch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import BoolArray, FloatArray, IntArray


def sampled(rows: int, most: int) -> IntArray:
    """The indices of at most ``most`` of ``rows`` rows, ascending; a fixed random sample if there are more."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(generator("tabular", "neighbours", rows).choice(rows, size=most, replace=False))


def wanted_classes(observed: Observed, most: int) -> Iterator[tuple[int, BoolArray, IntArray]]:
    """For each class with valid counterfactuals: the class, (B,) a mask of these counterfactuals, and the indices of at
    most ``most`` training rows of the same predicted class."""
    if not observed.valid.any():
        return
    classes = predicted_classes(observed.model, observed.background)
    for label in (0, 1):
        here = observed.valid & (observed.factual_classes != label)
        members = np.flatnonzero(classes == label)
        if here.any():
            yield label, here, members[sampled(len(members), most)]


def distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """(n, m) Euclidean distances between (n, d) and (m, d)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(first, second))


def distances_between(rows: FloatArray) -> FloatArray:
    """(n, n) from each row to each other; infinite to itself. Read-only, because it is cached."""
    return _between(np.ascontiguousarray(rows).tobytes(), rows.shape)


@functools.lru_cache(maxsize=4)
def _between(rows: bytes, shape: tuple[int, ...]) -> FloatArray:
    vectors = np.frombuffer(rows).reshape(shape)
    found = distances(vectors, vectors)
    np.fill_diagonal(found, np.inf)
    found.setflags(write=False)
    return found
