"""Distances between counterfactuals and training rows, shared by the metrics that compare with the data.

Distances are Euclidean in the encoded space. Of a large table a fixed random sample of the rows is used, the same
for every counterfactual and explainer, because the distances between all pairs of 30,000 rows take minutes.
Distances between the rows of a sample are cached for the next batch.

Rows of categories and of whole numbers are often equally far apart. Their distances then differ in the last bits, which
depend on the order of the columns, so that a limit which is itself a distance has to be widened (:func:`up_to`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

SAME = 1e-9
"""Relative difference of two distances that counts as a rounding error."""

LAST_BITS = 16 * float(np.finfo(np.float64).eps)
"""Rounding error of a difference of two encoded numbers, as a share of the larger one: it matters where steps are small."""


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


def up_to(limit: FloatArray | float, rows: FloatArray) -> FloatArray:
    """A limit of distances to rows (n, d), widened by their rounding errors: a distance that equals it is within."""
    error = LAST_BITS * np.abs(rows).max() * np.sqrt(rows.shape[1])
    return np.asarray(limit * (1.0 + SAME) + error)


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
