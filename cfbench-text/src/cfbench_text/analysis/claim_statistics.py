"""Statistics that decide the claims of Statement factuality, of means by data set and generator.

Means are arrays (..., data sets, generators) with the generators in the order of ``GENERATORS``; NaN is a missing mean. The
leading axes are draws of the texts, so that one call gives a statistic with its resampled values, of shape (...):

- ``maximum``, ``minimum``: over all data sets and generators.
- ``share below``: of the data sets and generators, in how many ``metric`` is below the metric ``subject``.
- ``share first``, ``share last``: of the data sets, in how many the generator ``subject`` is the best, or the worst.
- ``first on average``: the place of the generator ``subject`` by the mean over data sets; 1 is the best.
- ``smallest difference``: ``metric`` - ``subject``, over all data sets and generators.

All these metrics are better when higher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_text.analysis.published_factuality import GENERATORS

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_text.reviews import FloatArray

RANKING = ("share first", "share last", "first on average")
SAME = 1e-9


def grids(means: pd.DataFrame) -> dict[str, FloatArray]:
    """(data sets, generators) the means of each metric.

    Args:
        means: columns dataset, model (a generator of the paper), metric, mean; one row for each.
    """
    places = list(dict.fromkeys(means["dataset"]))
    found: dict[str, FloatArray] = {}
    for row in means.to_dict("records"):
        grid = found.setdefault(str(row["metric"]), np.full((len(places), len(GENERATORS)), np.nan))
        grid[places.index(row["dataset"]), GENERATORS.index(row["model"])] = row["mean"]
    return found


def statistic(claim: Mapping[Any, Any], means: Mapping[str, FloatArray]) -> FloatArray:
    """(...) the statistic of a claim; NaN if a metric or generator that it needs is missing.

    Args:
        claim: with its statistic, metric and subject.
        means: of each metric, (..., data sets, generators).
    """
    kind, subject = claim["statistic"], claim["subject"]
    draws = next((grid.shape[:-2] for grid in means.values()), ())
    missing = np.full(draws, np.nan)
    grid = means.get(claim["metric"])
    if grid is None:
        return missing
    if kind in ("maximum", "minimum"):
        return _largest(grid) if kind == "maximum" else -_largest(-grid)
    if kind in RANKING:
        return _of_ranking(kind, GENERATORS.index(subject), grid)
    if subject not in means:
        return missing
    differences = grid - means[subject]
    return (
        _share(differences < -SAME, ~np.isnan(differences))
        if kind == "share below"
        else -_largest(-differences)
    )


def possible_values(kind: str, low: float, high: float, absent: int) -> tuple[float, float]:
    """What a statistic of some of the six generators could be with all, if ``absent`` of them have any means.

    A ranking needs all six, so it cannot be another.

    Args:
        low, high: the interval of the statistic.
    """
    if kind == "maximum":
        return low, math.inf
    if kind in ("minimum", "smallest difference"):
        return -math.inf, high
    if kind == "share below":
        present = len(GENERATORS) - absent
        return low * present / len(GENERATORS), (high * present + absent) / len(GENERATORS)
    return low, high


def _of_ranking(kind: str, subject: int, grid: FloatArray) -> FloatArray:
    """Only of data sets on which all six generators of the paper were run; one that ties is neither first nor last."""
    complete = np.asarray(~np.isnan(grid).any(axis=-1))
    own, others = grid[..., subject], np.delete(grid, subject, axis=-1)
    if kind == "first on average":
        counted = complete.sum(axis=-1, keepdims=True)
        totals = np.where(complete[..., None], grid, 0.0).sum(axis=-2)
        average = totals / np.where(counted > 0, counted, np.nan)
        above = np.delete(average, subject, axis=-1) > average[..., subject, None] + SAME
        return np.where(counted[..., 0] > 0, 1.0 + above.sum(axis=-1), np.nan)
    if kind == "share first":
        best = np.asarray(own > others.max(axis=-1) + SAME)
    else:
        best = np.asarray(own < others.min(axis=-1) - SAME)
    return _share(best[..., None], complete[..., None])


def _largest(grid: FloatArray) -> FloatArray:
    """Over data sets and generators, of what is there."""
    found = np.where(np.isnan(grid), -np.inf, grid).max(axis=(-2, -1), initial=-np.inf)
    return np.where(np.isinf(found), np.nan, found)


def _share(holds: NDArray[np.bool_], counted: NDArray[np.bool_]) -> FloatArray:
    """Of the data sets and generators that count, in how many something holds; NaN if none counts."""
    count = counted.sum(axis=(-2, -1)).astype(np.float64)
    return np.asarray((holds & counted).sum(axis=(-2, -1)) / np.where(count > 0, count, np.nan))
