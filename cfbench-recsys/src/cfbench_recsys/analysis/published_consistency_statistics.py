"""The statistics by which the claims of Consistency beyond top-1 are decided, ours and those of its table 1.

- ``agreement-K``: Spearman's rho between levels of quality, mean over pairs and T, of the first K items;
- ``gain``, ``matched-gain``: that of the five first items less that of the first, of all users or as many explanations;
- ``over-pos-1``: that of the first item by NEG-P less that by POS-P (both intervals taken as independent);
- ``over-pos``: the same of the mean over the first 1, 2, 3 and 5 items, which figure 1 shows and which are all needed;
- ``lxr-best``: in which share of levels and metrics LXR has the best mean over the first three items; undecided where
  it depends on how means that are equal to the best are counted.

Where table 1 decides a claim, too, both sides are the same statistic: of means over the repetitions, at the levels and
for the T that are printed. Other agreements are of each seed's rankings, averaged over the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfbench_core.verdicts import Interval
from cfbench_recsys.analysis.consistency import SPEARMAN
from cfbench_recsys.analysis.consistency_rows import ALL_USERS, MATCHED, TOP_1, Comparison
from cfbench_recsys.analysis.published_tables import read_published
from cfbench_recsys.analysis.rank_agreement import Estimate, agreement, ranks, shares_first
from cfbench_recsys.analysis.shared import base
from cfbench_recsys.edits import FloatArray

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("POS-P curve", "NEG-P curve")
LEVELS, LENGTHS = ("25%", "50%", "75%", "100%"), ("5", "10", "20")
"""Of quality and T, by section 3."""
LXR_BEST, GAIN, MATCHED_GAIN, OVER_POS = "lxr-best", "gain", "matched-gain", "over-pos"
OF_TABLE, OF_FIGURE = 3, (1, 2, 3, 5)


def printed_numbers() -> pd.DataFrame:
    """Columns: item, page, dataset, model, checkpoint, top, metric, explainer, printed, rounded_by."""
    return read_published("beyond_top_1.csv")


def printed_levels() -> list[str]:
    return list(dict.fromkeys(printed_numbers()["checkpoint"]))


def printed_metrics() -> list[str]:
    return list(dict.fromkeys(printed_numbers()["metric"]))


@dataclass(frozen=True)
class Measured:
    """What the runs of one variant have of one data set and model: a ladder, and its rows of ``consistency``."""

    comparison: Comparison
    rows: pd.DataFrame
    variant: str

    @property
    def dataset(self) -> str:
        return str(self.comparison.ladder.labels["dataset"])

    @property
    def model(self) -> str:
        return str(self.comparison.ladder.labels["model"])

    @property
    def users(self) -> int:
        return max(sample.users for sample in self.comparison.samples)

    @cached_property
    def explainers(self) -> list[str]:
        return [name.removesuffix(f"-{self.variant}") for name in self.comparison.ladder.explainers]

    @cached_property
    def metrics(self) -> list[str]:
        return [column.name for column in self.comparison.columns]

    @cached_property
    def costs(self) -> Estimate:
        """(K, M, L, E) means over all seeds, low being good."""
        means = Estimate.mean([one.means for one in self.comparison.estimates])
        turned = self.comparison.samples[0].costs
        return Estimate(turned(means.point), turned(means.replicates))


class Cells(NamedTuple):
    """The levels and T that a claim is about, and whether rankings are of means over the seeds."""

    levels: Sequence[str]
    lengths: Sequence[str]
    of_means: bool

    def metrics(self, measured: Measured, name: str) -> list[int]:
        """The columns of a metric, of all if it is ""."""
        return [
            column
            for column, (own, _, length) in enumerate(one.partition("@") for one in measured.metrics)
            if name in ("", own) and (length in self.lengths or not self.of_means)
        ]

    def places(self, measured: Measured) -> list[int]:
        """The levels, of all that were run where the paper prints none."""
        run = measured.comparison.ladder.levels
        return [at for at, level in enumerate(run) if level in self.levels or not self.of_means]

    def missing(self, measured: Measured) -> list[str]:
        """What of these the runs do not have."""
        there = {metric.partition("@")[2] for metric in measured.metrics}
        levels = [f"level {level}" for level in self.levels if level not in measured.comparison.ladder.levels]
        return levels + [f"T = {length}" for length in self.lengths if length not in there]


def cells_of(claim: Mapping[Any, Any]) -> Cells:
    if np.isnan(printed_statistic(claim)):
        return Cells(LEVELS, LENGTHS, of_means=False)
    lengths = dict.fromkeys(name.partition("@")[2] for name in printed_metrics())
    return Cells(printed_levels(), [*lengths], of_means=True)


def statistic_of(claim: Mapping[Any, Any], one: Measured, cells: Cells) -> Interval:
    """The statistic of a claim on one data set and model; its value is NaN where it is not known."""
    if cells.of_means:
        return statistic_of_means(claim, one, cells)
    kind, metric = str(claim["statistic"]), str(claim["metric"])
    rows = seeds_together(one.rows)
    rows = rows[rows["statistic"] == SPEARMAN]
    plain = rows[(rows["against"] == "") & (rows["sample"] == ALL_USERS)]
    if kind.startswith("agreement-"):
        return _agreement(plain[plain["top"] == int(kind.removeprefix("agreement-"))], metric)
    if kind.startswith(OVER_POS):
        tops = _tops(kind)
        if not {*tops} <= {*plain["top"]}:
            return Interval(np.nan)
        shown = plain[plain["top"].isin(tops)]
        return _difference(_agreement(shown, metric), _agreement(shown, METRICS[0]))
    sample = MATCHED if kind == MATCHED_GAIN else ALL_USERS
    gains = rows[(rows["against"] == TOP_1) & (rows["sample"] == sample)]
    return _agreement(gains[gains["top"] == max(OF_FIGURE)], metric)


def _tops(kind: str) -> tuple[int, ...]:
    return OF_FIGURE if kind == OVER_POS else (1,)


# Of means over the seeds


def statistic_of_means(claim: Mapping[Any, Any], one: Measured, cells: Cells) -> Interval:
    """The statistic of a claim, of rankings by means over all seeds; its value is NaN where it is not known."""
    kind, metric = str(claim["statistic"]), str(claim["metric"])
    rankings = _Rankings(one, cells)
    if kind == LXR_BEST:
        return rankings.interval(rankings.share_first) if "lxr" in one.explainers else Interval(np.nan)
    if kind.startswith("agreement-"):
        top = int(kind.removeprefix("agreement-"))
        return rankings.interval(lambda costs: rankings.rho(costs, metric, top))
    if kind == GAIN:
        last = max(OF_FIGURE)
        return rankings.interval(
            lambda costs: rankings.rho(costs, metric, last) - rankings.rho(costs, metric, 1)
        )
    tops = _tops(kind)
    return rankings.interval(
        lambda costs: np.asarray(
            np.mean(
                [rankings.rho(costs, metric, top) - rankings.rho(costs, METRICS[0], top) for top in tops],
                axis=0,
            )
        )
    )


class _Rankings:
    """Statistics of costs (..., K, M, L, E) at the levels and T of a claim; NaN where there are none."""

    def __init__(self, one: Measured, cells: Cells) -> None:
        self.one = one
        self.cells = cells
        self.levels = cells.places(one)

    def interval(self, statistic: Callable[[FloatArray], FloatArray]) -> Interval:
        costs = self.one.costs
        low, high = (found := Estimate(statistic(costs.point), statistic(costs.replicates))).interval()
        return Interval(float(found.point), float(low), float(high))

    def rho(self, costs: FloatArray, metric: str, top: int) -> FloatArray:
        """(...) Spearman's rho between levels, mean over pairs and T."""
        chosen = self._chosen(costs, metric, top)
        if chosen.shape[-3] == 0 or chosen.shape[-2] < 2:
            return np.full(costs.shape[:-4], np.nan)
        return np.asarray(agreement(chosen)[..., 0].mean(axis=-1))

    def share_first(self, costs: FloatArray) -> FloatArray:
        """(...) in which share of levels and metrics LXR has the best mean alone."""
        chosen = self._chosen(costs, "", OF_TABLE)
        if not chosen.size:
            return np.full(costs.shape[:-4], np.nan)
        return np.asarray(shares_first(chosen)[..., self.one.explainers.index("lxr")].mean(axis=-1))

    def _chosen(self, costs: FloatArray, metric: str, top: int) -> FloatArray:
        columns = self.cells.metrics(self.one, metric)
        if costs.shape[-4] < top:
            columns = []
        of_top = costs[..., min(top, costs.shape[-4]) - 1, :, :, :]
        return np.asarray(of_top[..., columns, :, :][..., self.levels, :])

    def first_or_tied(self) -> float:
        """In which share of levels and metrics no explainer has a better mean than LXR."""
        ranked = ranks(self._chosen(self.one.costs.point, "", OF_TABLE))
        return float((ranked[..., self.one.explainers.index("lxr")] == ranked.min(axis=-1)).mean())


def first_or_tied(one: Measured, cells: Cells) -> float:
    return _Rankings(one, cells).first_or_tied()


# Of rows of the analysis


def seeds_together(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of all seeds together, of those of each seed and of all."""
    found: pd.DataFrame = rows[rows["n_seeds"] == rows["n_seeds"].max()]
    return found


def _agreement(rows: pd.DataFrame, metric: str) -> Interval:
    """The mean over the T of a metric."""
    return _mean_over_metrics(rows[rows["metric"].map(base) == metric])


def _mean_over_metrics(rows: pd.DataFrame) -> Interval:
    """The mean of numbers of the same users: its interval is the mean of theirs."""
    if rows.empty:
        return Interval(np.nan)
    return Interval(*(float(rows[name].mean()) for name in ("mean", "ci_low", "ci_high")))


def _difference(first: Interval, second: Interval) -> Interval:
    """Of two intervals that are taken as independent."""
    value = first.value - second.value
    below, above = (
        np.maximum([first.value - first.low, second.value - second.low], 0.0),
        np.maximum([first.high - first.value, second.high - second.value], 0.0),
    )
    low, high = np.hypot(below[0], above[1]), np.hypot(above[0], below[1])
    return Interval(value, float(value - low), float(value + high))


# Of the printed table


def printed_statistic(claim: Mapping[Any, Any]) -> float:
    """The statistic by table 1; NaN where the table does not have what it needs."""
    printed = printed_numbers()
    if claim["statistic"] == LXR_BEST:
        signs = np.where(printed["metric"].str.startswith("POS"), 1.0, -1.0)
        printed = printed.assign(cost=printed["printed"] * signs)
        best = printed.loc[printed.groupby(["checkpoint", "metric"])["cost"].idxmin(), "explainer"]
        return float((best == "lxr").mean())
    if claim["statistic"] == f"agreement-{OF_TABLE}" and claim["model"] == "mf":
        return _printed_agreement(printed[printed["metric"].map(base) == claim["metric"]])
    return float("nan")


def _printed_agreement(printed: pd.DataFrame) -> float:
    """Spearman's rho between levels, mean over pairs and T."""
    found = []
    for _, rows in printed.groupby("metric"):
        by_level = rows.pivot(index="explainer", columns="checkpoint", values="printed")
        together = by_level.corr(method="spearman").to_numpy()
        found.append(together[np.triu_indices(len(together), k=1)].mean())
    return float(np.mean(found))
