"""Rates over factuals by group of data sets, for the analyses ``validity`` and ``stability``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.statistics import bootstrap_interval
from cfbench_tabular.analysis.run_data import TOTAL, DataSet, FloatArray, Study, place, studies

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

Row = dict[str, Any]


def table_by_group(
    runs: Sequence[Run], rows_of: Callable[[Study, str, Sequence[DataSet]], Iterable[Row]]
) -> pd.DataFrame:
    """The rows of each study and each group of its data sets."""
    import pandas as pd

    rows = [
        row
        for study in studies(runs)
        for group, datasets in study.groups()
        for row in rows_of(study, group, datasets)
    ]
    return pd.DataFrame(rows)


def values_of_all(datasets: Sequence[DataSet], metric: str) -> dict[str, FloatArray]:
    """A metric of every factual of these data sets, by explainer (NaN where there is none).

    An explainer that is not planned for one of them is left out.
    """
    names = [name for name in datasets[0].methods if all(name in dataset.methods for dataset in datasets)]
    values = np.concatenate([dataset.values(names, (metric,))[1][..., 0] for dataset in datasets])
    return dict(zip(names, values.T, strict=True))


def share(values: FloatArray) -> Row:
    """Mean, interval (a bootstrap over factuals) and number."""
    low, high = bootstrap_interval(values) if len(values) else (np.nan, np.nan)
    mean = float(values.mean()) if len(values) else np.nan
    return {"mean": mean, "ci_low": float(low), "ci_high": float(high), "n": len(values)}


def heading_of(what: str, labels: Mapping[str, Any], table: pd.DataFrame) -> str:
    """ "Coverage: mlp · numerical data"."""
    where = place({"model": labels["model"]}, table)
    group = "all data sets" if labels["group"] == TOTAL else f"{labels['group']} data"
    return f"{what}: {' · '.join(filter(None, (where, group)))}"


def chart(rows: pd.DataFrame, heading: str) -> str:
    """A bar for each explainer, the largest rate on top."""
    from cfbench_core.reports.charts import Bar, bar_chart

    bars = [
        Bar(r["explainer"], r["mean"], r["ci_low"], r["ci_high"], r["role"], _percent(r["mean"]))
        for _, r in rows.sort_values("mean", ascending=False, kind="stable").iterrows()
    ]
    return bar_chart(bars, title=heading, x_label="share of factuals", direction="higher", x_range=(0.0, 1.0))


def _percent(number: float) -> str:
    return "–" if np.isnan(number) else f"{number:.0%}"
