"""Table 1 and figure 1 of Consistency beyond top-1, its claims, and the same numbers of runs.

Table 1 (MF, the first three items) is of Yahoo! Music, whose data needs a signed agreement; its numbers are not
comparable with those of other data, its claims are. Figure 1 (VAE, MovieLens 1M) prints no numbers. The claims are
decided by the analysis ``consistency``, of the explainers as published and as cfbench improves them, each on its own.
A statistic of several data sets is their mean, its interval that of independent data sets. Rankings of fewer than the six
explainers of the paper decide nothing, nor do those of one user; a claim needs each model that it names. The statistics:

- ``agreement-K``: Spearman's rho between levels of quality, mean over pairs and T, of the first K items;
- ``gain``, ``matched-gain``: that of the five first items less that of the first, of all users or as many explanations;
- ``over-pos-1``: that of the first item by NEG-P less that by POS-P (both intervals taken as independent);
- ``over-pos``: the same of the mean over the first 1, 2, 3 and 5 items, which figure 1 shows and which are all needed;
- ``lxr-best``: in which share of levels and metrics LXR has the best mean over the first three items; undecided where
  it depends on how means that are equal to the best are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.verdicts import NOT_COMPARABLE, Interval, claim_verdict
from cfbench_recsys.analysis.claim_statistics import SAME
from cfbench_recsys.analysis.consistency import SPEARMAN, Config, Consistency
from cfbench_recsys.analysis.consistency_rows import ALL_USERS, LEVEL_MEAN, MATCHED, SHARE_FIRST, TOP_1
from cfbench_recsys.analysis.measured_means import split_label
from cfbench_recsys.analysis.published_claims import ONE_USER
from cfbench_recsys.analysis.published_tables import read_published
from cfbench_recsys.analysis.shared import base

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

EXPLAINERS = ("cosine", "jaccard", "lime-rs", "shap", "accent", "lxr")
DATASETS = ("ml-1m", "yahoo-music", "pinterest", "amazon-fashion")
METRICS = ("POS-P curve", "NEG-P curve")
VARIANTS = ("paper", "cfbench")
LXR_BEST = "lxr-best"
OF_TABLE, OF_FIGURE = 3, (1, 2, 3, 5)
ITEMS = {
    "table-1": "MF, the first three items",
    "figure-1": "VAE, POS-P@5 over levels of quality, for the first 1, 2, 3 and 5 items",
}
"""What the table and the figure show."""


def claims() -> pd.DataFrame:
    """Columns: claim, section, sentence, model, metric, statistic, relation, threshold."""
    return read_published("beyond_top_1_claims.csv")


def printed_numbers() -> pd.DataFrame:
    """Columns: item, page, dataset, model, checkpoint, top, metric, explainer, printed, rounded_by."""
    return read_published("beyond_top_1.csv")


def incompatibility(runs: Sequence[Run], other_data: bool) -> str:
    """Why there is nothing to compare; empty if there is. Reads plans only."""
    analysis = Consistency(Config(metrics=METRICS, controls=()))
    usable = [run for run in runs if other_data or _of_paper(run)]
    return (
        analysis.incompatibility(usable)
        if usable
        else f"needs one of {', '.join(DATASETS)} (or other_data: true)"
    )


def compare(runs: Sequence[Run], other_data: bool) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The numbers of the table and the figure, and the claims, on these runs."""
    import pandas as pd

    usable = [run for run in runs if other_data or _of_paper(run)]
    found = {variant: consistency_of(usable, variant) for variant in VARIANTS}
    found = {variant: table for variant, table in found.items() if len(table)}
    numbers = [_numbers(table, variant) for variant, table in found.items()]
    decided = [row for claim in claims().to_dict("records") for row in _claim_rows(claim, found)]
    return pd.concat(numbers, ignore_index=True) if numbers else pd.DataFrame(), decided


def notes(runs: Sequence[Run]) -> Iterator[str]:
    """What to know before trusting the comparison."""
    yield (
        "Table 1 is of Yahoo! Music, whose data needs a signed agreement: its numbers are not comparable with those of "
        "other data."
    )
    yield "POS-P and NEG-P average each user's own steps; the description of the metric has the departures from the formula."


def consistency_of(runs: Sequence[Run], variant: str) -> pd.DataFrame:
    """The rows of the analysis ``consistency`` of all seeds together, of the runs of one variant of the explainers."""
    import pandas as pd

    own = [run for run in runs if _variant(run) == variant]
    analysis = Consistency(Config(metrics=METRICS, controls=()))
    if not own or analysis.incompatibility(own):
        return pd.DataFrame()
    table = analysis.table(own)
    most = table.groupby(["dataset", "model"])["n_seeds"].transform("max")
    table = table[table["n_seeds"] == most]
    names = table["explainer"].astype(str).str.removesuffix(f"-{variant}")
    found: pd.DataFrame = table.assign(explainer=names)
    return found


def _of_paper(run: Run) -> bool:
    return any(cell.labels.get("dataset") in DATASETS for cell in run.cells())


def _variant(run: Run) -> str:
    """The variant of a run's explainers."""
    names = [
        split_label(str(cell.labels.get("explainer", "")), cell.labels, EXPLAINERS) for cell in run.cells()
    ]
    return "paper" if any(variant == "paper" for _, variant in names) else "cfbench"


def _numbers(table: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Means of explainers at each level: those of table 1 for MF, of figure 1 for VAE."""
    rows = table[(table["statistic"] == LEVEL_MEAN) & (table["sample"] == ALL_USERS)]
    is_table = (rows["model"] == "mf") & (rows["top"] == OF_TABLE)
    is_figure = (rows["model"] == "vae") & rows["top"].isin(OF_FIGURE) & (rows["metric"] == "POS-P curve@5")
    rows = rows.assign(item=np.where(is_table, "table-1", "figure-1"))[is_table | is_figure]
    rows = rows.assign(top=rows["top"].astype(str))
    keys = ["item", "dataset", "model", "checkpoint", "top", "metric", "explainer"]
    rows = rows.merge(printed_numbers(), on=keys, how="left")
    reasons = np.where(
        rows["item"] == "table-1",
        np.where(rows["printed"].isna(), "the paper prints this table of Yahoo! Music only", ""),
        "the paper draws this figure without numbers",
    )
    nothing = dict.fromkeys(("printed_deviation", "deviation"), np.nan)
    return rows.assign(
        run="",
        model=rows["model"] + "@" + rows["checkpoint"],
        rank="",
        k=rows["top"],
        variant=variant,
        ours=rows["mean"],
        reason=reasons,
        scope="",
        **nothing,
    )


def _claim_rows(claim: Mapping[Any, Any], found: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, Any]]:
    """A claim, once for each variant."""
    as_printed = _printed_statistic(claim)
    relation, threshold = str(claim["relation"]), float(claim["threshold"])
    models = str(claim["model"]).split()
    for variant, table in found.items():
        parts: list[Interval] = []
        with_ties: list[float] = []
        present: set[str] = set()
        absent: list[str] = []
        for _, rows in table[table["model"].isin(models)].groupby(["dataset", "model"], sort=False):
            if np.isnan((part := _statistic(claim, rows)).value):
                continue
            parts.append(part)
            with_ties.append(_first_or_tied(rows) if claim["statistic"] == LXR_BEST else part.value)
            present.add(str(rows["model"].iloc[0]))
            absent += [name for name in EXPLAINERS if name not in set(rows["explainer"])]
        not_run = [model for model in models if model not in present]
        here = _mean_of(parts) if not not_run else Interval(np.nan)
        tied = f"without {', '.join(dict.fromkeys(absent))}" if absent else ""
        if any(np.isnan(part.low) for part in parts):
            tied = ONE_USER
        readings: tuple[Interval, ...] = ()
        if not not_run and np.mean(with_ties) > here.value + SAME:
            readings = (here, Interval(float(np.mean(with_ties))))
        decided = claim_verdict(here, relation, threshold, readings=readings, tied="" if not_run else tied)
        without = f"; without {', '.join(not_run)}" if parts and not_run else ""
        unprinted = np.isnan(as_printed)
        yield {
            **{name: claim[name] for name in ("claim", "section", "sentence")},
            "rule": f"{claim['statistic']} of {claim['metric'] or 'all metrics'}, {claim['model']} {relation} {threshold:g}",
            "variant": variant,
            "printed": as_printed,
            "verdict_printed": NOT_COMPARABLE
            if unprinted
            else claim_verdict(Interval(as_printed), relation, threshold).word,
            "ours": here.value,
            "ci_low": here.low,
            "ci_high": here.high,
            "n": len(parts),
            "verdict": decided.word,
            "reason": decided.reason + without,
        }


def _statistic(claim: Mapping[Any, Any], rows: pd.DataFrame) -> Interval:
    """The statistic of a claim on one data set and model; its value is NaN where it is not known."""
    kind, metric = str(claim["statistic"]), str(claim["metric"])
    if kind == LXR_BEST:
        firsts = rows[(rows["statistic"] == SHARE_FIRST) & (rows["top"] == OF_TABLE)]
        return _mean_over_metrics(firsts[firsts["explainer"] == "lxr"])
    rows = rows[rows["statistic"] == SPEARMAN]
    plain = rows[(rows["against"] == "") & (rows["sample"] == ALL_USERS)]
    if kind.startswith("agreement-"):
        top = int(kind.removeprefix("agreement-"))
        return _agreement(plain[plain["top"] == top], metric)
    if kind.startswith("over-pos"):
        tops = OF_FIGURE if kind == "over-pos" else (1,)
        if not {*tops} <= {*plain["top"]}:
            return Interval(np.nan)
        shown = plain[plain["top"].isin(tops)]
        return _difference(_agreement(shown, metric), _agreement(shown, METRICS[0]))
    sample = MATCHED if kind == "matched-gain" else ALL_USERS
    gains = rows[(rows["against"] == TOP_1) & (rows["sample"] == sample)]
    return _agreement(gains[gains["top"] == max(OF_FIGURE)], metric)


def _first_or_tied(rows: pd.DataFrame) -> float:
    """In which share of levels and metrics no explainer has a better mean over the first three items than LXR."""
    means = rows[(rows["statistic"] == LEVEL_MEAN) & (rows["top"] == OF_TABLE)]
    best = means.groupby(["metric", "checkpoint"])["rank"].transform("min")
    own = means["explainer"] == "lxr"
    return float((means["rank"] == best)[own].mean())


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


def _printed_statistic(claim: Mapping[Any, Any]) -> float:
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
