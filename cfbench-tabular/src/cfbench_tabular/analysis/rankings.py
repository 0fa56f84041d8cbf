"""Average ranks of the explainers with significance tests (CF-tabular, section 3.4, tables 4 and 5; Demšar 2006).

For each metric the explainers are ranked on every factual, 1 the best. Values of counterfactuals that do not count (not
feasible; for table 5 not realistic; for table 4 not valid) are masked first, explainers without a value share the last
ranks, and ties are averaged, so that failures count. Controls are not ranked, nor are explainers that were not planned
for a data set of the group. There are two units of analysis:

- factuals: the average over all factuals, each a unit of the test, as in the paper. Factuals of one data set share a
  classifier, so they are not independent, and thousands of them make any difference significant.
- data sets: on each data set the explainers are ranked by their average rank there; the data sets are the units, as
  recommended by Demšar. Use this for claims about other data.

The tests are Friedman's, corrected for ties, and Iman and Davenport's F with (k - 1) and (k - 1)(N - 1) degrees of
freedom (CF-tabular uses others); average ranks that differ by more than Nemenyi's critical difference are
significantly different. The critical difference is drawn also if Friedman's test is not significant; then it has no
meaning, and the table shows ``p``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Distinct, Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import friedman, indistinguishable, nemenyi_critical_difference, ranks
from cfbench_core.wording import count_of, join_words
from cfbench_tabular.analysis.run_data import (
    CRITERIA,
    TOTAL,
    VALID,
    DataSet,
    FloatArray,
    Study,
    comparable,
    competitors,
    finished,
    groups_of,
    masked,
    place,
    studies,
    tidied,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="tabular/analysis/rankings",
    summary="Average ranks with Friedman and Nemenyi tests",
    target=f"{__name__}:Rankings",
    config=f"{__name__}:Config",
    papers=(
        "cftabular2021",
        "demsar2006statistical",
    ),
)


FACTUALS, DATA_SETS = "factuals", "data sets"
SETTING = ("model", "criterion", "group")
_TEST = ("metric", "direction", "reading")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Tables 4 and 5 of the paper."""

    metrics: Annotated[tuple[str, ...], Distinct(), Help("ranked, in this order")] = (
        "validity",
        "sparsity",
        "RUC",
        "RMC",
        "L2",
        "MADD",
        "MD",
    )
    diagrams: Annotated[tuple[str, ...], Distinct(), Help("metrics with a critical-difference diagram")] = (
        "validity",
        "sparsity",
        "L2",
    )
    alpha: Annotated[float, Range(above=0, below=1), Help("level of the tests")] = 0.05
    each: Annotated[bool, Help("also rank on each data set separately, as a group of its name")] = False


class Rankings:
    def __init__(self, config: Config) -> None:
        self.config = config

    def incompatibility(self, runs: Sequence[Run]) -> str:
        explainers = {
            str(cell.labels["explainer"])
            for run in runs
            for cell in run.cells()
            if cell.done and not cell.role and run.suite == "tabular"
        }
        if not finished(runs, "validity"):
            return "needs the metric validity"
        return "" if len(explainers) > 1 else "needs two explainers or more that compete"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, criterion (feasible, realistic, valid), group (total, numerical, categorical, mixed or a name),
        metric, direction, reading (factuals, data sets), explainer, rank (the average), best (not
        significantly different from the best), units, chi2 (Friedman's), F and
        p (Iman and Davenport's), cd (Nemenyi's critical difference)."""
        import pandas as pd

        rows = [
            row
            for study in studies(runs)
            for group, datasets in [*study.groups(), *self._each(study)]
            for criterion in CRITERIA
            for row in self._rows(study, group, datasets, criterion)
        ]
        return pd.DataFrame(rows)

    def _each(self, study: Study) -> Iterator[tuple[str, list[DataSet]]]:
        if self.config.each:
            yield from ((dataset.name, [dataset]) for dataset in study.datasets)

    def _rows(
        self, study: Study, group: str, datasets: Sequence[DataSet], criterion: str
    ) -> Iterator[dict[str, Any]]:
        names, columns, judge = competitors(datasets), study.columns(), CRITERIA[criterion]
        if len(names) < 2 or judge not in columns:
            return
        for metric in self.config.metrics:
            column = judge if metric == CRITERIA[VALID] else metric
            if column not in columns or (criterion != VALID and metric in ("RUC", "RMC")):
                continue
            direction = columns[column].direction
            each = [ranked(dataset, names, column, judge, direction) for dataset in datasets]
            each = [one for one in each if len(one)]
            labels = {"model": study.model, "criterion": criterion, "group": group}
            labels |= {"metric": metric, "direction": direction}
            readings = {FACTUALS: np.concatenate(each)} if each else {}
            if len(each) > 2:
                readings[DATA_SETS] = np.stack([one.mean(axis=0) for one in each])
            for reading, values in readings.items():
                if len(values) > 1:
                    yield from self._tested({**labels, "reading": reading}, names, values)

    def _tested(
        self, labels: dict[str, Any], names: Sequence[str], values: FloatArray
    ) -> Iterator[dict[str, Any]]:
        """values: (units, explainers), low is good."""
        test = friedman(values, "lower")
        difference = nemenyi_critical_difference(len(names), test.units, self.config.alpha)
        best = test.average_ranks.min()
        for name, rank in zip(names, test.average_ranks, strict=True):
            yield {
                **labels,
                "explainer": name,
                "rank": float(rank),
                "best": bool(rank - best <= difference or test.f_p_value > self.config.alpha),
                "units": test.units,
                "chi2": test.statistic,
                "F": test.f_statistic,
                "p": test.f_p_value,
                "cd": difference,
            }

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        table = tidied(table)
        if table.empty:
            return []
        drawn: list[Figure] = []
        for labels, rows in groups_of(table, SETTING):
            drawn.append(_all_metrics(labels, rows, table))
            if labels["group"] == TOTAL:
                drawn += _diagrams(labels, rows, table, self.config.diagrams)
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = tidied(table)
        if table.empty:
            return ""
        sentences = []
        for criterion in CRITERIA:
            selected = table[(table["group"] == TOTAL) & (table["criterion"] == criterion)]
            rows = selected[selected["metric"] == CRITERIA[VALID]]
            for _, own in list(groups_of(rows, ["model"]))[:1]:
                sentences.append(_best(own, criterion))
        return " ".join(sentences) + _between_readings(table)


def ranked(dataset: DataSet, names: Sequence[str], metric: str, judge: str, direction: str) -> FloatArray:
    """(factuals, explainers) ranks on each factual of a data set, 1 the best."""
    _, values = dataset.values(names, (metric, judge))
    if not len(values):
        return np.empty((0, len(names)))
    return ranks(comparable(masked(values[..., 0], values[..., 1])), direction)


# Figures


def _all_metrics(labels: dict[str, Any], rows: pd.DataFrame, table: pd.DataFrame) -> Figure:
    """Table 4 or 5: average ranks over all factuals, explainers by metrics."""
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import heat_map

    pooled = rows[rows["reading"] == FACTUALS]
    values = pooled.pivot(index="explainer", columns="metric", values="rank")
    values = values.reindex(columns=list(dict.fromkeys(pooled["metric"])))
    order = values.mean(axis=1).sort_values(kind="stable").index
    best = pooled.pivot(index="explainer", columns="metric", values="best").reindex(
        index=order, columns=values.columns
    )
    values = values.loc[order]
    text = [
        [f"{rank:.2f}{'*' if good else ''}" for rank, good in zip(own, marks, strict=True)]
        for own, marks in zip(values.to_numpy(), best.to_numpy(), strict=True)
    ]
    heading = f"Average ranks, {labels['criterion']} counterfactuals: {_where(labels, table)}"
    svg = heat_map(
        list(values.index),
        list(values.columns),
        values.to_numpy(dtype=float),
        title=heading,
        direction="lower",
        text=text,
        hint="stronger colour: lower, better; * not significantly different from the best (Nemenyi)",
    )
    units = int(pooled["units"].iloc[0])
    return Figure(
        heading,
        svg,
        f"Over {count_of(units, 'factual')}, each a unit; explainers without a counterfactual are last.",
    )


def _diagrams(
    labels: dict[str, Any], rows: pd.DataFrame, table: pd.DataFrame, metrics: Sequence[str]
) -> Iterator[Figure]:
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.plots import critical_difference_plot

    drawn = metrics if labels["criterion"] == VALID else metrics[:1]
    for test, own in groups_of(rows[rows["metric"].isin(drawn)], _TEST):
        averages = own["rank"].to_numpy(dtype=float)
        difference = float(own["cd"].iloc[0])
        bars = indistinguishable(averages, difference)
        svg = critical_difference_plot(list(own["explainer"]), list(averages), difference, bars)
        where = _where(labels, table)
        heading = f"{test['metric']} of {labels['criterion']} counterfactuals by {test['reading']}: {where}"
        first = own.iloc[0]
        note = f"{count_of(int(first['units']), str(test['reading'])[:-1])}; Friedman, Iman and Davenport: {_p(first)}. "
        yield Figure(heading, svg, note + "Explainers that share a bar do not differ significantly.")


def _where(labels: dict[str, Any], table: pd.DataFrame) -> str:
    where = place({"model": labels["model"]}, table)
    return " · ".join(filter(None, (where, "all data sets" if labels["group"] == TOTAL else labels["group"])))


# Text


def _p(row: Any) -> str:
    return "p < 0.001" if row["p"] < 1e-3 else f"p = {row['p']:.3f}"


def _best(rows: pd.DataFrame, noun: str) -> str:
    pooled = rows[rows["reading"] == FACTUALS].sort_values("rank", kind="stable")
    least, most = pooled["rank"].iloc[0], pooled["rank"].iloc[-1]
    if least == most:
        return f"All explainers tie by the rate of {noun} counterfactuals."
    best, last = (list(pooled[pooled["rank"] == rank]["explainer"]) for rank in (least, most))
    units = count_of(int(pooled["units"].iloc[0]), "factual")
    return (
        f"By the rate of {noun} counterfactuals {join_words(best)} {'rank' if len(best) > 1 else 'ranks'} first "
        f"({least:.2f} of {len(pooled)}, over {units}), {join_words(last)} last ({most:.2f})."
    )


def _between_readings(table: pd.DataFrame) -> str:
    """The number of significant differences from the best with factuals and with data sets as units."""
    total = table[table["group"] == TOTAL]
    tests = ["model", "criterion", "metric"]
    both = total.groupby(tests, sort=False)["reading"].transform("nunique") == 2
    if not both.any():
        return " There are too few data sets (two or fewer) to take them as the units of a test."
    worse = {
        reading: int((~own["best"].astype(bool)).sum())
        for reading, own in total[both].groupby("reading", sort=False)
    }
    pairs = int((total[both]["reading"] == FACTUALS).sum() - total[both].groupby(tests).ngroups)
    return (
        f" Of {count_of(pairs, 'difference')} from the best, over all metrics, {worse[FACTUALS]} are significant with "
        f"factuals as units and {worse[DATA_SETS]} with data sets as units."
    )
