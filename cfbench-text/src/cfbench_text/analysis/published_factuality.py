"""What Statement factuality prints: the numbers of its tables, and its headline claims with the statistic that decides each.

The claims and thresholds were written down from the paper's words and tables, before the study file was run. A statistic is
computed from the means of a table (one for each data set and generator):

- ``maximum``, ``minimum``: over all data sets and generators.
- ``share below``: of the data sets and generators, in how many ``metric`` is below the metric ``subject``.
- ``share first``, ``share last``: of the data sets, in how many the generator ``subject`` is the best, or the worst.
- ``first on average``: the place of the generator ``subject`` by the mean over data sets; 1 is the best.
- ``smallest difference``: ``metric`` - ``subject``, over all data sets and generators.

All these metrics are better when higher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from cfbench_core.verdicts import (
    NOT_COMPARABLE,
    NOT_REPRODUCIBLE,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    rounding,
)

if TYPE_CHECKING:
    import pandas as pd

GENERATORS = ("nrt", "att2seq", "cer", "peter", "pepler", "xrec")
DOMAINS = ("toys", "clothes", "beauty", "sports", "cellphones")
OUR_NAMES = {
    "BERT-P": "BERTScore-P",
    "BERT-R": "BERTScore-R",
    "BERT-F1": "BERTScore-F",
    "BART": "BARTScore-F",
    "AlignScore": "AlignScore-P",
    "SummaC-ZS": "SummaC-ZS-P",
    "SummaC-Conv": "SummaC-Conv-P",
    "QuestEval": "QuestEval-F",
}
"""Metrics of which the paper prints one number under a name without a direction, or with another name."""
UNNAMED = "AlignScore, SummaC and BARTScore"
RANKING = ("share first", "share last", "first on average")
SAME = 1e-9


def printed_numbers() -> pd.DataFrame:
    """Columns: table, page, section, dataset, model, metric, printed, printed_std, rounded_by; metrics under our names."""
    import pandas as pd

    table = _read("statement_factuality.csv")
    found = table.assign(
        page=table["page"].astype(int),
        printed=table["value"].astype(float),
        printed_std=pd.to_numeric(table["deviation"]),
        rounded_by=table["value"].map(rounding),
        metric=table["metric"].replace(OUR_NAMES),
    ).drop(columns=["value", "deviation"])
    return found.rename(columns={"domain": "dataset", "generator": "model"})


def claims() -> pd.DataFrame:
    """Columns: claim, section, sentence, statistic, metric, subject, relation, threshold."""
    table = _read("statement_factuality_claims.csv")
    return table.assign(threshold=table["threshold"].astype(float))


def statistic(claim: Mapping[Any, Any], means: pd.DataFrame) -> float:
    """The statistic of a claim; NaN if a metric or generator that it needs is missing.

    Args:
        means: columns dataset, model, metric, mean; one row for each.
    """
    known = means.dropna(subset=["mean"])
    grid = known[known["metric"] == claim["metric"]].pivot(index="dataset", columns="model", values="mean")
    kind, subject = claim["statistic"], claim["subject"]
    if grid.empty:
        return float("nan")
    if kind in ("maximum", "minimum"):
        return float(grid.max(axis=None) if kind == "maximum" else grid.min(axis=None))
    if kind in RANKING:
        return _of_ranking(kind, subject, grid)
    other = known[known["metric"] == subject].pivot(index="dataset", columns="model", values="mean")
    difference = (grid - other).stack().dropna()
    if difference.empty:
        return float("nan")
    return float((difference < -SAME).mean() if kind == "share below" else difference.min())


def _of_ranking(kind: str, subject: str, grid: pd.DataFrame) -> float:
    """Only of data sets on which all six generators of the paper were run; one that ties is neither first nor last."""
    if not set(GENERATORS) <= set(grid.columns):
        return float("nan")
    full = grid[list(GENERATORS)].dropna()
    if full.empty:
        return float("nan")
    others = full.drop(columns=subject)
    if kind == "first on average":
        return 1.0 + float((others.mean() > full[subject].mean() + SAME).sum())
    if kind == "share first":
        return float((full[subject] > others.max(axis=1) + SAME).mean())
    return float((full[subject] < others.min(axis=1) - SAME).mean())


def verdict(claim: Mapping[Any, Any], value: float, other: str = "", absent: Sequence[str] = ()) -> Verdict:
    """Whether a claim holds for a statistic; NaN: what it needs was not run.

    Args:
        claim: with its relation and threshold.
        value: of its statistic.
        other: what it was measured with in place of the paper's models; it is not comparable then.
        absent: generators of the paper that were not run; the claim is undecided if their means could change it.
    """
    if value != value:
        return Verdict(NOT_REPRODUCIBLE, "a metric, judge or generator that it needs was not run")
    if other:
        return Verdict(NOT_COMPARABLE, other)
    relation, threshold = claim["relation"], float(claim["threshold"])
    found = claim_verdict(Interval(value), relation, threshold)
    ends = bounds(claim["statistic"], value, len(absent)) if absent else ()
    if {claim_verdict(Interval(end), relation, threshold).word for end in ends} - {found.word}:
        missing = ", ".join(absent)
        return Verdict(UNDECIDED, f"{found.reason}, which {missing} could change: they were not run")
    return found


def bounds(kind: str, value: float, absent: int) -> tuple[float, float]:
    """What a statistic of some of the six generators could be with all, if ``absent`` of them have any means.

    A ranking needs all six, so it cannot be another.
    """
    if kind == "maximum":
        return value, math.inf
    if kind in ("minimum", "smallest difference"):
        return -math.inf, value
    if kind == "share below":
        present = len(GENERATORS) - absent
        return value * present / len(GENERATORS), (value * present + absent) / len(GENERATORS)
    return value, value


def _read(name: str) -> pd.DataFrame:
    import pandas as pd

    with (resources.files("cfbench_text.published") / name).open(encoding="utf-8") as opened:
        return pd.read_csv(opened, dtype=str, keep_default_na=False)
