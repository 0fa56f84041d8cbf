"""Are rankings of explainers stable when the recommender gets better, and for longer lists? (Consistency beyond top-1.)

A recommender is explained at several levels of quality (``protocol.checkpoints``). At each level the explainers are
ranked by the mean of a metric over the first k items of each user's list, k = 1..K. Consistency is the agreement of
these rankings, over pairs of levels (``rank_agreement.py``): Spearman's rho and Kendall's tau-b, both aware of ties, the
variance of ranks and the share of ranks that change. The paper reads it off a figure (fig. 1) for k = 1..5, and
finds that it grows with k.

Part of that growth is arithmetic: k items per user are k times as many explanations, and means of more explanations
are ranked with less noise. Hence each gain is stated twice:

- among all users: top k less top 1.
- size-matched: top k with 1/k of the users, so that as many explanations are behind both, less top 1 with all of
  them. All users are cut at random into k such samples, whose agreements are averaged; so are ``partitions`` such
  cuts. (The items of one user resemble each other, so this control is a little hard on k > 1.)

Intervals are percentiles over ``resamples`` draws of users with replacement, the same users at all levels and for
all explainers. A draw adds noise of its own to every ranking: intervals of an agreement lie low, and can leave out
the agreement itself where it is near 1. Those of size-matched differences have as much noise on both sides. One user has no
interval.

The rows "mean of all" average over the metrics. With several runs (seeds), there are rows of each run and of
their mean, whose ``spread`` is the standard deviation between runs. Baselines are left out of the rankings, other controls
take part (``controls``); so do only explainers that ended well at every level in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cfbench_core.analysis_tables import with_empty_text
from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.analysis.consistency_rows import (
    ALL,
    ALL_USERS,
    LEVEL_MEAN,
    MATCHED,
    QUALITY,
    TOP_1,
    Comparison,
)
from cfbench_recsys.analysis.levels import Ladder, ladders
from cfbench_recsys.analysis.shared import (
    Labels,
    finished,
    has_metric,
    labels_in,
    lines,
    longest,
    mean_ci,
    place,
    style_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/consistency",
    summary="Stability of rankings of explainers over the quality of the recommender",
    target=f"{__name__}:Consistency",
    config=f"{__name__}:Config",
    papers=("consistency2025",),
)

SPEARMAN = "spearman"
_WORDS = ("metric", "direction", "statistic", "sample", "against", "checkpoint", "explainer", "role")


@dataclass(frozen=True, kw_only=True)
class Config:
    """The paper's metrics, and CFExpRec's."""

    metrics: Annotated[
        tuple[str, ...], Help("metrics that rank the explainers, by their names before the @")
    ] = (
        "POS-P curve",
        "NEG-P curve",
        "POS-P",
        "NEG-P",
    )
    controls: Annotated[
        tuple[Literal["certified", "reference", "baseline"], ...],
        Help("controls that are ranked with the explainers"),
    ] = ("certified", "reference")
    resamples: Annotated[int, Range(minimum=1), Help("bootstrap resamples of users")] = 1000
    partitions: Annotated[
        int, Range(minimum=1), Help("partitions into smaller samples that are averaged")
    ] = 200
    margin: Annotated[
        float, Range(minimum=0), Help("largest difference of correlations that counts as equal")
    ] = 0.05


class Consistency:
    def __init__(self, config: Config) -> None:
        self.config = config

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if not finished(runs, self._wanted):
            return f"needs importances for single items, and one of {', '.join(self.config.metrics)}"
        if not self._ladders(runs):
            return "needs a recommender at two levels of quality or more (protocol.checkpoints), each with two explainers"
        return ""

    def _wanted(self, cell: RunCell) -> bool:
        of_items = cell.labels.get("level") == "item" and cell.labels.get("format") == "implicit"
        role_counts = not cell.role or cell.role in self.config.controls
        return of_items and role_counts and has_metric(*self.config.metrics)(cell)

    def _ladders(self, runs: Sequence[Run]) -> list[Ladder]:
        of_recsys = [run for run in runs if run.suite == "recsys"]
        found = ladders(of_recsys, self._wanted)
        return [ladder for ladder in found if ladder.columns(self.config.metrics)]

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """A row for each number.

        Columns: the labels of a ladder (dataset, model, k, ..., levels), seeds, n_seeds, metric, direction,
        statistic (see ``rank_agreement.py``; "mean" of an explainer at a level; "HR@10" of a level), sample ("all users"
        or "size-matched"), top (how many items of each list), against ("top 1": a difference to it), checkpoint,
        explainer, role, rank (of an explainer at a level), mean, ci_low, ci_high, spread, and n: how many explanations
        are behind a mean that is ranked.
        """
        import pandas as pd

        rows = [row for comparison in self.comparisons(runs) for row in comparison.rows()]
        return pd.DataFrame(rows).astype({"top": "Int64", "n": "Int64"})

    def comparisons(self, runs: Sequence[Run]) -> Iterator[Comparison]:
        """What the rows of the table are of, one for each ladder."""
        for ladder in self._ladders(runs):
            columns = ladder.columns(self.config.metrics)
            yield Comparison(ladder, columns, self.config.resamples, self.config.partitions)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        """For each ladder: agreement by metric and top; and for a metric of each direction its lines."""
        drawn = []
        table = _normalized(table)
        for labels, rows in _by_ladder(longest(table)):
            title = _place(labels, table)
            drawn.append(_matrix(rows, title))
            means = rows[rows["statistic"] == LEVEL_MEAN]
            for metric in means.drop_duplicates("direction")["metric"]:
                if int(labels["k"]) > 1:
                    drawn.append(_agreement_by_top(rows[rows["metric"] == metric], metric, title))
                drawn += _means_by_level(means[means["metric"] == metric], metric, title, _qualities(rows))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = _normalized(table)
        answers = [
            _Answer(labels, rows, _place(labels, table), self.config.margin)
            for labels, rows in _by_ladder(longest(table))
        ]
        gained = [answer for answer in answers if answer.gains]
        if not gained:
            return " ".join(answer.agreement() for answer in answers)
        if len(gained) == 1:
            return gained[0].in_full()
        counts = "; ".join(f"{sample}, {_counted(gained, sample)}" for sample in (ALL_USERS, MATCHED))
        most = max(gained, key=lambda answer: abs(answer.gains[ALL_USERS]["mean"]))
        return (
            f"Do rankings of explainers agree more across levels of quality where more than the first item counts? "
            f"Of {len(gained)} comparisons: {counts}. Largest: {most.in_full()}"
        )


# Words


class _Answer:
    """The result of one ladder: Spearman's rho, mean over the metrics."""

    def __init__(self, labels: Labels, rows: pd.DataFrame, place: str, margin: float) -> None:
        self.place = place
        self.margin = margin
        self.levels = rows.loc[rows["statistic"] == LEVEL_MEAN, "checkpoint"].nunique()
        self.kind = labels["levels"]
        selected = rows[(rows["statistic"] == SPEARMAN) & (rows["metric"] == ALL)]
        self.at_top_1 = _first(selected[(selected["against"] == "") & (selected["top"] == 1)])
        self.top = int(selected["top"].max())
        last = selected[selected["top"] == self.top]
        self.at_last = _first(last[(last["against"] == "") & (last["sample"] == ALL_USERS)])
        differences = last[last["against"] == TOP_1].to_dict("records")
        self.gains: Mapping[str, Any] = {row["sample"]: row for row in differences}

    def verdict(self, sample: str) -> str:
        """ "yes", "no" or "undecided": whether the agreement rises."""
        low, high = self.gains[sample]["ci_low"], self.gains[sample]["ci_high"]
        if high < 0 or (low >= -self.margin and high <= self.margin):
            return "no"
        return "yes" if low > 0 else "undecided"

    def agreement(self) -> str:
        return (
            f"{self.place}: rankings of explainers at {self.levels} levels of {self.kind} agree by {mean_ci(self.at_top_1)} "
            "(Spearman, mean over metrics and pairs of levels)."
        )

    def in_full(self) -> str:
        plain, matched = self.gains[ALL_USERS], self.gains[MATCHED]
        return (
            f"{self.place}: from the first item to the first {self.top}, the agreement of rankings at {self.levels} "
            f"levels of {self.kind} (Spearman, mean over metrics) goes from {self.at_top_1['mean']:.3g} to "
            f"{self.at_last['mean']:.3g}. Does it rise? Among all users, {self.verdict(ALL_USERS)}: {mean_ci(plain)}; "
            f"with as many explanations (size-matched), {self.verdict(MATCHED)}: {mean_ci(matched)}."
        )


def _counted(answers: Sequence[_Answer], sample: str) -> str:
    """ "yes in 2, no in 1, undecided in 3"."""
    verdicts = [answer.verdict(sample) for answer in answers]
    known = [name for name in ("yes", "no", "undecided") if name in verdicts]
    return ", ".join(f"{name} in {verdicts.count(name)}" for name in known)


def _first(rows: pd.DataFrame) -> Labels:
    return {str(name): value for name, value in rows.iloc[0].items()}


# Figures


def _matrix(rows: pd.DataFrame, title: str) -> Figure:
    """Agreement by metric and top."""
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import heat_map

    selected = rows[(rows["statistic"] == SPEARMAN) & (rows["sample"] == ALL_USERS) & (rows["against"] == "")]
    values = selected.pivot(index="metric", columns="top", values="mean").reindex(selected["metric"].unique())
    heading = f"Agreement of rankings: {title}"
    svg = heat_map(
        list(values.index),
        [f"top {int(top)}" for top in values.columns],
        values.to_numpy(dtype=float),
        title=heading,
        direction="higher",
    )
    return Figure(heading, svg, "Spearman correlation of rankings of explainers, mean over pairs of levels.")


def _agreement_by_top(rows: pd.DataFrame, metric: str, title: str) -> Figure:
    """Among all users and size-matched; of the first item alone the two are the same."""
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import Series, line_chart

    selected = rows[(rows["statistic"] == SPEARMAN) & (rows["against"] == "")]
    series = []
    for sample in (ALL_USERS, MATCHED):
        own = selected[(selected["sample"] == sample) | (selected["top"] == 1)].sort_values("top")
        top, mean, low, high = (own[name].astype(float) for name in ("top", "mean", "ci_low", "ci_high"))
        series.append(Series(sample, top, mean, low, high))
    heading = f"{metric}, agreement of rankings: {title}"
    svg = line_chart(
        series,
        title=heading,
        x_label="items of each list that count, from the first on",
        y_label="Spearman, mean over pairs of levels",
        direction="higher",
    )
    note = "Size-matched: as many explanations as of the first items alone. Vertical lines are 95% intervals, over users; "
    return Figure(heading, svg, note + "resampling adds noise to rankings, so they lie low.")


def _means_by_level(means: pd.DataFrame, metric: str, title: str, qualities: str) -> Iterator[Figure]:
    """A line for each explainer over the levels, at top 1 and at top K (Consistency beyond top-1, figure 1)."""
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import line_chart

    levels = list(dict.fromkeys(means["checkpoint"]))
    means = means.assign(place=means["checkpoint"].map(levels.index))
    places = style_numbers(means)
    ends = means[means["top"].isin([means["top"].min(), means["top"].max()])]
    for _, rows in ends.groupby("top"):
        heading = f"{metric}, top {int(rows['top'].iloc[0])}, across levels: {title}"
        svg = line_chart(
            lines(rows, "place", places),
            title=heading,
            x_label=f"share of the {rows['levels'].iloc[0]}",
            y_label=metric,
            direction=rows["direction"].iloc[0],
            x_names=levels,
        )
        yield Figure(heading, svg, f"Where lines cross, the ranking changes. {qualities}".strip())


def _qualities(rows: pd.DataFrame) -> str:
    """ "HR@10: 0.08 at 25%, 0.12 at 50%."."""
    known = rows[rows["statistic"] == QUALITY]
    pairs = zip(known["mean"], known["checkpoint"], strict=True)
    texts = ", ".join(f"{mean:.3g} at {checkpoint}" for mean, checkpoint in pairs)
    return f"{QUALITY}: {texts}." if texts else ""


# The table, which may come from a CSV file


def _normalized(table: pd.DataFrame) -> pd.DataFrame:
    """The same, with empty words where a CSV file has nothing, and only the rows of all runs together."""
    table = with_empty_text(table, _WORDS)
    together = table.groupby(_ladder_labels(table), dropna=False)["n_seeds"].transform("max")
    return table[table["n_seeds"] == together]


def _ladder_labels(table: pd.DataFrame) -> list[str]:
    return [*labels_in(table), "levels"]


def _by_ladder(table: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    names = _ladder_labels(table)
    for values, rows in table.groupby(names, sort=False, dropna=False):
        yield dict(zip(names, values, strict=True)), rows


def _place(labels: Labels, table: pd.DataFrame) -> str:
    """ "ml-1m · mf", and what the levels are shares of where ladders differ in it."""
    own = {name: value.item() if hasattr(value, "item") else value for name, value in labels.items()}
    kind = f" · levels of {labels['levels']}" if table["levels"].nunique() > 1 else ""
    return place(own, table) + kind
