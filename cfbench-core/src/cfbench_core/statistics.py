"""Intervals, paired tests and rankings: what a difference between two means is worth.

Two rules hold all through. Units that belong together (the items of one user's list) are not independent, so
the bootstrap draws *clusters* of units, not units. And all random draws come from a stream with a fixed name,
so that equal scores have equal intervals, whoever computes them and beside what.

Sources: Efron & Tibshirani 1993 (percentile bootstrap; ratio estimator over clusters), Demšar 2006 (Friedman,
Iman-Davenport, Nemenyi, critical differences), Conover 1999 (tie-corrected Friedman), Kendall 1945 (tau-b).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfbench_core.seeds import generator as stream

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
RESAMPLES = 2000
_BLOCK = 4_000_000  # weights held at once: 32 MB

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


# Bootstrap intervals


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
    sums, counts = _cluster_totals(columns, _codes(clusters, len(values)))
    low, high = _intervals(sums, counts, level, resamples, generator)
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
    sums, counts = _cluster_totals(values, _codes(clusters, len(values)))
    return _resampled(sums, counts, resamples, generator)


def _codes(clusters: ArrayLike | None, units: int) -> IntArray:
    """Clusters as 0..n-1, by their sorted names, so that the order of the rows does not matter."""
    if clusters is None:
        return np.arange(units)
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return codes.astype(np.int64)


def _cluster_totals(values: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the values of each cluster: (units, columns) -> twice (clusters, columns)."""
    present = ~np.isnan(values)
    sums, counts = np.where(present, values, 0.0), present.astype(np.float64)
    clusters = int(codes.max(initial=-1)) + 1
    if clusters == len(codes) and np.array_equal(codes, np.arange(clusters)):
        return sums, counts
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(clusters))
    return np.add.reduceat(sums[order], starts, axis=0), np.add.reduceat(counts[order], starts, axis=0)


def _intervals(
    sums: FloatArray, counts: FloatArray, level: float, resamples: int, generator: np.random.Generator | None
) -> tuple[FloatArray, FloatArray]:
    """Intervals of sum(sums) / sum(counts) over resampled clusters; arrays (clusters, columns)."""
    columns = sums.shape[1]
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    enough = (counts > 0).sum(axis=0) >= 2
    if not enough.any():
        return low, high
    means = _resampled(sums[:, enough], counts[:, enough], resamples, generator)
    tails = [(1 - level) / 2, (1 + level) / 2]
    complete = ~np.isnan(means).any(axis=0)
    bounds = np.empty((2, means.shape[1]))
    bounds[:, complete] = np.quantile(means[:, complete], tails, axis=0)
    if not complete.all():
        bounds[:, ~complete] = np.nanquantile(means[:, ~complete], tails, axis=0)
    low[enough], high[enough] = bounds
    return low, high


def _resampled(
    sums: FloatArray, counts: FloatArray, resamples: int, generator: np.random.Generator | None
) -> FloatArray:
    """sum(sums) / sum(counts) in each resample of the clusters; arrays (clusters, columns)."""
    clusters = len(sums)
    generator = generator or stream("bootstrap", clusters)
    shared, which = _distinct_columns(counts)
    means = np.empty((resamples, sums.shape[1]))
    done = 0
    for weights in _weights(clusters, resamples, generator):
        with np.errstate(invalid="ignore"):
            means[done : done + len(weights)] = (weights @ sums) / (weights @ shared)[:, which]
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


def _distinct_columns(counts: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different columns, and which of them each column is: most columns of a cell lack the same units, or
    none."""
    places: dict[bytes, int] = {}
    which = np.array(
        [places.setdefault(column.tobytes(), len(places)) for column in counts.T], dtype=np.int64
    )
    _, first = np.unique(which, return_index=True)
    return counts[:, first], which


# Scores of a cell as a matrix


@dataclass(frozen=True)
class UnitValues:
    """The scores of one cell: ``values`` (units, metrics), NaN where there is none; ``clusters`` (units,)."""

    units: NDArray[Any]
    clusters: NDArray[Any]
    metrics: tuple[str, ...]
    values: FloatArray

    def column(self, metric: str) -> FloatArray:
        """(units,) of one metric; all NaN when the cell does not have it."""
        if metric not in self.metrics:
            return np.full(len(self.units), np.nan)
        return self.values[:, self.metrics.index(metric)]


def unit_values(scores: pd.DataFrame, cluster: str | None = None) -> dict[str, UnitValues]:
    """The long table of scores (cell, metric, unit, value) as one matrix for each cell, units sorted.

    Rows without a unit stand for units that could not even be listed, and are left out.

    Args:
        cluster: the column that says which units belong together; None: each stands for itself.

    Raises:
        ValueError: if a cell scores one unit twice on one metric.
    """
    import pandas as pd

    listed = scores[scores["unit"].notna()]
    cell_codes, cells = pd.factorize(listed["cell"])
    metric_codes, metrics = pd.factorize(listed["metric"])
    unit_codes, units = pd.factorize(listed["unit"], sort=True)
    cluster_codes, clusters = pd.factorize(listed[cluster], sort=True) if cluster else (unit_codes, units)
    numbers = listed["value"].to_numpy(dtype=np.float64, na_value=np.nan)
    found = {}
    order = np.argsort(cell_codes, kind="stable")
    for code, rows in enumerate(
        np.split(order, np.searchsorted(cell_codes[order], np.arange(1, len(cells))))
    ):
        if not len(rows):
            continue
        here, first, row = np.unique(unit_codes[rows], return_index=True, return_inverse=True)
        used = list(dict.fromkeys(metric_codes[rows]))
        place = np.full(len(metrics), -1)
        place[used] = np.arange(len(used))
        flat = row * len(used) + place[metric_codes[rows]]
        if len(np.unique(flat)) != len(flat):
            raise ValueError(f"{cells[code]}: a unit is scored twice on one metric")
        values = np.full(len(here) * len(used), np.nan)
        values[flat] = numbers[rows]
        found[str(cells[code])] = UnitValues(
            np.asarray(units)[here],
            np.asarray(clusters)[cluster_codes[rows[first]]],
            tuple(str(metrics[m]) for m in used),
            values.reshape(len(here), len(used)),
        )
    return found


def align(
    cells: Sequence[UnitValues], metrics: Sequence[str]
) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    """Cells side by side on the union of their units.

    Returns:
        units (n,), clusters (n,), values (n, cells, metrics), NaN where a cell has no value for a unit.
    """
    units, first = np.unique(np.concatenate([cell.units for cell in cells]), return_index=True)
    clusters = np.concatenate([cell.clusters for cell in cells])[first]
    values = np.full((len(units), len(cells), len(metrics)), np.nan)
    for place, cell in enumerate(cells):
        rows = np.searchsorted(units, cell.units)
        for column, metric in enumerate(metrics):
            values[rows, place, column] = cell.column(metric)
    return units, clusters, values


# Summary


def summarise(scores: pd.DataFrame, cluster: str | None = None, level: float = LEVEL) -> pd.DataFrame:
    """One row for each cell and metric: mean, std, ci_low, ci_high, n, n_missing.

    ``std`` is that of the units (n - 1 in the denominator), the interval is that of the mean, ``n`` counts
    the units with a value and ``n_missing`` those of the cell's units without one.

    Args:
        scores: long, with the columns cell, metric, unit, value.
        cluster: as in :func:`unit_values`.
    """
    return summary_of(unit_values(scores, cluster), level)


def summary_of(cells: Mapping[str, UnitValues], level: float = LEVEL) -> pd.DataFrame:
    """As :func:`summarise`, of matrices. Cells with equally many clusters are resampled together."""
    import pandas as pd

    totals = {
        name: _cluster_totals(cell.values, _codes(cell.clusters, len(cell.units)))
        for name, cell in cells.items()
    }
    together: dict[int, list[str]] = {}
    for name, (sums, _) in totals.items():
        together.setdefault(len(sums), []).append(name)
    bounds: dict[str, tuple[FloatArray, FloatArray]] = {}
    for names in together.values():
        sums = np.concatenate([totals[name][0] for name in names], axis=1)
        counts = np.concatenate([totals[name][1] for name in names], axis=1)
        low, high = _intervals(sums, counts, level, RESAMPLES, None)
        ends = np.cumsum([len(cells[name].metrics) for name in names])[:-1]
        bounds |= zip(names, zip(np.split(low, ends), np.split(high, ends), strict=True), strict=True)
    frames = []
    for name, cell in cells.items():
        n = (~np.isnan(cell.values)).sum(axis=0)
        frames.append(
            pd.DataFrame(
                {
                    "cell": name,
                    "metric": list(cell.metrics),
                    "mean": _mean(cell.values, n),
                    "std": _standard_deviation(cell.values, n),
                    "ci_low": bounds[name][0],
                    "ci_high": bounds[name][1],
                    "n": n,
                    "n_missing": len(cell.units) - n,
                }
            )
        )
    columns = ["cell", "metric", "mean", "std", "ci_low", "ci_high", "n", "n_missing"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _mean(values: FloatArray, n: IntArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(values, axis=0) / np.where(n > 0, n, np.nan))


def _standard_deviation(values: FloatArray, n: IntArray) -> FloatArray:
    squares = np.nansum((values - _mean(values, n)) ** 2, axis=0)
    return np.asarray(np.sqrt(squares / np.where(n > 1, n - 1, np.nan)))


# Paired comparisons


class PairedDifference(NamedTuple):
    """``first - second`` over the units that both have: mean, interval, and Wilcoxon's p; ``n`` units."""

    difference: float
    ci_low: float
    ci_high: float
    p_value: float
    n: int


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    clusters: ArrayLike | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    generator: np.random.Generator | None = None,
) -> PairedDifference:
    """Compares two methods on the units that both have a value for.

    The interval is a bootstrap of the differences. The p-value is Wilcoxon's signed-rank test of the
    clusters' mean differences (zeros left out, as Wilcoxon did; 1 when all are zero).

    Args:
        first, second: (units,), aligned; NaN where there is no value.
        clusters: (units,) as in :func:`bootstrap_interval`.
    """
    from scipy import stats

    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    both = ~np.isnan(differences)
    codes = _codes(clusters, len(differences))[both]
    differences = differences[both]
    if not len(differences):
        return PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)
    low, high = bootstrap_interval(differences, level, resamples, generator, codes)
    sums, counts = _cluster_totals(differences[:, None], _codes(codes, len(codes)))
    means = (sums / counts)[:, 0]
    p_value = float(stats.wilcoxon(means).pvalue) if means.any() else 1.0
    return PairedDifference(float(differences.mean()), float(low), float(high), p_value, len(differences))


# Rankings


def ranks(values: ArrayLike, direction: str) -> FloatArray:
    """Ranks of the methods for each unit, 1 the best; ties averaged; who has no value shares the worst rank.

    Args:
        values: (units, methods), NaN where a method has no value.
        direction: "higher" or "lower", which is better.
    """
    from scipy import stats

    costs = np.asarray(values, dtype=np.float64) * (-1.0 if _higher(direction) else 1.0)
    ranked: FloatArray = stats.rankdata(np.where(np.isnan(costs), np.inf, costs), axis=1)
    return ranked


def _higher(direction: str) -> bool:
    if direction not in ("higher", "lower"):
        raise ValueError(f"direction {direction!r}: must be 'higher' or 'lower'")
    return direction == "higher"


class Friedman(NamedTuple):
    """Friedman's test with Iman and Davenport's F; ``average_ranks`` (methods,), 1 the best."""

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    average_ranks: FloatArray
    units: int


def friedman(values: ArrayLike, direction: str) -> Friedman:
    """Do the methods differ at all? Tie-corrected.

        chi2 = (k - 1) sum_j (R_j - N (k + 1) / 2)^2 / (sum_ij r_ij^2 - N k (k + 1)^2 / 4),   R_j = sum_i r_ij
        F    = (N - 1) chi2 / (N (k - 1) - chi2),   with (k - 1) and (k - 1) (N - 1) degrees of freedom

    Args:
        values: (N units, k methods); see :func:`ranks`. When all methods tie on all units, p is 1.
    """
    from scipy import stats

    ranked = ranks(values, direction)
    n, k = ranked.shape
    if k < 2 or n < 2:
        raise ValueError(f"Friedman's test needs at least 2 units and 2 methods, got {n} and {k}")
    between = float(((ranked.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    total = float((ranked**2).sum()) - n * k * (k + 1) ** 2 / 4
    statistic = (k - 1) * between / total if total > 1e-9 else 0.0
    room = n * (k - 1) - statistic
    f_statistic = (n - 1) * statistic / room if room > 1e-9 else np.inf
    return Friedman(
        statistic,
        float(stats.chi2.sf(statistic, k - 1)),
        f_statistic,
        float(stats.f.sf(f_statistic, k - 1, (k - 1) * (n - 1))),
        ranked.mean(axis=0),
        n,
    )


@functools.cache
def nemenyi_critical_difference(methods: int, units: int, alpha: float = 0.05) -> float:
    """Average ranks further apart than this differ: q_alpha sqrt(k (k + 1) / (6 N)), Demšar 2006, section
    3.2.2."""
    from scipy import stats

    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * units)))


def nemenyi_p_values(average_ranks: ArrayLike, units: int) -> FloatArray:
    """(methods, methods) p-values of Nemenyi's test for all pairs; 1 on the diagonal."""
    from scipy import stats

    average_ranks = np.asarray(average_ranks, dtype=np.float64)
    k = len(average_ranks)
    apart = np.abs(average_ranks[:, None] - average_ranks) / np.sqrt(k * (k + 1) / (6 * units))
    p_values: FloatArray = stats.studentized_range.sf(apart * np.sqrt(2), k, np.inf)
    np.fill_diagonal(p_values, 1.0)
    return p_values


def indistinguishable(average_ranks: ArrayLike, critical_difference: float) -> list[tuple[int, ...]]:
    """Bars of a critical-difference diagram: largest runs of methods, best first, within one difference."""
    average_ranks = np.asarray(average_ranks, dtype=np.float64)
    order = np.argsort(average_ranks, kind="stable")
    runs: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        within = average_ranks[order] <= average_ranks[order[start]] + critical_difference
        stop = int(np.flatnonzero(within).max()) + 1
        if stop > reached and stop - start > 1:
            runs.append(tuple(int(method) for method in order[start:stop]))
        reached = max(reached, stop)
    return runs


def rank_agreement(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two rankings (or scores) of the same methods; aware of ties; NaN when one has only
    ties."""
    from scipy import stats

    return float(stats.kendalltau(np.asarray(first), np.asarray(second), variant="b").statistic)


def win_rates(values: ArrayLike, direction: str) -> FloatArray:
    """(methods, methods): the share of units on which the row's method beats the column's; ties count half.

    Args:
        values: (units, methods); a method without a value loses against one that has one.
    """
    ranked = ranks(values, direction)
    return np.stack([((mine < ranked) + (mine == ranked) / 2).mean(axis=0) for mine in ranked.T[:, :, None]])
