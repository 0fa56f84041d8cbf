"""Intervals, paired tests and rankings: what a difference between two means is worth.

Two rules hold all through. Units that belong together (the items of one user's list) are not independent, so
the bootstrap draws *clusters* of units, not units. And all random draws come from a stream with a fixed name,
so that equal scores have equal intervals, whoever computes them and with whatever else.
"""

from cfbench_core.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    FloatArray,
    IntArray,
    bootstrap_interval,
    percentile_interval,
    resampled_means,
)
from cfbench_core.statistics.paired import PairedDifference, paired_difference
from cfbench_core.statistics.rankings import (
    Friedman,
    friedman,
    indistinguishable,
    nemenyi_critical_difference,
    nemenyi_p_values,
    rank_agreement,
    ranks,
    win_rates,
)
from cfbench_core.statistics.unit_values import UnitValues, align, summarise, summary_of, unit_values

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "FloatArray",
    "Friedman",
    "IntArray",
    "PairedDifference",
    "UnitValues",
    "align",
    "bootstrap_interval",
    "friedman",
    "indistinguishable",
    "nemenyi_critical_difference",
    "nemenyi_p_values",
    "paired_difference",
    "percentile_interval",
    "rank_agreement",
    "ranks",
    "resampled_means",
    "summarise",
    "summary_of",
    "unit_values",
    "win_rates",
]
