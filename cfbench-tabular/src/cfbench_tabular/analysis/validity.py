"""Feasible, realistic and valid counterfactuals by type of data (CF-tabular, figures 6 and 7: coverage).

Validity is the share of factuals with a counterfactual that the classifier puts into the other class; realistic
validity is the share with a valid counterfactual that could be a row of the table; feasible are those that also respect
immutable and one-way columns. The shares are computed for each type of
data, over all its factuals; intervals are bootstraps over factuals. An explainer that failed on a data set has the
validity 0 there; one that was not planned for a data set has no bar for the groups that contain it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

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
    CRITERIA,
    TOTAL,
    VALID,
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
    id="tabular/analysis/validity",
    summary="Rates of feasible, realistic and valid counterfactuals by type of data",
    target=f"{__name__}:Validity",
    papers=("cftabular2021",),
)


class Validity:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, CRITERIA[VALID]) else "needs the metric validity"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, group, criterion (feasible, realistic, valid), explainer, role, mean, ci_low, ci_high, n,
        explained,
        data_sets."""
        return table_by_group(runs, _rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure

        table = tidied(table)
        drawn = []
        for labels, rows in groups_of(table, ("criterion", "model", "group")):
            heading = heading_of(f"Validity, {labels['criterion']} counterfactuals", labels, table)
            first = rows.iloc[0]
            factuals = count_of(int(first["n"]), "factual")
            note = f"{factuals} of {count_of(int(first['data_sets']), 'data set')}."
            drawn.append(Figure(heading, chart(rows, heading), note))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = tidied(table)
        if table.empty:
            return ""
        sentences = []
        for criterion in CRITERIA:
            rows = table[
                (table["criterion"] == criterion) & (table["group"] == TOTAL) & (table["role"] == "")
            ]
            counts = rows.groupby("explainer", sort=False)[["explained", "n"]].sum()  # of all models
            if len(counts) > 1:
                shares = counts["explained"] / counts["n"]
                best, last = (shares[shares == edge].index for edge in (shares.max(), shares.min()))
                if len(best) == len(shares):
                    share_of_all = _share(counts.loc[best[0]])
                    sentences.append(
                        f"{criterion.capitalize()} counterfactuals: as many by all ({share_of_all})."
                    )
                    continue
                sentences.append(
                    f"{criterion.capitalize()} counterfactuals: most by {join_words(best)} "
                    f"({_share(counts.loc[best[0]])}), fewest by {join_words(last)} ({_share(counts.loc[last[0]])})."
                )
        return " ".join(sentences)


def _rows(study: Study, group: str, datasets: Sequence[DataSet]) -> Iterator[Row]:
    for criterion, metric in CRITERIA.items():
        if metric not in study.columns():
            continue
        for explainer, values in values_of_all(datasets, metric).items():
            hits = np.nan_to_num(values)
            yield {
                "model": study.model,
                "group": group,
                "criterion": criterion,
                "explainer": explainer,
                "role": datasets[0].methods[explainer].role,
                **share(hits),
                "explained": int(hits.sum()),
                "data_sets": len(datasets),
            }


def _share(row: Any) -> str:
    return f"{row['explained'] / row['n']:.1%}, {int(row['explained']):,} of {int(row['n']):,}"
