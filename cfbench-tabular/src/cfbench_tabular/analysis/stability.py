"""Who gives the same answer again? (Paper 003, figure 5.)

The share of factuals that get the same counterfactual when asked a second time with another seed (the metric
``stability``; factuals without an answer either time are left out), by type of data. The study asked twice with
the same settings, on several threads; here the same seed gives the same answer always, and what is asked is how
much of an answer is chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cfbench_tabular.analysis.shared import (
    TOTAL,
    DataSet,
    Study,
    counted,
    finished,
    groups_of,
    listed,
    tidied,
)
from cfbench_tabular.analysis.shares import Row, chart, heading_of, share, table_by_group, values_of_all

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

METRIC = "stability"


class Stability:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, METRIC) else "needs the metric stability (protocol.again: true)"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, group, explainer, role, mean, ci_low, ci_high, n (factuals answered at least once)."""
        return table_by_group(runs, _rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure

        table = tidied(table)
        drawn = []
        for labels, rows in groups_of(table, ("model", "group")):
            heading = heading_of("Same answer again", labels, table)
            note = "Of factuals that were answered at least once."
            drawn.append(Figure(heading, chart(rows, heading), note))
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


def _rows(study: Study, group: str, datasets: Sequence[DataSet]) -> Iterator[Row]:
    for explainer, values in values_of_all(datasets, METRIC).items():
        yield {
            "model": study.model,
            "group": group,
            "explainer": explainer,
            "role": datasets[0].methods[explainer].role,
            **share(values[~np.isnan(values)]),
        }
