"""The numbers of the analysis ``consistency``, as rows of its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_core.plan import Column
from cfbench_recsys.analysis.levels import Ladder, Repetition, quality_of, values_of
from cfbench_recsys.analysis.rank_agreement import (
    STATISTICS,
    Estimate,
    Sample,
    bootstrap_draws,
    level_means,
    mean_of_known,
    partition_draws,
    plain,
    ranks,
    shares_first,
    size_matched,
)
from cfbench_recsys.edits import FloatArray, IntArray

ALL = "mean of all"
ALL_USERS, MATCHED, TOP_1 = "all users", "size-matched", "top 1"
LEVEL_MEAN, SHARE_FIRST, QUALITY = "mean", "share first", "HR@10"

Row = dict[str, Any]


class Comparison:
    """One ladder: the agreement of its rankings, by metric and by how many items of each list are averaged."""

    def __init__(self, ladder: Ladder, columns: Sequence[Column], resamples: int, partitions: int) -> None:
        self.ladder = ladder
        self.columns = columns
        self.places = int(ladder.labels["k"])
        self.samples = [self._sample(one) for one in ladder.repetitions]
        self.estimates = [
            _estimates(sample, one.seed, resamples, partitions)
            for one, sample in zip(ladder.repetitions, self.samples, strict=True)
        ]

    def _sample(self, repetition: Repetition) -> Sample:
        names = [column.name for column in self.columns]
        higher = np.array([column.direction == "higher" for column in self.columns])
        return Sample(values_of(self.ladder, repetition, names, self.places), higher)

    def rows(self) -> Iterator[Row]:
        """Of the mean of all runs, then of each."""
        seeds = [one.seed for one in self.ladder.repetitions]
        subsets = [list(range(len(seeds)))]
        subsets += [[number] for number in subsets[0]] if len(seeds) > 1 else []
        for which in subsets:
            named = ", ".join(seeds[number] for number in which)
            common = {**self.ladder.labels, "seeds": named, "n_seeds": len(which)}
            means = Estimate.mean([self.estimates[number].means for number in which])
            for row in (
                *self._agreements(which),
                *self._level_means(which, means),
                *self._shares_first(which, means),
                *self._qualities(which),
            ):
                yield {**common, **row}

    def _qualities(self, which: Sequence[int]) -> Iterator[Row]:
        quality = quality_of(self.ladder, QUALITY)[which]
        for level, values in zip(self.ladder.levels, quality.T, strict=True):
            if not np.isnan(values).all():
                yield _row(
                    metric=QUALITY,
                    direction="higher",
                    statistic=QUALITY,
                    checkpoint=level,
                    mean=float(mean_of_known(values, axis=0)),
                    spread=float(_spread(values)),
                )

    def _level_means(self, which: Sequence[int], estimate: Estimate) -> Iterator[Row]:
        low, high = estimate.interval()
        spread = _spread(np.stack([self.estimates[number].means.point for number in which]))
        ranked = ranks(self.samples[0].costs(estimate.point))
        for place, top in enumerate(range(1, self.places + 1)):
            counts = self._explanations(which, top, 1)
            for m, level, e in np.ndindex(estimate.point.shape[1:]):
                at = (place, m, level, e)
                yield _row(
                    **_named(self.columns[m]),
                    statistic=LEVEL_MEAN,
                    sample=ALL_USERS,
                    top=top,
                    checkpoint=self.ladder.levels[level],
                    explainer=self.ladder.explainers[e],
                    role=self.ladder.roles[e],
                    rank=ranked[at],
                    n=counts[m],
                    **_numbers(estimate.point[at], low[at], high[at], spread[at]),
                )

    def _shares_first(self, which: Sequence[int], means: Estimate) -> Iterator[Row]:
        """At which share of the levels each explainer is the best alone."""
        costs = self.samples[0].costs
        estimate = Estimate(*(shares_first(costs(found)) for found in (means.point, means.replicates)))
        low, high = estimate.interval()
        for place, top in enumerate(range(1, self.places + 1)):
            counts = self._explanations(which, top, 1)
            for m, e in np.ndindex(estimate.point.shape[1:]):
                at = (place, m, e)
                yield _row(
                    **_named(self.columns[m]),
                    statistic=SHARE_FIRST,
                    sample=ALL_USERS,
                    top=top,
                    explainer=self.ladder.explainers[e],
                    role=self.ladder.roles[e],
                    n=counts[m],
                    **_numbers(estimate.point[at], low[at], high[at], np.nan),
                )

    def _agreements(self, which: Sequence[int]) -> Iterator[Row]:
        chosen = [self.estimates[number] for number in which]
        top_1 = [one.plain.first_place() for one in chosen]
        for sample, estimates in (
            (ALL_USERS, [one.plain for one in chosen]),
            (MATCHED, [one.matched for one in chosen]),
        ):
            gains = [one - first for one, first in zip(estimates, top_1, strict=True)]
            yield from self._statements(which, sample, "", estimates)
            yield from self._statements(which, sample, TOP_1, gains)

    def _statements(
        self, which: Sequence[int], sample: str, against: str, estimates: list[Estimate]
    ) -> Iterator[Row]:
        estimate = Estimate.mean(estimates)
        low, high = estimate.interval()
        spread = _spread(np.stack([one.point for one in estimates]))
        columns = [*self.columns, Column(ALL)]
        first = 2 if against or sample == MATCHED else 1  # of a single item both samples are the same
        for top in range(first, self.places + 1):
            counts = self._explanations(which, top, top if sample == MATCHED else 1)
            for m, column in enumerate(columns):
                for s, statistic in enumerate(STATISTICS):
                    at = (top - 1, m, s)
                    yield _row(
                        **_named(column),
                        statistic=statistic,
                        sample=sample,
                        top=top,
                        against=against,
                        n=counts[m],
                        **_numbers(estimate.point[at], low[at], high[at], spread[at]),
                    )

    def _explanations(self, which: Sequence[int], top: int, parts: int) -> IntArray:
        """(M + 1,) explanations behind a mean that is ranked, of a sample that is one of ``parts``; last the fewest."""
        counts = [self.samples[number].explanations(top) / parts for number in which]
        found = np.rint(np.mean(counts, axis=0)).astype(np.int64)
        return np.append(found, found.min())


class _Estimates:
    """The results of one run: agreement (K, M + 1, 4) among all users and size-matched; means (K, M, L, E)."""

    def __init__(self, plain: Estimate, matched: Estimate, means: Estimate) -> None:
        self.plain = plain
        self.matched = matched
        self.means = means


def _estimates(sample: Sample, seed: str, resamples: int, partitions: int) -> _Estimates:
    all_users = np.arange(sample.users)[None]
    cuts = partition_draws(sample.users, partitions, generator("consistency", "partitions", seed))
    matched = mean_of_known(np.concatenate([size_matched(sample, draws) for draws in cuts]), axis=0)
    resampled = [
        (plain(sample, draws), size_matched(sample, draws), level_means(sample, draws))
        for draws in bootstrap_draws(sample.users, resamples, generator("consistency", "resamples", seed))
    ]
    plains, matcheds, means = (np.concatenate(parts) for parts in zip(*resampled, strict=True))
    if sample.users < 2:  # all draws of one user are the same, which says nothing of the spread
        plains, matcheds, means = (np.full_like(part, np.nan) for part in (plains, matcheds, means))
    return _Estimates(
        Estimate(_with_mean(plain(sample, all_users)[0]), _with_mean(plains)),
        Estimate(_with_mean(matched), _with_mean(matcheds)),
        Estimate(level_means(sample, all_users)[0], means),
    )


def _with_mean(found: FloatArray) -> FloatArray:
    """(..., M + 1, 4): the mean over the metrics behind them."""
    return np.concatenate([found, mean_of_known(found, axis=-2)[..., None, :]], axis=-2)


def _spread(points: FloatArray) -> FloatArray:
    """Standard deviation over the first axis, the runs (n - 1); NaN for one run."""
    return points.std(axis=0, ddof=1) if len(points) > 1 else np.full(points.shape[1:], np.nan)


def _named(column: Column) -> Row:
    return {"metric": column.name, "direction": column.direction}


def _numbers(mean: float, low: float, high: float, spread: float) -> Row:
    return {"mean": mean, "ci_low": low, "ci_high": high, "spread": spread}


def _row(**given: Any) -> Row:
    """A row with all columns; see ``Consistency.table``."""
    empty: Row = {
        **dict.fromkeys(("metric", "direction", "statistic", "sample"), ""),
        "top": None,
        **dict.fromkeys(("against", "checkpoint", "explainer", "role"), ""),
        **dict.fromkeys(("rank", "mean", "ci_low", "ci_high", "spread"), np.nan),
        "n": None,
    }
    return {**empty, **given}
