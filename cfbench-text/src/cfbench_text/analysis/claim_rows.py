"""The claims of Statement factuality next to a run: their statistics as printed and here, with intervals and verdicts.

The interval of a statistic is that of resampled texts: the texts of a data set are drawn with replacement, the same for all
generators and metrics, and every mean is computed anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.statistics import percentile_interval, resampled_means
from cfbench_core.verdicts import (
    CONFIRMED,
    CONFIRMED_IN_PART,
    NOT_COMPARABLE,
    NOT_REPRODUCIBLE,
    REFUTED,
    REFUTED_IN_PART,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    in_part,
)
from cfbench_text.analysis.claim_statistics import (
    OF_DATA,
    WITH_TIES,
    extent,
    grids,
    possible_values,
    statistic,
    wanted_data_sets,
)
from cfbench_text.analysis.number_verdicts import ONE_TEXT, RESAMPLES, STAND_IN
from cfbench_text.analysis.published_factuality import GENERATORS, claims, decisive_metrics

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_text.reviews import FloatArray

DECIDED = (CONFIRMED, CONFIRMED_IN_PART, REFUTED, REFUTED_IN_PART)
NOT_RUN = "a metric, judge or generator that it needs was not run"
NO_VALUE = "run, but no text has a value, as one without statements"
VALUES = "values"
"""The column with a series of each mean: its values by the unit that they are of."""


def claim_rows(
    measured: pd.DataFrame,
    printed: pd.DataFrame,
    silent: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Iterator[dict[str, Any]]:
    """A row for each claim, once for each judge of the metrics that have one.

    Keys: metric (the name of the claim), judge, printed, ours, ci_low, ci_high, sentence, rule, verdict_printed, verdict,
    reason.

    Args:
        measured: columns dataset, metric, judge, model, generator, ours, VALUES (of the decisive metrics) and STAND_IN;
            of two models that are one generator, "-paper" counts.
        printed: columns dataset, metric, model, printed.
        silent: by metric, the generators that ran on a data set and have no value there.
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
        as_printed, *printed_readings = _readings(claim, theirs, domains)
        for judge in judges:
            rows = of_claim[of_claim["judge"].isin(["", judge])]
            places = list(dict.fromkeys(rows["dataset"]))
            measured_means = _grids(rows, means)
            here, *readings = _readings(claim, measured_means, places)
            decided = _of_measured(claim, here, readings, rows, measured_means, silent)
            yield {
                "metric": claim["claim"],
                "judge": judge,
                "printed": as_printed.value,
                "ours": here.value,
                "ci_low": here.low,
                "ci_high": here.high,
                "sentence": f"{claim['sentence']} (section {claim['section']})",
                "rule": rule(claim),
                "verdict_printed": _of_printed(claim, as_printed, printed_readings),
                "verdict": decided.word,
                "reason": decided.reason,
            }


def rule(claim: Any) -> str:
    """ "share below: St2Exp-R, St2Exp-P > 0.5"."""
    of = ", ".join(filter(None, (claim["metric"], claim["subject"])))
    return f"{claim['statistic']}: {of} {claim['relation']} {claim['threshold']:g}"


def verdict(
    claim: Mapping[Any, Any],
    found: Interval,
    other: str = "",
    readings: Sequence[Interval] = (),
    bounds: Sequence[float] = (),
    missing: str = "",
) -> Verdict:
    """Whether a claim holds for a statistic; NaN: what it needs was not run.

    Args:
        claim: with its statistic, relation and threshold.
        found: the statistic with its interval.
        other: what it was measured with in place of the paper's models; it is not comparable then.
        readings: the statistic with ties counted against and for the claim; it is undecided if they disagree.
        bounds: what the statistic could be with all that the paper has; empty if nothing is missing.
        missing: what was not run or has no value, in words.
    """
    if np.isnan(found.value) and claim["statistic"] in OF_DATA:
        return Verdict(
            NOT_REPRODUCIBLE, "it compares the five data sets of the paper, which were not all run"
        )
    if np.isnan(found.value):
        return Verdict(NOT_REPRODUCIBLE, missing or NOT_RUN)
    if other:
        return Verdict(NOT_COMPARABLE, other)
    relation, threshold = claim["relation"], float(claim["threshold"])
    decided = claim_verdict(found, relation, threshold, readings=readings)
    return in_part(decided, map(Interval, bounds), relation, threshold, missing)


def _of_printed(claim: Mapping[Any, Any], found: Interval, readings: Sequence[Interval]) -> str:
    """The verdict by the printed numbers; "not comparable" where the paper prints none."""
    return NOT_COMPARABLE if np.isnan(found.value) else verdict(claim, found, readings=readings).word


def _of_measured(
    claim: Mapping[Any, Any],
    found: Interval,
    readings: Sequence[Interval],
    rows: pd.DataFrame,
    means: Mapping[str, FloatArray],
    silent: Mapping[str, Collection[str]],
) -> Verdict:
    """``rows``: the means that the claim is about; ``means``: the same as grids; ``silent``: see :func:`claim_rows`."""
    named = [part for of_row in rows[STAND_IN].fillna("") for part in of_row.split("; ")]
    other = "; ".join(dict.fromkeys(filter(None, named)))
    places = list(dict.fromkeys(rows["dataset"]))
    without = {name for metric in (claim["metric"], claim["subject"]) for name in silent.get(metric, ())}
    unmeasured = [name for name in GENERATORS if name not in set(rows["generator"])]
    absent = [name for name in unmeasured if name not in without]
    if places:  # without a mean it is not known which data sets were run
        absent += [name for name in wanted_data_sets(places) if name not in places]
    absent = [name for name in _metrics_not_run(claim, rows) if name not in silent] or absent
    parts = [f"{', '.join(absent)} (not run)"] if absent else []
    empty = [name for name in unmeasured if name in without]
    parts += [f"{', '.join(empty)} ({NO_VALUE})"] if empty else []
    if np.isnan(found.value):
        return verdict(claim, found, missing=" and ".join(parts))
    missing = " and ".join(parts) or "what was not run"
    present, whole = extent(claim, means, places)
    limits = [limit for one in (found, *readings) for limit in one.limits]
    ends = possible_values(claim["statistic"], min(limits), max(limits), present, whole)
    bounds = ends if present < whole else ()
    decided = verdict(claim, found, other, readings, bounds, missing)
    if decided.word in DECIDED and any(len(values) < 2 for values in rows[VALUES]):
        return Verdict(UNDECIDED, ONE_TEXT)
    return decided


def _metrics_not_run(claim: Mapping[Any, Any], rows: pd.DataFrame) -> list[str]:
    """The metrics of a claim that no generator was scored by; its subject may be one as well."""
    wanted = decisive_metrics() & {claim["metric"], claim["subject"]}
    return sorted(wanted - set(rows["metric"]))


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


def _readings(
    claim: Mapping[Any, Any], means: Mapping[str, FloatArray], places: Sequence[str]
) -> list[Interval]:
    """The statistic of a claim, and where ties matter again, with these counted against and for the claim."""
    found = _interval(statistic(claim, means, places))
    if claim["statistic"] not in WITH_TIES:
        return [found]
    return [found, found, _interval(statistic(claim, means, places, ties=True))]


def _interval(found: FloatArray) -> Interval:
    """The first value, with the middle 95% of the others; 0.1 + 0.4 is not below 0.5 by how it is computed."""
    found = found.round(12)
    if not found.ndim:
        return Interval(float(found))
    return Interval(float(found[0]), *percentile_interval(found[1:]))
