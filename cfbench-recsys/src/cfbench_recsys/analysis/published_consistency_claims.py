"""The claims of Consistency beyond top-1, decided by its table 1 and by the analysis ``consistency``.

A statistic of several data sets is their mean, its interval that of independent data sets. Rankings of fewer than the six
explainers of the paper decide nothing, nor do those of one user; a claim needs each model that it names. The statistics:

- ``agreement-K``: Spearman's rho between levels of quality, mean over pairs and T, of the first K items;
- ``gain``, ``matched-gain``: that of the five first items less that of the first, of all users or as many explanations;
- ``over-pos-1``: that of the first item by NEG-P less that by POS-P (both intervals taken as independent);
- ``over-pos``: the same of the mean over the first 1, 2, 3 and 5 items, which figure 1 shows and which are all needed;
- ``lxr-best``: in which share of levels and metrics LXR has the best mean over the first three items; undecided where
  it depends on how means that are equal to the best are counted.

Where table 1 decides a claim, too, both sides are the same statistic: of means over the repetitions, at the levels and
for the T that are printed. Other agreements are of each seed's rankings, averaged over the seeds.

Rankings by noisy means agree less than those by exact ones. Of few users rho is therefore too low on average, at
every threshold and for every metric, and the more so the closer the explainers are; draws of the users are around that
low value, so their interval does not cover the error. What the seeds' own rankings decide must therefore hold by the
rankings of means over all seeds, which have as many times more explanations behind them, and is else undecided. This
makes the error smaller and leaves some of it.

The claims are about the three data sets of the paper. Where some were not run, a claim is decided in part, unless they
could not change it; other data sets count in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfbench_core.verdicts import (
    CONFIRMED,
    NOT_COMPARABLE,
    REFUTED,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    in_part,
)
from cfbench_recsys.analysis.claim_statistics import SAME, with_missing_settings
from cfbench_recsys.analysis.consistency import SPEARMAN
from cfbench_recsys.analysis.consistency_rows import ALL_USERS, MATCHED, TOP_1, Comparison
from cfbench_recsys.analysis.published_claims import ONE_USER
from cfbench_recsys.analysis.published_tables import read_published
from cfbench_recsys.analysis.rank_agreement import Estimate, agreement, ranks, shares_first
from cfbench_recsys.analysis.shared import base
from cfbench_recsys.edits import FloatArray

if TYPE_CHECKING:
    import pandas as pd

EXPLAINERS = ("cosine", "jaccard", "lime-rs", "shap", "accent", "lxr")
DATASETS = {"ml-1m": "ML-1M", "yahoo-music": "Yahoo! Music", "pinterest": "Pinterest"}
"""Of the paper, with the names that it gives them."""
OTHERS = {"ml-100k": "MovieLens 100K", "amazon-fashion": "Amazon Fashion"}
METRICS = ("POS-P curve", "NEG-P curve")
LEVELS, LENGTHS = ("25%", "50%", "75%", "100%"), ("5", "10", "20")
"""Of quality and T, by section 3."""
VARIANTS = ("paper", "cfbench")
LXR_BEST, GAIN, MATCHED_GAIN, OVER_POS = "lxr-best", "gain", "matched-gain", "over-pos"
OF_TABLE, OF_FIGURE = 3, (1, 2, 3, 5)


def claims() -> pd.DataFrame:
    """Columns: claim, section, sentence, model, metric, statistic, relation, threshold."""
    return read_published("beyond_top_1_claims.csv")


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


class _Cells(NamedTuple):
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


def _cells_of(claim: Mapping[Any, Any]) -> _Cells:
    if np.isnan(printed_statistic(claim)):
        return _Cells(LEVELS, LENGTHS, of_means=False)
    lengths = dict.fromkeys(name.partition("@")[2] for name in printed_metrics())
    return _Cells(printed_levels(), [*lengths], of_means=True)


def rule(claim: Mapping[Any, Any]) -> str:
    """ "agreement-3 of POS-P curve, mf, of means over seeds at 50%, 75%, 100% and T = 5, 10 >= 0.9"."""
    cells = _cells_of(claim)
    of = f"{claim['statistic']} of {claim['metric'] or 'all metrics'}, {claim['model']}"
    if cells.of_means:
        of += f", of means over seeds at {', '.join(cells.levels)} and T = {', '.join(cells.lengths)}"
    return f"{of} {claim['relation']} {float(claim['threshold']):g}"


def claim_rows(found: Mapping[str, Sequence[Measured]]) -> Iterator[dict[str, Any]]:
    """A row for each claim and variant, as ``published_claims.claim_rows`` gives them."""
    for claim in claims().to_dict("records"):
        as_printed = printed_statistic(claim)
        relation, threshold = str(claim["relation"]), float(claim["threshold"])
        by_printed = claim_verdict(Interval(as_printed), relation, threshold).word
        for variant, parts in found.items():
            decided = _decide(claim, parts)
            yield {
                **{name: claim[name] for name in ("claim", "section", "sentence")},
                "rule": rule(claim),
                "variant": variant,
                "printed": as_printed,
                "verdict_printed": NOT_COMPARABLE if np.isnan(as_printed) else by_printed,
                "ours": decided.statistic.value,
                "ci_low": decided.statistic.low,
                "ci_high": decided.statistic.high,
                "n": decided.settings,
                "verdict": decided.verdict.word,
                "reason": decided.verdict.reason,
            }


class _Decided(NamedTuple):
    statistic: Interval
    settings: int
    verdict: Verdict


def _decide(claim: Mapping[Any, Any], every: Sequence[Measured]) -> _Decided:
    models, cells = str(claim["model"]).split(), _cells_of(claim)
    own = [(one, _statistic(claim, one, cells)) for one in every if one.model in models]
    own = [(one, part) for one, part in own if not np.isnan(part.value)]
    parts, found = [one for one, _ in own], [part for _, part in own]
    not_run = [model for model in models if model not in {one.model for one in parts}]
    if not_run:
        without = f"; without {', '.join(not_run)}" if parts else ""
        nothing = claim_verdict(Interval(np.nan), str(claim["relation"]), float(claim["threshold"]))
        return _Decided(Interval(np.nan), len(parts), Verdict(nothing.word, nothing.reason + without))
    here = _mean_of(found)
    verdict = _by_both_readings(claim, here, parts, cells, _undecidable(parts, found))
    missing = list(dict.fromkeys(name for one in parts for name in cells.missing(one)))
    bounds = _bounds(claim, own, bool(missing))
    relation, threshold = str(claim["relation"]), float(claim["threshold"])
    verdict = in_part(verdict, bounds, relation, threshold, "what was not run")
    where = "; ".join(["", *_data(parts, models), *([f"without {', '.join(missing)}"] if missing else [])])
    return _Decided(here, len(parts), Verdict(verdict.word, verdict.reason + where))


def _undecidable(parts: Sequence[Measured], found: Sequence[Interval]) -> str:
    """Why the rankings decide nothing; empty if they may."""
    if any(np.isnan(part.low) for part in found):
        return ONE_USER
    absent = dict.fromkeys(name for one in parts for name in EXPLAINERS if name not in one.explainers)
    return f"without {', '.join(absent)}" if absent else ""


def _by_both_readings(
    claim: Mapping[Any, Any], here: Interval, parts: Sequence[Measured], cells: _Cells, tied: str
) -> Verdict:
    """The verdict by a statistic; undecided where another way to count ties, or means over the seeds, give another."""
    relation, threshold = str(claim["relation"]), float(claim["threshold"])
    readings: tuple[Interval, ...] = ()
    if claim["statistic"] == LXR_BEST:
        with_ties = float(np.mean([_first_or_tied(one, cells) for one in parts]))
        readings = (here, Interval(with_ties)) if with_ties > here.value + SAME else ()
    found = claim_verdict(here, relation, threshold, readings=readings, tied=tied)
    if cells.of_means or claim["statistic"] == MATCHED_GAIN or found.word not in (CONFIRMED, REFUTED):
        return found
    of_means = _mean_of([_of_means(claim, one, cells) for one in parts])
    other = claim_verdict(of_means, relation, threshold)
    if other.word in (CONFIRMED, REFUTED) and other.word == found.word:
        return found
    return Verdict(UNDECIDED, f"{found.reason}, by means over the seeds {other.reason}")


def _bounds(
    claim: Mapping[Any, Any], own: Sequence[tuple[Measured, Interval]], cells_missing: bool
) -> tuple[Interval, ...]:
    """What a statistic could be on all data sets of the paper; empty if all were run, at all levels and T."""
    needed = len(DATASETS) * len(str(claim["model"]).split())
    of_paper = [(one, part) for one, part in own if one.dataset in DATASETS]
    present = len({(one.dataset, one.model) for one, _ in of_paper})
    kind = str(claim["statistic"])
    ends = (0.0, 1.0) if kind == LXR_BEST else (-1.0, 1.0) if kind.startswith("agreement-") else (-2.0, 2.0)
    if present == needed and not cells_missing:
        return ()
    if present and not cells_missing:
        limits = _mean_of([part for _, part in of_paper]).limits
        ends = with_missing_settings(*limits, present, needed - present, ends)
    return tuple(Interval(end) for end in ends)


def _data(parts: Sequence[Measured], models: Sequence[str]) -> list[str]:
    """["MovieLens 100K in place of ML-1M, Yahoo! Music and Pinterest", "60 users"]; nothing if all data sets are there."""
    there = {(one.dataset, one.model) for one in parts}
    absent = [name for data, name in DATASETS.items() if any((data, model) not in there for model in models)]
    others = list(
        dict.fromkeys(OTHERS.get(one.dataset, one.dataset) for one in parts if one.dataset not in DATASETS)
    )
    if not absent:
        return []
    counts = sorted({one.users for one in parts})
    of_users = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    words = f"{_listed(others)} in place of" if others else "without"
    return [f"{words} {_listed(absent)}", f"{of_users} users"]


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _statistic(claim: Mapping[Any, Any], one: Measured, cells: _Cells) -> Interval:
    """The statistic of a claim on one data set and model; its value is NaN where it is not known."""
    if cells.of_means:
        return _of_means(claim, one, cells)
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


def _of_means(claim: Mapping[Any, Any], one: Measured, cells: _Cells) -> Interval:
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

    def __init__(self, one: Measured, cells: _Cells) -> None:
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


def _first_or_tied(one: Measured, cells: _Cells) -> float:
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


def _mean_of(parts: Sequence[Interval]) -> Interval:
    """The mean of independent statistics."""
    if not parts:
        return Interval(np.nan)
    values = [part.value for part in parts]
    mean = float(np.mean(values))
    sides: list[Callable[[Interval], float]] = [
        lambda part: part.value - part.limits[0],
        lambda part: part.limits[1] - part.value,
    ]
    low, high = (float(np.sqrt(sum(side(part) ** 2 for part in parts))) / len(parts) for side in sides)
    return Interval(mean, mean - low, mean + high)


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
