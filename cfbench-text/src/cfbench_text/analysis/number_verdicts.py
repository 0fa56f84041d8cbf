"""Verdicts on the numbers of Statement factuality: means over explanations, and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.statistics import bootstrap_interval
from cfbench_core.verdicts import NOT_COMPARABLE, UNDECIDED, Interval, Verdict, number_verdict
from cfbench_text.analysis.published_factuality import DOMAINS

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 1000
"""Draws of texts, for the intervals of numbers and of claims."""
ONE_TEXT = "one text, whose mean has no interval"
STAND_IN = "stand_in"
"""What a number was measured with in place of the paper's model; not a column of the analysis's table."""


def with_verdicts(table: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Whether each number is the printed one, by the interval of its mean; numbers of other data sets are not compared."""
    found = []
    for row in table.to_dict("records"):
        ours = interval_of(row)
        if row["dataset"] not in DOMAINS:
            found.append(Verdict(NOT_COMPARABLE, "not a data set of the paper"))
        elif isinstance(row.get(STAND_IN), str) and row[STAND_IN]:
            found.append(Verdict(NOT_COMPARABLE, row[STAND_IN]))
        elif row["n"] == 1 and not np.isnan(row["printed"]):
            found.append(Verdict(UNDECIDED, ONE_TEXT))
        else:
            found.append(number_verdict(row["printed"], ours, margin=margin, rounded_by=row["rounded_by"]))
    words, reasons = zip(*found, strict=True) if found else ((), ())
    return table.assign(verdict=list(words), reason=list(reasons))


def intervals_of(scores: Mapping[str, pd.Series[float]]) -> dict[str, tuple[float, float]]:
    """Of each metric of a cell, the limits of the 95% interval of its mean; NaN where fewer than two texts have a value.

    As of claims, the texts that have a value are drawn with replacement, the same for all metrics; ``scores``: their
    values by text.
    """
    import pandas as pd

    if not scores:
        return {}
    values = pd.concat(scores, axis=1).dropna(how="all").sort_index()
    low, high = bootstrap_interval(values.to_numpy(), resamples=RESAMPLES)
    return dict(zip(values.columns, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def interval_of(row: Any) -> Interval:
    """Of a mean over texts; none of a count, nor of the mean of one text."""
    return Interval(row["ours"], row["ci_low"], row["ci_high"])
