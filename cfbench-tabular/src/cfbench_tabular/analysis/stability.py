"""Who gives the same answer again? (Paper 003, figure 5.)

The share of factuals that get the same counterfactual when asked a second time with another seed (the metric
``stability``; factuals without an answer either time are left out), by type of data. The study asked twice with
the same settings, on several threads; here the same seed gives the same answer always, and what is asked is how
much of an answer is chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.statistics import bootstrap_interval
from cfbench_tabular.analysis.shared import (
    TOTAL,
    DataSet,
    Study,
    counted,
    finished,
    groups_of,
    listed,
    place,
    studies,
    tidied,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

METRIC = "stability"


class Stability:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def why_not(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, METRIC) else "needs the metric stability (protocol.again: true)"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, group, explainer, role, mean, ci_low, ci_high, n (factuals answered at least once)."""
        import pandas as pd

        rows = [
            row
            for study in studies(runs)
            for group, datasets in study.groups()
            for row in _rows(study, group, datasets)
        ]
        return pd.DataFrame(rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import Bar, bar_chart

        table = tidied(table)
        drawn = []
        for labels, rows in groups_of(table, ("model", "group")):
            where = place({"model": labels["model"]}, table)
            group = "all data sets" if labels["group"] == TOTAL else f"{labels['group']} data"
            heading = f"Same answer again: {' · '.join(filter(None, (where, group)))}"
            rows = rows.sort_values("mean", ascending=False, kind="stable")
            bars = [
                Bar(r["explainer"], r["mean"], r["ci_low"], r["ci_high"], r["role"], _percent(r["mean"]))
                for _, r in rows.iterrows()
            ]
            svg = bar_chart(
                bars,
                title=heading,
                x_label="share of factuals",
                direction="higher",
                x_range=(0.0, 1.0),
            )
            drawn.append(Figure(heading, svg, "Of factuals that were answered at least once."))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = tidied(table)
        rows = table[(table["group"] == TOTAL) & (table["role"] == "") & (table["n"] > 0)]
        if rows.empty:
            return ""
        always = list(dict.fromkeys(rows[rows["mean"] == 1.0]["explainer"]))
        others = rows[~rows["explainer"].isin(always)].sort_values("mean", kind="stable")
        said = (
            f"Always the same answer: {listed(always)}." if always else "Nobody always gives the same answer."
        )
        if len(others):
            least = others.iloc[0]
            times = f"{least['mean']:.0%} of {counted(int(least['n']), 'factual')}"
            said += f" The least stable is {least['explainer']}: the same for {times}."
        return said


def _rows(study: Study, group: str, datasets: Sequence[DataSet]) -> Iterator[dict[str, Any]]:
    names = [name for name in datasets[0].methods if all(name in dataset.methods for dataset in datasets)]
    values = np.concatenate([dataset.values(names, (METRIC,))[1][..., 0] for dataset in datasets])
    for number, name in enumerate(names):
        own = values[~np.isnan(values[:, number]), number]
        low, high = bootstrap_interval(own) if len(own) else (np.nan, np.nan)
        yield {
            "model": study.model,
            "group": group,
            "explainer": name,
            "role": datasets[0].methods[name].role,
            "mean": float(own.mean()) if len(own) else np.nan,
            "ci_low": float(low),
            "ci_high": float(high),
            "n": len(own),
        }


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == share else "–"
