"""Statistics that decide the claims of Statement factuality, of means by data set and generator.

Means are arrays (..., data sets, generators) with the generators in the order of ``GENERATORS``; NaN is a missing mean. The
leading axes are draws of the texts, so that one call gives a statistic with its resampled values, of shape (...):

- ``maximum``, ``minimum``: over all data sets and generators.
- ``share below``: of the data sets and generators, in how many ``metric`` is below the metric ``subject``.
- ``share first``, ``share last``: of the data sets, in how many the generator ``subject`` is the best, or the worst.
- ``first on average``: the place of the generator ``subject`` by the mean over data sets; 1 is the best.
- ``share last two``: of the data sets, in how many at most one generator is as good as ``subject`` or worse.
- ``share transformers above``: of the data sets, in how many CER, PETER and PEPLER are better than NRT and Att2Seq.
- ``share lowest data``: of the generators, in how many the data set ``subject`` has the lowest mean of the paper's five.
- ``lead of data``: the mean over generators of the data sets ``subject``, whichever is smaller, minus that of the others.
- ``smallest difference``: ``metric`` - ``subject``, over all data sets and generators.

All these metrics are better when higher. Statistics of ``WITH_TIES`` depend on whether ties count for the claim: with and
without them they are the two readings that ``verdicts.claim_verdict`` compares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_text.analysis.published_factuality import DOMAINS, GENERATORS

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_text.reviews import FloatArray

RANKING = ("share first", "share last", "share last two", "first on average")
OF_DATA = ("share lowest data", "lead of data")
"""Statistics that compare the data sets of the paper, and need all of them."""
RECURRENT, TRANSFORMERS = ("nrt", "att2seq"), ("cer", "peter", "pepler")
ABOVE = "share transformers above"
OF_TWO_METRICS = ("share below", "smallest difference")
WITH_TIES = (*RANKING, ABOVE, "share below", "share lowest data")
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


def statistic(
    claim: Mapping[Any, Any],
    means: Mapping[str, FloatArray],
    places: Sequence[str] = (),
    ties: bool = False,
) -> FloatArray:
    """(...) the statistic of a claim; NaN if a metric, generator or data set that it needs is missing.

    Args:
        claim: with its statistic, metric and subject.
        means: of each metric, (..., data sets, generators).
        places: the names of the data sets, in their order; only ``OF_DATA`` need them.
        ties: whether equal means count for the claim.
    """
    kind, subject = claim["statistic"], claim["subject"]
    edge = -SAME if ties else SAME
    draws = next((grid.shape[:-2] for grid in means.values()), ())
    missing = np.full(draws, np.nan)
    grid = means.get(claim["metric"])
    if grid is None:
        return missing
    if kind in ("maximum", "minimum"):
        return _largest(grid) if kind == "maximum" else -_largest(-grid)
    if kind in RANKING:
        return _of_ranking(kind, GENERATORS.index(subject), grid, edge)
    if kind == ABOVE:
        return _transformers_above(grid, edge)
    if kind in OF_DATA:
        return _of_data(kind, subject.split(), grid, places, edge) if {*DOMAINS} <= {*places} else missing
    if subject not in means:
        return missing
    differences = grid - means[subject]
    return (
        _share(differences < -edge, ~np.isnan(differences))
        if kind == "share below"
        else -_largest(-differences)
    )


def wanted_data_sets(places: Sequence[str]) -> Sequence[str]:
    """The data sets that claims are about: those of the paper, or all that were run if others are among them."""
    return DOMAINS if {*places} <= {*DOMAINS} else places


def extent(
    claim: Mapping[Any, Any], means: Mapping[str, FloatArray], places: Sequence[str]
) -> tuple[int, int]:
    """Over how many data sets, generators or both a statistic is taken, and over how many with all that the paper has.

    Args:
        claim, means, places: as for :func:`statistic`, of one draw or of several with the same gaps.
    """
    kind, grid = claim["statistic"], means[claim["metric"]]
    data_sets = len(wanted_data_sets(places))
    known = ~np.isnan(grid.reshape(-1, *grid.shape[-2:])[0])
    if kind in OF_TWO_METRICS:
        other = means[claim["subject"]]
        known &= ~np.isnan(other.reshape(-1, *other.shape[-2:])[0])
    if kind == ABOVE:
        known = known[:, [GENERATORS.index(name) for name in (*RECURRENT, *TRANSFORMERS)]]
    if kind in (*RANKING, ABOVE):
        return int(known.all(axis=1).sum()), data_sets
    if kind in OF_DATA:
        return int(known[[places.index(name) for name in DOMAINS]].all(axis=0).sum()), len(GENERATORS)
    return int(known.sum()), data_sets * len(GENERATORS)


def possible_values(kind: str, low: float, high: float, present: int, whole: int) -> tuple[float, float]:
    """What a statistic of ``present`` of ``whole`` data sets, generators or both could be, whatever the missing means are.

    Args:
        low, high: the interval of the statistic.
        present, whole: see :func:`extent`.
    """
    if kind == "maximum":
        return low, math.inf
    if kind in ("minimum", "smallest difference"):
        return -math.inf, high
    if kind == "first on average":
        return 1.0, float(len(GENERATORS))
    if kind == "lead of data":
        return -math.inf, math.inf
    return low * present / whole, (high * present + whole - present) / whole


def _of_ranking(kind: str, subject: int, grid: FloatArray, edge: float) -> FloatArray:
    """Only of data sets on which all six generators of the paper were run."""
    complete = np.asarray(~np.isnan(grid).any(axis=-1))
    own, others = grid[..., subject], np.delete(grid, subject, axis=-1)
    if kind == "first on average":
        counted = complete.sum(axis=-1, keepdims=True)
        totals = np.where(complete[..., None], grid, 0.0).sum(axis=-2)
        average = totals / np.where(counted > 0, counted, np.nan)
        above = np.delete(average, subject, axis=-1) > average[..., subject, None] - edge
        return np.where(counted[..., 0] > 0, 1.0 + above.sum(axis=-1), np.nan)
    if kind == "share first":
        best = np.asarray(own > others.max(axis=-1) + edge)
    elif kind == "share last two":
        best = np.asarray((others < own[..., None] + edge).sum(axis=-1) <= 1)
    else:
        best = np.asarray(own < others.min(axis=-1) - edge)
    return _share(best[..., None], complete[..., None])


def _transformers_above(grid: FloatArray, edge: float) -> FloatArray:
    """Only of data sets on which these five generators were run."""
    recurrent, transformers = (
        grid[..., [GENERATORS.index(name) for name in names]] for names in (RECURRENT, TRANSFORMERS)
    )
    least, most = transformers.min(axis=-1), recurrent.max(axis=-1)  # NaN where one is missing
    holds = np.asarray(least > most + edge)
    return _share(holds[..., None], ~np.isnan(least + most)[..., None])


def _of_data(
    kind: str, subjects: Sequence[str], grid: FloatArray, places: Sequence[str], edge: float
) -> FloatArray:
    """Only of generators that were run on all five data sets."""
    own = grid[..., [places.index(name) for name in subjects], :]
    others = grid[..., [places.index(name) for name in DOMAINS if name not in subjects], :]
    complete = np.asarray(~np.isnan(np.concatenate([own, others], axis=-2)).any(axis=-2))
    if kind == "share lowest data":
        lowest = np.asarray(own[..., 0, :] < others.min(axis=-2) - edge)
        return _share(lowest[..., None, :], complete[..., None, :])
    count = complete.sum(axis=-1).astype(np.float64)
    whole = np.where(count > 0, count, np.nan)
    averages = [
        np.where(complete[..., None, :], part, 0.0).sum(axis=-1) / whole[..., None] for part in (own, others)
    ]
    return np.asarray(averages[0].min(axis=-1) - averages[1].mean(axis=-1))


def _largest(grid: FloatArray) -> FloatArray:
    """Over data sets and generators, of what is there."""
    found = np.where(np.isnan(grid), -np.inf, grid).max(axis=(-2, -1), initial=-np.inf)
    return np.where(np.isinf(found), np.nan, found)


def _share(holds: NDArray[np.bool_], counted: NDArray[np.bool_]) -> FloatArray:
    """Of the data sets and generators that count, in how many something holds; NaN if none counts."""
    count = counted.sum(axis=(-2, -1)).astype(np.float64)
    return np.asarray((holds & counted).sum(axis=(-2, -1)) / np.where(count > 0, count, np.nan))
