"""Who wins a column of a table, and who is statistically tied with the winner.

Only competitors can win: certified, reference and baseline rows are controls. A cell that is incomplete cannot win
either, for its mean is over the units that it managed, which may be the easy ones.

The *best* is the competitor with the best mean. Another is *statistically tied with the best* if the 95% paired bootstrap
interval of their difference, over the units that both have and resampled by cluster, contains zero; or if
there are too few common units. Best and tied are bold; the best of the others is underlined.

Where a competitor has no value for a unit that another has one for (the sparsity of an answer that was not
found), means are over different units and say little. Such a column is decided by ranks instead: for each
unit the competitors are ranked, those without a value sharing the last place, and the best is the one with
the best average rank over all units. A unit where a *required* column is 0 has no value in the other columns, so that
nobody wins with answers that do not count.

The intervals are not corrected for the number of competitors: of twenty that are equal in truth, one is
wrongly left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cfbench_core.statistics import FloatArray, bootstrap_interval, ranks


class Verdict(NamedTuple):
    """Of one column, as places of the explainers.

    ``tied``: the best, then those statistically tied with it, the better first; empty where nobody can win. ``second``:
    the next, or None. ``not_beaten``: the baselines from which the best does not differ significantly, or that are better.
    """

    tied: tuple[int, ...] = ()
    second: int | None = None
    not_beaten: tuple[int, ...] = ()


def required_only(values: FloatArray, required: Sequence[bool], exempt: Sequence[bool]) -> FloatArray:
    """The values (units, explainers, columns), NaN where a required column is 0, except in that column and exempt ones."""
    values = values.copy()
    for place in np.flatnonzero(required):
        others = ~np.asarray(exempt, dtype=np.bool_)
        others[place] = False
        units, explainers = np.nonzero(values[:, :, place] == 0)
        values[units[:, None], explainers[:, None], np.flatnonzero(others)] = np.nan
    return values


def verdicts(
    values: FloatArray, directions: Sequence[str], competitors: int, clusters: NDArray[Any]
) -> list[Verdict]:
    """One verdict for each column.

    Args:
        values: (units, explainers, columns), NaN where there is none; the first ``competitors`` explainers
            compete, the others are baselines.
        directions: (columns,) "higher", "lower" or "": nobody wins where neither is better.
        clusters: (units,) which units belong together.
    """
    if not competitors or not directions:
        return [Verdict()] * len(directions)
    costs = np.stack(
        [_costs(values[:, :, place], direction, competitors) for place, direction in enumerate(directions)],
        axis=2,
    )
    counts = (~np.isnan(costs)).sum(axis=0)
    means = np.where(
        counts > 0, np.nansum(costs, axis=0) / np.maximum(counts, 1), np.inf
    )  # (explainers, columns)
    best = means[:competitors].argmin(axis=0)
    differences = costs - np.take_along_axis(costs, best[None, None, :], axis=1)
    low, high = bootstrap_interval(differences.reshape(len(values), -1), clusters=clusters)
    low, high = low.reshape(means.shape), high.reshape(means.shape)
    return [
        _verdict(means[:, place], int(best[place]), low[:, place], high[:, place], competitors)
        for place in range(len(directions))
    ]


def _costs(column: FloatArray, direction: str, competitors: int) -> FloatArray:
    """(units, explainers), the lower the better: the values, or their ranks where competitors lack some."""
    if not direction:
        return np.full(column.shape, np.nan)
    measured = ~np.isnan(column).all(axis=0)
    competing = column[:, measured & (np.arange(column.shape[1]) < competitors)]
    missing = np.isnan(competing)
    if not (missing.any(axis=1) & ~missing.all(axis=1)).any():
        return -column if direction == "higher" else column
    ranked = np.full(column.shape, np.nan)
    ranked[:, measured] = ranks(column[:, measured], direction)
    return ranked


def _verdict(means: FloatArray, best: int, low: FloatArray, high: FloatArray, competitors: int) -> Verdict:
    """``low`` and ``high``: (explainers,) the interval of each one's cost less that of the best."""
    if np.isinf(means[best]):
        return Verdict()
    order = [
        int(place) for place in np.argsort(means[:competitors], kind="stable") if np.isfinite(means[place])
    ]
    is_tied = ~((low > 0) | (high < 0))
    tied = (best, *(place for place in order if place != best and is_tied[place]))
    others = [place for place in order if place not in tied]
    baselines = range(competitors, len(means))
    not_beaten = tuple(place for place in baselines if np.isfinite(means[place]) and not low[place] > 0)
    return Verdict(tied, others[0] if others else None, not_beaten)
