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
    tidied,
)
from cfbench_tabular.analysis.shares import Row, chart, heading_of, share, table_by_group, values_of_all

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run


class Coverage:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, JUDGES[VALID]) else "needs the metric coverage"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, group, answers (valid, realistic), explainer, role, mean, ci_low, ci_high, n, answered,
        data_sets."""
        return table_by_group(runs, _rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure

        table = tidied(table)
        drawn = []
        for labels, rows in groups_of(table, ("answers", "model", "group")):
            heading = heading_of(f"Coverage, {labels['answers']} answers", labels, table)
            first = rows.iloc[0]
            factuals = counted(int(first["n"]), "factual")
            note = f"{factuals} of {counted(int(first['data_sets']), 'data set')}."
            drawn.append(Figure(heading, chart(rows, heading), note))
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


def _rows(study: Study, group: str, datasets: Sequence[DataSet]) -> Iterator[Row]:
    for answers, metric in JUDGES.items():
        if metric not in study.columns():
            continue
        for explainer, values in values_of_all(datasets, metric).items():
            answered = np.nan_to_num(values)
            yield {
                "model": study.model,
                "group": group,
                "answers": answers,
                "explainer": explainer,
                "role": datasets[0].methods[explainer].role,
                **share(answered),
                "answered": int(answered.sum()),
                "data_sets": len(datasets),
            }


def _share(row: Any) -> str:
    return f"{row['answered'] / row['n']:.1%}, {int(row['answered']):,} of {int(row['n']):,}"
