"""Time per explanation by explainer and data set (CF-tabular, figure 4).

The time is that of the call of the explainer alone, divided equally among the factuals of a batch (so ``std`` is that
between batches); loading, training and scoring are not included. CF-tabular includes the start of Python, alongside 49
other processes. Data sets are ordered by their number of encoded columns, in a map for each type of data, with colours
by powers of ten. Another figure shows the times over that number; data sets of different width also differ in rows
and network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.plan import TIME
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.analysis.run_data import finished, groups_of, place, studies, tidied

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="tabular/analysis/times",
    summary="Time per explanation by explainer and data set",
    target=f"{__name__}:Times",
    papers=("cftabular2021",),
)


class Times:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs) else "needs a completed cell"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, dataset, type, encoded_columns, explainer, role, seconds (mean), median, std, n."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for study in studies(runs):
            for dataset in study.datasets:
                for method in dataset.methods.values():
                    values = method.values.column(TIME.name) if method.values is not None else np.empty(0)
                    values = values[~np.isnan(values)]
                    rows.append(
                        {
                            "model": study.model,
                            "dataset": dataset.name,
                            "type": dataset.type,
                            "encoded_columns": dataset.summary.get("encoded_columns", np.nan),
                            "explainer": method.name,
                            "role": method.role,
                            "seconds": float(values.mean()) if len(values) else np.nan,
                            "median": float(np.median(values)) if len(values) else np.nan,
                            "std": float(values.std(ddof=1)) if len(values) > 1 else np.nan,
                            "n": len(values),
                        }
                    )
        return pd.DataFrame(rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        table = tidied(table)
        drawn = []
        for labels, rows in groups_of(table, ("model",)):
            where = place(labels, table)
            heading = f"Time per explanation{': ' + where if where else ''}"
            for kind, own in groups_of(rows, ("type",)):
                more = f", {kind['type']} data" if rows["type"].nunique() > 1 and kind["type"] else ""
                drawn.append(_by_data_set(own, f"{heading}{more}"))
            if rows["encoded_columns"].nunique() > 2:
                drawn.append(_growth(rows, f"{heading}, by columns"))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        from cfbench_core.reports.charts.svg import duration

        table = tidied(table)
        known = table[(table["role"] == "") & (table["seconds"] > 0)] if len(table) else table
        if known.empty or known["explainer"].nunique() < 2:
            return ""
        # The geometric mean, so that one slow data set does not dominate.
        means = np.exp(np.log(known["seconds"]).groupby(known["explainer"], sort=False).mean())
        quick, slow = str(means.idxmin()), str(means.idxmax())
        worst = known.sort_values("seconds", kind="stable").iloc[-1]
        return (
            f"Fastest is {quick} with {duration(means[quick])} per explanation (geometric mean over data sets), slowest "
            f"{slow} with {duration(means[slow])}, {means[slow] / means[quick]:,.0f} times that. The longest time is "
            f"{duration(worst['seconds'])}, of {worst['explainer']} on {worst['dataset']}."
        )


def _by_data_set(rows: pd.DataFrame, heading: str) -> Figure:
    """Explainers by data sets, the fastest explainer on top and the narrowest data set on the left."""
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import heat_map
    from cfbench_core.reports.charts.svg import duration

    wide = rows.pivot(index="explainer", columns="dataset", values="seconds")
    columns = rows.drop_duplicates("dataset").sort_values("encoded_columns", kind="stable")
    order = np.log(wide.where(wide > 0)).mean(axis=1).sort_values(kind="stable").index
    wide = wide.reindex(index=order, columns=list(columns["dataset"]))
    values = wide.to_numpy(dtype=float)
    svg = heat_map(
        list(wide.index),
        list(wide.columns),
        values,
        title=heading,
        direction="lower",
        text=[[duration(v) if v > 0 else "–" for v in own] for own in values],
        log=True,
    )
    widths = [f"{w:.0f}" for w in columns["encoded_columns"] if not np.isnan(w)]
    note = f"Data sets from left to right by their encoded columns: {', '.join(widths)}." if widths else ""
    return Figure(heading, svg, note, wide=len(wide.columns) > 5)


def _growth(rows: pd.DataFrame, heading: str) -> Figure:
    """A line for each explainer over the number of encoded columns."""
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import Series, line_chart
    from cfbench_core.reports.charts.svg import duration

    known = rows[rows["encoded_columns"].notna()].sort_values("encoded_columns", kind="stable")
    # Data sets of equal width are represented by their geometric mean.
    logs = np.log(known["seconds"].where(known["seconds"] > 0))
    means = np.exp(
        logs.groupby([known["explainer"], known["role"], known["encoded_columns"]], sort=False).mean()
    )
    series = [
        Series(str(name), own.index.get_level_values("encoded_columns"), own, role=str(role))
        for (name, role), own in means.groupby(level=["explainer", "role"], sort=False)
    ]
    svg = line_chart(
        series,
        title=heading,
        x_label="encoded columns",
        y_label="time per explanation",
        direction="lower",
        log_y=True,
        y_text=duration,
    )
    return Figure(heading, svg, "Each point is a data set (or the geometric mean of those of equal width).")
