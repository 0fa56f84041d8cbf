"""The claims of Statement factuality next to a run: their statistics as printed and here, with intervals and verdicts.

The interval of a statistic is that of resampled texts: the texts of a data set are drawn with replacement, the same for all
generators and metrics, and every mean is computed anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.statistics import percentile_interval, resampled_means
from cfbench_core.verdicts import (
    CONFIRMED,
    NOT_COMPARABLE,
    NOT_REPRODUCIBLE,
    REFUTED,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    in_part,
)
from cfbench_text.analysis.claim_statistics import OF_DATA, grids, possible_values, statistic
from cfbench_text.analysis.number_verdicts import ONE_TEXT, STAND_IN
from cfbench_text.analysis.published_factuality import GENERATORS, claims, decisive_metrics

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_text.reviews import FloatArray

RESAMPLES = 1000
VALUES = "values"
"""The column with a series of each mean: its values by the unit that they are of."""


def claim_rows(measured: pd.DataFrame, printed: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row for each claim, once for each judge of the metrics that have one.

    Keys: metric (the name of the claim), judge, printed, ours, ci_low, ci_high, sentence, rule, verdict_printed, verdict,
    reason.

    Args:
        measured: columns dataset, metric, judge, model, generator, ours, VALUES (of the decisive metrics) and STAND_IN;
            of two models that are one generator, "-paper" counts.
        printed: columns dataset, metric, model, printed.
    """
    chosen = measured[measured["metric"].isin(decisive_metrics())]
    chosen = chosen.assign(first=~chosen["model"].astype(str).str.endswith("-paper"))
    ours = chosen.sort_values("first", kind="stable")
    ours = ours.drop_duplicates(["dataset", "metric", "judge", "generator"]).reset_index(drop=True)
    means = _with_resamples(ours)
    theirs = grids(printed.rename(columns={"printed": "mean"}))
    domains = list(dict.fromkeys(printed["dataset"]))
    judged = dict.fromkeys(ours["metric"][ours["judge"] != ""])
    for claim in claims().to_dict("records"):
        of_claim = ours[ours["metric"].isin([claim["metric"], claim["subject"]])]
        judges = list(dict.fromkeys(of_claim["judge"][of_claim["metric"].isin(judged)])) or [""]
        as_printed = Interval(float(statistic(claim, theirs, domains)))
        for judge in judges:
            rows = of_claim[of_claim["judge"].isin(["", judge])]
            places = list(dict.fromkeys(rows["dataset"]))
            here = _interval(statistic(claim, _grids(rows, means), places))
            decided = _of_measured(claim, here, rows)
            yield {
                "metric": claim["claim"],
                "judge": judge,
                "printed": as_printed.value,
                "ours": here.value,
                "ci_low": here.low,
                "ci_high": here.high,
                "sentence": f"{claim['sentence']} (section {claim['section']})",
                "rule": rule(claim),
                "verdict_printed": verdict(claim, as_printed).word,
                "verdict": decided.word,
                "reason": decided.reason,
            }


def rule(claim: Any) -> str:
    """ "share below: St2Exp-R, St2Exp-P > 0.5"."""
    of = ", ".join(filter(None, (claim["metric"], claim["subject"])))
    return f"{claim['statistic']}: {of} {claim['relation']} {claim['threshold']:g}"


def verdict(
    claim: Mapping[Any, Any], found: Interval, other: str = "", absent: Sequence[str] = ()
) -> Verdict:
    """Whether a claim holds for a statistic; NaN: what it needs was not run.

    Args:
        claim: with its statistic, relation and threshold.
        found: the statistic with its interval.
        other: what it was measured with in place of the paper's models; it is not comparable then.
        absent: generators of the paper that were not run; the claim is decided in part if their means could change it.
    """
    if np.isnan(found.value) and claim["statistic"] in OF_DATA:
        return Verdict(
            NOT_REPRODUCIBLE, "it compares the five data sets of the paper, which were not all run"
        )
    if np.isnan(found.value):
        return Verdict(NOT_REPRODUCIBLE, "a metric, judge or generator that it needs was not run")
    if other:
        return Verdict(NOT_COMPARABLE, other)
    relation, threshold = claim["relation"], float(claim["threshold"])
    decided = claim_verdict(found, relation, threshold)
    ends = possible_values(claim["statistic"], *found.limits, len(absent)) if absent else ()
    return in_part(decided, map(Interval, ends), relation, threshold, f"{', '.join(absent)} (not run)")


def _of_measured(claim: Mapping[Any, Any], found: Interval, rows: pd.DataFrame) -> Verdict:
    """``rows``: the means that the claim is about."""
    other = "; ".join(dict.fromkeys(filter(None, rows[STAND_IN].fillna(""))))
    absent = [name for name in GENERATORS if name not in set(rows["generator"])]
    decided = verdict(claim, found, other, absent)
    if decided.word in (CONFIRMED, REFUTED) and any(len(values) < 2 for values in rows[VALUES]):
        return Verdict(UNDECIDED, ONE_TEXT)
    return decided


def _with_resamples(ours: pd.DataFrame) -> FloatArray:
    """(1 + resamples, rows) the means, then those of each draw of the texts of their data set."""
    import pandas as pd

    means = np.full((1 + RESAMPLES, len(ours)), np.nan)
    means[0] = ours["ours"]
    for rows in ours.groupby("dataset", sort=False).indices.values():
        values = pd.concat([ours[VALUES].iloc[row] for row in rows], axis=1).sort_index()
        means[1:, rows] = resampled_means(values.to_numpy(), RESAMPLES)
    return means


def _grids(rows: pd.DataFrame, means: FloatArray) -> dict[str, FloatArray]:
    """Of each metric (1 + resamples, data sets, generators); ``rows`` are those of one judge."""
    places = list(dict.fromkeys(rows["dataset"]))
    found: dict[str, FloatArray] = {}
    for position, row in zip(rows.index, rows.to_dict("records"), strict=True):
        shape = (len(means), len(places), len(GENERATORS))
        grid = found.setdefault(str(row["metric"]), np.full(shape, np.nan))
        grid[:, places.index(row["dataset"]), GENERATORS.index(row["generator"])] = means[:, position]
    return found


def _interval(found: FloatArray) -> Interval:
    """The first value, with the middle 95% of the others."""
    if not found.ndim:
        return Interval(float(found))
    return Interval(float(found[0]), *percentile_interval(found[1:]))
