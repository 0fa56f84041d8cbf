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


class Advantage(NamedTuple):
    """By how much the best of a column is better than the explainer ``over``: positive is better, in either direction.

    ``value`` is the mean of the paired differences, ``low`` and ``high`` the ends of its 95% interval; a difference of
    average ranks where ranks decide the column.
    """

    over: int
    value: float
    low: float
    high: float


class Verdict(NamedTuple):
    """Of one column, as places of the explainers.

    Attributes:
        tied: the best, then those statistically tied with it, the better first; empty where nobody can win.
        second: the next, or None.
        not_beaten: the baselines from which the best does not differ significantly, or that are better.
        ranks: each one's average rank where ranks decide the column; empty where means do.
        over_next: the best against the competitor that comes next, tied or not; over_baseline: against the
            best baseline.
    """

    tied: tuple[int, ...] = ()
    second: int | None = None
    not_beaten: tuple[int, ...] = ()
    ranks: tuple[float, ...] = ()
    over_next: Advantage | None = None
    over_baseline: Advantage | None = None


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
    by_rank = [_decided_by_ranks(values[:, :, place], competitors) for place in range(len(directions))]
    costs = np.stack(
        [
            _costs(values[:, :, place], direction, by_rank[place])
            for place, direction in enumerate(directions)
        ],
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
    paired = (~np.isnan(differences)).sum(axis=0)
    mean = np.where(paired > 0, np.nansum(differences, axis=0) / np.maximum(paired, 1), np.nan)
    return [
        _verdict(
            _Column(means[:, place], mean[:, place], low[:, place], high[:, place]),
            int(best[place]),
            competitors,
            bool(direction) and by_rank[place],
        )
        for place, direction in enumerate(directions)
    ]


class _Column(NamedTuple):
    """Of each explainer, (explainers,): its mean cost, and its cost less that of the best with the interval."""

    means: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray


def _decided_by_ranks(column: FloatArray, competitors: int) -> bool:
    """Whether a competitor lacks a value of a unit that another has one for."""
    measured = ~np.isnan(column).all(axis=0)
    missing = np.isnan(column[:, measured & (np.arange(column.shape[1]) < competitors)])
    return bool((missing.any(axis=1) & ~missing.all(axis=1)).any())


def _costs(column: FloatArray, direction: str, by_rank: bool) -> FloatArray:
    """(units, explainers), the lower the better: the values, or their ranks."""
    if not direction:
        return np.full(column.shape, np.nan)
    if not by_rank:
        return -column if direction == "higher" else column
    measured = ~np.isnan(column).all(axis=0)
    ranked = np.full(column.shape, np.nan)
    ranked[:, measured] = ranks(column[:, measured], direction)
    return ranked


def _verdict(column: _Column, best: int, competitors: int, by_rank: bool) -> Verdict:
    means, low, high = column.means, column.low, column.high
    if np.isinf(means[best]):
        return Verdict()
    order = [
        int(place) for place in np.argsort(means[:competitors], kind="stable") if np.isfinite(means[place])
    ]
    is_tied = ~((low > 0) | (high < 0))
    tied = (best, *(place for place in order if place != best and is_tied[place]))
    others = [place for place in order if place not in tied]
    baselines = [place for place in range(competitors, len(means)) if np.isfinite(means[place])]
    following = [place for place in order if place != best]

    def advantage(over: int) -> Advantage:
        return Advantage(over, *(float(part[over]) for part in (column.difference, low, high)))

    return Verdict(
        tied,
        others[0] if others else None,
        tuple(place for place in baselines if not low[place] > 0),
        tuple(float(mean) for mean in means) if by_rank else (),
        advantage(following[0]) if following else None,
        advantage(min(baselines, key=lambda place: means[place])) if baselines else None,
    )
