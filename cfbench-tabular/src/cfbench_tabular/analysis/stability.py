"""Rate of counterfactuals that are reproduced with another seed (CF-tabular, figure 5).

The share of factuals with the same counterfactual in a second call with another seed (the metric ``stability``;
factuals without a counterfactual in both calls are left out), by type of data. CF-tabular calls each explainer twice
with the same settings, on several threads; here equal seeds give equal results, and the analysis measures how much
of a counterfactual is due to chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_core.wording import count_of, join_words
from cfbench_tabular.analysis.grouped_rates import (
    Row,
    chart,
    heading_of,
    share,
    table_by_group,
    values_of_all,
)
from cfbench_tabular.analysis.run_data import (
    TOTAL,
    DataSet,
    Study,
    finished,
    groups_of,
    tidied,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="tabular/analysis/stability",
    summary="Rate of counterfactuals reproduced with another seed",
    target=f"{__name__}:Stability",
    papers=("cftabular2021",),
)


METRIC = "stability"


class Stability:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, METRIC) else "needs the metric stability (protocol.repeats: true)"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, group, explainer, role, mean, ci_low, ci_high, n (factuals with a
        counterfactual in either call)."""
        return table_by_group(runs, _rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure

        table = tidied(table)
        drawn = []
        for labels, rows in groups_of(table, ("model", "group")):
            heading = heading_of("Reproduced counterfactuals", labels, table)
            note = "Of factuals with a counterfactual in either call."
            drawn.append(Figure(heading, chart(rows, heading), note))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = tidied(table)
        rows = table[(table["group"] == TOTAL) & (table["role"] == "") & (table["n"] > 0)]
        if rows.empty:
            return ""
        always = list(dict.fromkeys(rows[rows["mean"] == 1.0]["explainer"]))
        others = rows[~rows["explainer"].isin(always)].sort_values("mean", kind="stable")
        text = (
            f"Always reproduced: {join_words(always)}." if always else "No explainer is always reproducible."
        )
        if len(others):
            least = others.iloc[0]
            times = f"{least['mean']:.0%} of {count_of(int(least['n']), 'factual')}"
            text += f" The least stable is {least['explainer']}: reproduced for {times}."
        return text


def _rows(study: Study, group: str, datasets: Sequence[DataSet]) -> Iterator[Row]:
    for explainer, values in values_of_all(datasets, METRIC).items():
        yield {
            "model": study.model,
            "group": group,
            "explainer": explainer,
            "role": datasets[0].methods[explainer].role,
            **share(values[~np.isnan(values)]),
        }
