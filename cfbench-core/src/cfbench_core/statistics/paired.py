"""Two methods on the units that both have a value for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cfbench_core.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    bootstrap_interval,
    cluster_totals,
    codes_of,
)


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
    codes = codes_of(clusters, len(differences))[both]
    differences = differences[both]
    if not len(differences):
        return PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)
    low, high = bootstrap_interval(differences, level, resamples, generator, codes)
    sums, counts = cluster_totals(differences[:, None], codes_of(codes, len(codes)))
    means = (sums / counts)[:, 0]
    p_value = float(stats.wilcoxon(means).pvalue) if means.any() else 1.0
    return PairedDifference(float(differences.mean()), float(low), float(high), p_value, len(differences))
