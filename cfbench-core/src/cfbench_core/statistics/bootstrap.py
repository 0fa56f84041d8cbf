"""Bootstrap intervals of means over units that may belong together.

Source: Efron & Tibshirani 1993 (percentile bootstrap; ratio estimator over clusters).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfbench_core.lifecycle.streams import generator as stream

LEVEL = 0.95
RESAMPLES = 2000
LARGE = 50_000
"""With more clusters than this, the interval is the normal approximation: the percentiles of a bootstrap would be the same
to within its own error, and take minutes."""
_BLOCK = 4_000_000  # weights held at once: 32 MB
_CACHED = 500_000  # weights that are cached for the next table: 4 MB

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def bootstrap_interval(
    values: ArrayLike,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    generator: np.random.Generator | None = None,
    clusters: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Percentile interval of the mean over units: units, or clusters of units, are drawn with replacement.

    Args:
        values: (units,) or (units, columns); NaN where a unit has no value. Columns share the draws.
        clusters: (units,) what each unit belongs to; None: every unit stands for itself.
        generator: the random stream; None: one with a fixed name.

    Returns:
        low and high, each of shape () or (columns,). NaN where fewer than two clusters have a value: one
        observation says nothing of its spread. A resample without any value of a column is left out of it.
    """
    values = np.asarray(values, dtype=np.float64)
    columns = values if values.ndim == 2 else values[:, None]
    sums, counts = cluster_totals(columns, codes_of(clusters, len(values)))
    low, high = intervals_of(sums, counts, level, resamples, generator)
    return low.reshape(values.shape[1:]), high.reshape(values.shape[1:])


def resampled_means(
    values: ArrayLike,
    resamples: int = RESAMPLES,
    generator: np.random.Generator | None = None,
    clusters: ArrayLike | None = None,
) -> FloatArray:
    """Means of the columns in each resample, (resamples, columns), for what is made of several means: a ratio.

    The resamples are those of :func:`bootstrap_interval`; NaN where a resample has no value of a column.

    Args:
        values: (units, columns); NaN where a unit has no value. Columns share the draws.
        clusters: as in :func:`bootstrap_interval`.
    """
    values = np.asarray(values, dtype=np.float64)
    sums, counts = cluster_totals(values, codes_of(clusters, len(values)))
    return _resampled(sums, counts, resamples, generator)


def percentile_interval(replicates: ArrayLike, level: float = LEVEL) -> tuple[float, float]:
    """The limits that leave equally many resampled statistics (draws,) below and above; missing ones (NaN) do not count.

    NaN twice where all are missing.
    """
    known = np.asarray(replicates, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def codes_of(clusters: ArrayLike | None, units: int) -> IntArray:
    """Clusters as 0..n-1, by their sorted names, so that the order of the rows does not matter."""
    if clusters is None:
        return np.arange(units)
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return codes.astype(np.int64)


def cluster_totals(values: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the values of each cluster: (units, columns) -> twice (clusters, columns)."""
    present = ~np.isnan(values)
    sums, counts = np.where(present, values, 0.0), present.astype(np.float64)
    clusters = int(codes.max(initial=-1)) + 1
    if clusters == len(codes) and np.array_equal(codes, np.arange(clusters)):
        return sums, counts
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(clusters))
    return np.add.reduceat(sums[order], starts, axis=0), np.add.reduceat(counts[order], starts, axis=0)


def intervals_of(
    sums: FloatArray, counts: FloatArray, level: float, resamples: int, generator: np.random.Generator | None
) -> tuple[FloatArray, FloatArray]:
    """Intervals of sum(sums) / sum(counts) over resampled clusters; arrays (clusters, columns)."""
    columns = sums.shape[1]
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    enough = (counts > 0).sum(axis=0) >= 2
    if not enough.any():
        return low, high
    if len(sums) > LARGE:
        low[enough], high[enough] = _normal_interval(sums[:, enough], counts[:, enough], level)
        return low, high
    means = _resampled(sums[:, enough], counts[:, enough], resamples, generator)
    tails = [(1 - level) / 2, (1 + level) / 2]
    complete = ~np.isnan(means).any(axis=0)
    bounds = np.empty((2, means.shape[1]))
    by_column = np.ascontiguousarray(means[:, complete].T)  # half the time of quantiles along the first axis
    bounds[:, complete] = np.quantile(by_column, tails, axis=1, overwrite_input=True)
    if not complete.all():
        bounds[:, ~complete] = np.nanquantile(means[:, ~complete], tails, axis=0)
    low[enough], high[enough] = bounds
    return low, high


def _normal_interval(sums: FloatArray, counts: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """r +- z s, where r = sum(s_i) / sum(c_i) and s^2 = n / (n - 1) sum (s_i - r c_i)^2 / sum(c_i)^2 over n clusters.

    The variance of a ratio estimator by the delta method (Cochran 1977, section 2.11).
    """
    from scipy.special import ndtri

    ratio = sums.sum(axis=0) / counts.sum(axis=0)
    squares = np.array(
        [float(((s - r * c) ** 2).sum()) for s, c, r in zip(sums.T, counts.T, ratio, strict=True)]
    )
    error = np.sqrt(len(sums) / (len(sums) - 1) * squares) / counts.sum(axis=0)
    half = float(ndtri((1 + level) / 2)) * error
    return ratio - half, ratio + half


def _resampled(
    sums: FloatArray, counts: FloatArray, resamples: int, generator: np.random.Generator | None
) -> FloatArray:
    """sum(sums) / sum(counts) in each resample of the clusters; arrays (clusters, columns)."""
    clusters = len(sums)
    if generator is not None:
        blocks: Iterable[FloatArray] = _weights(clusters, resamples, generator)
    elif clusters * resamples <= _CACHED:
        blocks = [_usual_weights(clusters, resamples)]
    else:
        blocks = _weights(clusters, resamples, stream("bootstrap", clusters))
    shared, which = _distinct_columns(counts)
    means = np.empty((resamples, sums.shape[1]))
    done = 0
    for weights in blocks:
        numbers = weights @ shared
        with np.errstate(invalid="ignore"):
            np.divide(
                weights @ sums,
                numbers[:, which] if numbers.shape[1] > 1 else numbers,
                out=means[done : done + len(weights)],
            )
        done += len(weights)
    return means


def _weights(clusters: int, resamples: int, generator: np.random.Generator) -> Iterator[FloatArray]:
    """How often each cluster is drawn in each resample, in blocks of shape (resamples of the block,
    clusters)."""
    block = max(1, _BLOCK // clusters)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        draws = generator.integers(0, clusters, size=(rows, clusters))
        draws += np.arange(rows)[:, None] * clusters
        yield np.bincount(draws.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(np.float64)


@functools.lru_cache(maxsize=16)
def _usual_weights(clusters: int, resamples: int) -> FloatArray:
    """All of them at once, from the stream with the fixed name."""
    (weights,) = _weights(clusters, resamples, stream("bootstrap", clusters))
    return weights


def _distinct_columns(counts: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different columns, and which of them each column is: most columns of a cell lack the same units, or
    none."""
    places: dict[bytes, int] = {}
    which = np.array(
        [places.setdefault(column.tobytes(), len(places)) for column in counts.T], dtype=np.int64
    )
    _, first = np.unique(which, return_index=True)
    return counts[:, first], which
