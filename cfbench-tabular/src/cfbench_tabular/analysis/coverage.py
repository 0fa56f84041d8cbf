"""For how many rows is there an answer, and for how many a realistic one? (Paper 003, figures 6 and 7.)

Coverage is the share of factuals whose counterfactual the classifier really puts into the other class; realistic
coverage the share whose counterfactual could be a row of the table besides. By type of data, of all factuals
together; intervals are bootstraps over factuals. Who failed on a data set answered none of its factuals; who was
not to run on one has no bar for a group that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.statistics import bootstrap_interval
from cfbench_tabular.analysis.shared import (
    JUDGES,
    TOTAL,
    VALID,
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


class Coverage:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def why_not(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, JUDGES[VALID]) else "needs the metric coverage"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, group, answers (valid, realistic), explainer, role, mean, ci_low, ci_high, n, answered,
        data_sets."""
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
        for labels, rows in groups_of(table, ("answers", "model", "group")):
            where = place({"model": labels["model"]}, table)
            group = "all data sets" if labels["group"] == TOTAL else f"{labels['group']} data"
            heading = f"Coverage, {labels['answers']} answers: {' · '.join(filter(None, (where, group)))}"
            rows = rows.sort_values("mean", ascending=False, kind="stable")
            bars = [
                Bar(r["explainer"], r["mean"], r["ci_low"], r["ci_high"], r["role"], f"{r['mean']:.0%}")
                for _, r in rows.iterrows()
            ]
            svg = bar_chart(
                bars,
                title=heading,
                x_label="share of factuals",
                direction="higher",
                x_range=(0.0, 1.0),
            )
            first = rows.iloc[0]
            sets = counted(int(first["data_sets"]), "data set")
            drawn.append(Figure(heading, svg, f"{counted(int(first['n']), 'factual')} of {sets}."))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = tidied(table)
        if table.empty:
            return ""
        said = []
        for answers in JUDGES:
            rows = table[(table["answers"] == answers) & (table["group"] == TOTAL) & (table["role"] == "")]
            counts = rows.groupby("explainer", sort=False)[["answered", "n"]].sum()  # of all models
            if len(counts) > 1:
                shares = counts["answered"] / counts["n"]
                best, last = (shares[shares == edge].index for edge in (shares.max(), shares.min()))
                said.append(
                    f"{answers.capitalize()} answers: most by {listed(best)} ({_share(counts.loc[best[0]])}), fewest by "
                    f"{listed(last)} ({_share(counts.loc[last[0]])})."
                )
        return " ".join(said)


def _rows(study: Study, group: str, datasets: Sequence[DataSet]) -> Iterator[dict[str, Any]]:
    columns = study.columns()
    names = [name for name in datasets[0].methods if all(name in dataset.methods for dataset in datasets)]
    for answers, metric in JUDGES.items():
        if metric not in columns:
            continue
        parts = [dataset.values(names, (metric,))[1][..., 0] for dataset in datasets]
        values = np.nan_to_num(np.concatenate(parts))
        for place_, name in enumerate(names):
            own = values[:, place_]
            low, high = bootstrap_interval(own) if len(own) else (np.nan, np.nan)
            yield {
                "model": study.model,
                "group": group,
                "answers": answers,
                "explainer": name,
                "role": datasets[0].methods[name].role,
                "mean": float(own.mean()) if len(own) else np.nan,
                "ci_low": float(low),
                "ci_high": float(high),
                "n": len(own),
                "answered": int(own.sum()),
                "data_sets": len(datasets),
            }


def _share(row: Any) -> str:
    return f"{row['answered'] / row['n']:.1%}, {int(row['answered']):,} of {int(row['n']):,}"
